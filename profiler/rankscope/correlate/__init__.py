"""Rows joined across streams, threads and ranks: launches, steps, collectives, clocks."""

"""Bytes to tables: the only place that knows trace files, and the only one where `Any` is allowed."""

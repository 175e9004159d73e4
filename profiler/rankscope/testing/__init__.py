"""Synthetic runs whose answers are given, not computed, and assertions for users' own tests."""

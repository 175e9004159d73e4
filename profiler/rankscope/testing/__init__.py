"""Synthetic runs whose answers are given, not computed, and assertions for users' own tests."""

from __future__ import annotations

from rankscope.testing.assertions import assert_overlap

__all__ = ["assert_overlap"]

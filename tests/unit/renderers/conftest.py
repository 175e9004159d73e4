"""Reports for the renderers' tests, made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rankscope.model.report import Measures, RankRow, Report, RunFacts, StepRow, Tool, Totals

MakeReport = Callable[..., Report]
MakeRank = Callable[..., RankRow]
MakeStep = Callable[..., StepRow]

HALF_HIDDEN: dict[str, Any] = {
    "window_ns": 1_000_000,
    "compute_ns": 600_000,
    "communication_ns": 400_000,
    "overlap_ns": 200_000,
    "exposed_communication_ns": 200_000,
    "memory_ns": 100_000,
    "exposed_memory_ns": 50_000,
    "idle_ns": 150_000,
    "overlap_ratio": 0.5,
}
"""One window of 1 ms: 600 + 200 + 50 + 150 us."""


@pytest.fixture
def make_rank() -> MakeRank:
    """Makes a row of one rank, half of whose communication is hidden, with what is given changed."""

    def make(rank: int, **changed: Any) -> RankRow:
        return RankRow(**{"rank": rank, "device": 0, **HALF_HIDDEN, **changed})

    return make


@pytest.fixture
def make_step() -> MakeStep:
    """Makes a row of one step of 500 us on one rank, with what is given changed."""

    def make(step: int | None, rank: int = 0, **changed: Any) -> StepRow:
        measures = {**HALF_HIDDEN, "window_ns": None, "idle_ns": None}
        known = {"step": step, "rank": rank, "device": 0, "steady": True, "duration_ns": 500_000}
        return StepRow(**{**known, **measures, **changed})

    return make


@pytest.fixture
def make_report(make_rank: MakeRank) -> MakeReport:
    """Makes a report of one rank, with what is given changed; `run` may be a dict of facts to change."""

    def make(*, run: dict[str, Any] | None = None, **changed: Any) -> Report:
        facts = {"name": "run", "source": "runs/run", "ranks": [0], "world_size": 1, **(run or {})}
        known = {"ranks": [make_rank(0)], "totals": Totals(run=Measures(**HALF_HIDDEN))}
        return Report(**{"tool": Tool(version="0.1.0"), "run": RunFacts(**facts), **known, **changed})

    return make

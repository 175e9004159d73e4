"""A fault hidden in one rank of a real DDP job is found: a part of the table of benchmarks/faults.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.faults import Fault, run_fault

pytestmark = [pytest.mark.distributed, pytest.mark.torch]

FAULTS = [
    Fault(2, "data loading", 40, 1, 101),
    Fault(2, "forward", 40, 0, 102),
    Fault(2, "backward", 40, 1, 103),
    Fault(2, "communication hook", 40, 0, 104),
    Fault(2, "optimizer", 40, 1, 105),
    Fault(2, "callback", 40, 0, 106),
    Fault(2, "forward", 20, 1, 107),
    Fault(2, "optimizer", 20, 0, 108),
    Fault(4, "data loading", 40, 2, 109),
    Fault(4, "backward", 40, 3, 110),
]
CLEAN = [Fault(2, None, 0, -1, 111), Fault(2, None, 0, -1, 112)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.world_size} ranks, {f.stage}, {f.delay_ms} ms")
def test_the_rank_the_stage_and_the_time_are_named(fault: Fault, tmp_path: Path) -> None:
    outcome = run_fault(fault, tmp_path, steps=23)
    assert outcome.rank_right, outcome.straggler
    assert outcome.stage_right, outcome.straggler
    assert outcome.delay_right, outcome.straggler


@pytest.mark.parametrize("fault", CLEAN, ids=lambda f: f"seed {f.seed}")
def test_nobody_is_named_without_a_fault(fault: Fault, tmp_path: Path) -> None:
    outcome = run_fault(fault, tmp_path, steps=23)
    assert outcome.straggler.verdict != "found", outcome.straggler

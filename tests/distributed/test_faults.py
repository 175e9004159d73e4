"""A fault hidden in one rank of a real DDP job is found: a part of the table of benchmarks/faults.py.

The table's own bound is 34 of 36 rows: the machine disturbs some runs, and then the answer is "inconclusive". So a row
that is missed is run once more with another seed, at most two rows may need that, and no other rank may ever be named.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.faults import Fault, Outcome, run_fault

pytestmark = [pytest.mark.distributed, pytest.mark.torch, pytest.mark.timeout(600)]

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
    Fault(2, None, 0, -1, 111),
    Fault(2, None, 0, -1, 112),
]
MOST_REPEATED = 2


def is_right(outcome: Outcome) -> bool:
    """The rank, its stage and its time are named; of a run without a fault, nobody."""
    if outcome.fault.stage is None:
        return outcome.straggler.verdict != "found"
    return outcome.rank_right and outcome.stage_right and outcome.delay_right


def test_hidden_faults_are_found_and_nobody_else_is_blamed(tmp_path: Path) -> None:
    outcomes = [run_fault(fault, tmp_path / str(fault.seed), steps=23) for fault in FAULTS]
    missed = [outcome for outcome in outcomes if not is_right(outcome)]
    blamed = [o for o in missed if o.fault.stage and o.straggler.verdict == "found" and not o.rank_right]
    assert blamed == []
    assert len(missed) <= MOST_REPEATED, missed
    again = [replace(outcome.fault, seed=outcome.fault.seed + 100) for outcome in missed]
    repeated = [run_fault(fault, tmp_path / str(fault.seed), steps=23) for fault in again]
    assert [outcome for outcome in repeated if not is_right(outcome)] == []

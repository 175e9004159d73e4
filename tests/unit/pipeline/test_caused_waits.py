"""What each rank cost each step, against a synthetic run whose answers are given."""

from __future__ import annotations

from pathlib import Path

from rankscope.pipeline import AnalyzeOptions, analyze_run, read_run
from rankscope.testing.synth import ddp_run, write_run

LATE_NS = 2_000_000


def test_a_run_without_communication_costs_nothing(tmp_path: Path) -> None:
    write_run(ddp_run(ranks=1, steps=2), tmp_path)
    assert analyze_run(read_run(tmp_path)).caused_waits == []


def test_a_slow_rank_costs_every_step_as_much_as_it_is_late(tmp_path: Path) -> None:
    """Rank 1 loads data 2 ms longer in each of five steps, and is last by 2 ms at the first bucket of each.

    Step 0 has no rows: its first collective opens the group and does not count, the others queue behind it, and
    nothing precedes it that its length could be measured from.
    """
    write_run(ddp_run(ranks=3, steps=5, straggler=(1, LATE_NS, "input")), tmp_path)
    rows = analyze_run(read_run(tmp_path)).caused_waits
    caused = {rank: LATE_NS if rank == 1 else 0 for rank in (0, 1, 2)}
    assert [(row.step, row.rank, row.lateness_ns, row.cost_ns) for row in rows] == [
        (step, rank, ns, ns) for step in (1, 2, 3, 4) for rank, ns in caused.items()
    ]


def test_the_latest_collectives_carry_their_arrivals_in_a_summary(tmp_path: Path) -> None:
    """Countable and late: the first bucket of every step but the first, since it opens the group."""
    write_run(ddp_run(ranks=2, steps=4, straggler=(1, LATE_NS, "input")), tmp_path)
    run = read_run(tmp_path)
    summary, full = (analyze_run(run, AnalyzeOptions(detail=detail)) for detail in ("summary", "full"))
    with_arrivals = [row for row in summary.collectives if row.arrivals_ns]
    assert len(with_arrivals) == 3
    for row in with_arrivals:
        assert row.countable
        assert row.arrivals_ns is not None
        assert row.arrivals_ns[1] - row.arrivals_ns[0] == row.lateness_ns == LATE_NS
        assert row.waits_ns is None
    assert all(row.arrivals_ns and row.waits_ns for row in full.collectives)

from __future__ import annotations

from dataclasses import replace

from rankscope.model.report import CausedWaitRow, Report
from rankscope.renderers.wait_matrix import build_wait_matrix
from support.straggling_report import MS, make_straggling

from .conftest import MakeReport


def with_rows(*rows: tuple[int | None, int, int | None, int | None]) -> Report:
    """A report with rows of (step, rank, lateness, cost)."""
    made = [CausedWaitRow(step=s, rank=r, lateness_ns=late, cost_ns=cost) for s, r, late, cost in rows]
    return replace(make_straggling(), caused_waits=made)


def test_nothing_to_compare(make_report: MakeReport) -> None:
    assert build_wait_matrix(make_report(), ranks=9, steps=9) is None
    assert build_wait_matrix(with_rows((1, 0, 5, 5)), ranks=9, steps=9) is None  # one rank


def test_costs_per_rank_and_step() -> None:
    matrix = build_wait_matrix(make_straggling(), ranks=9, steps=9)
    assert matrix is not None
    assert (matrix.figure, matrix.ranks, matrix.steps) == ("cost", (0, 1, 2), ("1", "2", "3"))
    assert matrix.values == ((0, 0, 0), (0, 0, 0), (4 * MS, 5 * MS, 6 * MS))
    assert (matrix.full_ns, matrix.notes) == (6 * MS, ())
    assert matrix.title == "What each rank cost each step"


def test_lateness_stands_in_where_no_cost_is_known() -> None:
    matrix = build_wait_matrix(with_rows((1, 0, 3 * MS, None), (1, 1, 0, None)), ranks=9, steps=9)
    assert matrix is not None
    assert (matrix.figure, matrix.values) == ("lateness", ((3 * MS,), (0,)))
    assert matrix.title == "How late each rank was, step by step"


def test_less_than_nothing_is_nothing_and_unknown_is_unknown() -> None:
    rows = with_rows((1, 0, 0, -50), (1, 1, 0, 9 * MS), (2, 0, 0, None), (2, 1, 0, 8 * MS))
    matrix = build_wait_matrix(rows, ranks=9, steps=9)
    assert matrix is not None
    assert matrix.values == ((0, None), (9 * MS, 8 * MS))


def test_noise_is_not_drawn_in_full_colour() -> None:
    """A step takes 100 ms: 2 % of it, which would name a rank, is full colour at least."""
    matrix = build_wait_matrix(with_rows((1, 0, 0, 10_000), (1, 1, 0, 0)), ranks=9, steps=9)
    assert matrix is not None
    assert matrix.full_ns == 2 * MS


def test_neighbouring_steps_are_drawn_together_by_the_worst_of_them() -> None:
    """Seven steps in at most three columns: 3, 3 and 1."""
    rows = with_rows(*((step, rank, 0, step * rank) for step in range(10, 17) for rank in (0, 1)))
    matrix = build_wait_matrix(rows, ranks=9, steps=3)
    assert matrix is not None
    assert matrix.steps == ("10-12", "13-15", "16")
    assert matrix.values[1] == (12, 15, 16)
    assert matrix.notes == ("Every column holds up to 3 steps, and shows the worst of them.",)


def test_above_the_limit_the_ranks_that_cost_most_are_kept() -> None:
    rows = with_rows(*((1, rank, 0, (7 * rank) % 10) for rank in range(10)))
    matrix = build_wait_matrix(rows, ranks=2, steps=9)
    assert matrix is not None
    assert (matrix.ranks, matrix.values) == ((4, 7), ((8,), (9,)))
    assert matrix.notes == ("Shown: the 2 of 10 ranks that cost most.",)


def test_a_run_without_steps_is_one_column() -> None:
    matrix = build_wait_matrix(with_rows((None, 0, 0, 1), (None, 1, 0, 2)), ranks=9, steps=9)
    assert matrix is not None
    assert (matrix.steps, matrix.values) == (("all",), ((1,), (2,)))


def test_ranks_that_hide_each_other_are_explained() -> None:
    report = make_straggling()
    assert report.straggler is not None
    together = replace(report.straggler, ranks=[1, 2], rank=None, scope="host")
    matrix = build_wait_matrix(replace(report, straggler=together), ranks=9, steps=9)
    assert matrix is not None
    assert "hide each other" in matrix.notes[0]
    assert "5.00 ms per step" in matrix.notes[0]

"""Rows per step, the choice of steps, and totals over steady steps."""

from __future__ import annotations

import pytest

from rankscope.errors import UsageError
from rankscope.model.report import Report
from rankscope.pipeline import AnalyzeOptions
from support.reading import report_of
from support.trace_text import Row, kernel, launch, nccl, step


def step_rows(number: int, *, hidden: int, total: int) -> list[Row]:
    """Step [1000 n, 1000 n + 1000) with compute of 100 us and communication of which `hidden` us lie beside it."""
    at, first = 1000 * number, 10 * number
    return [
        step(number, at, 1000),
        launch(first, at + 10),
        launch(first + 1, at + 20),
        kernel("gemm", at + 100, 100, correlation=first),
        nccl(at + 200 - hidden, total, correlation=first + 1),
    ]


def three_steps() -> list[Row]:
    """10 of 100, 50 of 50 and 30 of 50 us hidden in steps 4, 5 and 6; 5 us launched before them."""
    before = nccl(3990, 5)
    return [
        before,
        *step_rows(4, hidden=10, total=100),
        *step_rows(5, hidden=50, total=50),
        *step_rows(6, hidden=30, total=50),
    ]


def report(steps: set[int] | None = None) -> Report:
    options = AnalyzeOptions(steps=None if steps is None else frozenset(steps))
    return report_of({0: three_steps(), 1: three_steps()}, options=options)


def test_steps_by_number_then_rank_and_last_what_was_outside() -> None:
    rows = report().steps
    assert [(row.step, row.rank) for row in rows] == [
        (4, 0), (4, 1), (5, 0), (5, 1), (6, 0), (6, 1), (None, 0), (None, 1),
    ]  # fmt: skip
    assert [row.overlap_ratio for row in rows[::2]] == [0.1, 1.0, 0.6, 0.0]
    assert [row.communication_ns for row in rows[::2]] == [100_000, 50_000, 50_000, 5_000]
    assert all(row.steady == (row.step is not None) for row in rows)


def test_totals_of_the_steps_weigh_by_time() -> None:
    """90 of 200 us per rank: 0.45, where the mean of the steps' ratios would be 0.567."""
    totals = report().totals
    assert totals.steady is not None
    assert (totals.steady.communication_ns, totals.steady.overlap_ns) == (400_000, 180_000)
    assert totals.steady.overlap_ratio == 0.45
    assert totals.outside_steps is not None
    assert (totals.outside_steps.communication_ns, totals.outside_steps.compute_ns) == (10_000, 0)
    assert totals.run.communication_ns == 410_000


def test_chosen_steps_alone_make_rows_and_steady_totals() -> None:
    """Steps 4 and 6: 40 of 150 us. Figures of ranks and of the run stay those of everything."""
    chosen, everything = report({4, 6}), report()
    assert chosen.run.steps == chosen.run.steady_steps == [4, 6]
    assert {row.step for row in chosen.steps} == {4, 6}
    assert chosen.totals.steady is not None
    assert chosen.totals.steady.overlap_ratio == 40 / 150
    assert [row.communication_ns for row in chosen.ranks] == [
        row.communication_ns for row in everything.ranks
    ]
    assert chosen.totals.run == everything.totals.run


def test_choosing_steps_does_not_make_what_was_outside_of_them_nothing() -> None:
    chosen = report({4}).totals.outside_steps
    assert chosen is not None
    assert chosen.communication_ns == 10_000


def test_a_step_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"step\(s\) 7, 9 are not in the run; it holds: 4, 5, 6"):
        report({5, 7, 9})


def test_steps_of_a_run_without_markers() -> None:
    with pytest.raises(UsageError, match="it holds: none"):
        report_of({0: [kernel("a", 0, 1)]}, options=AnalyzeOptions(steps=frozenset({1})))


def test_without_markers_there_are_no_rows_and_no_steady_totals() -> None:
    found = report_of({0: [kernel("a", 0, 10), nccl(5, 10)]})
    assert found.steps == []
    assert found.run.steps == []
    assert found.totals.steady is None
    assert found.totals.outside_steps is None


def test_a_step_without_communication_stays_out_of_the_mean() -> None:
    quiet = [step(7, 7000, 1000), launch(70, 7010), kernel("gemm", 7100, 100, correlation=70)]
    found = report_of({0: [*step_rows(6, hidden=30, total=50), *quiet]})
    assert [row.overlap_ratio for row in found.steps] == [0.6, None]
    assert found.totals.steady is not None
    assert found.totals.steady.overlap_ratio == 0.6


def test_a_step_that_is_recorded_on_one_rank_alone_is_a_step() -> None:
    found = report_of({0: step_rows(4, hidden=10, total=100), 1: step_rows(5, hidden=50, total=50)})
    assert found.run.steps == [4, 5]
    assert [(row.step, row.rank) for row in found.steps] == [(4, 0), (5, 1)]


def test_every_communication_event_is_owned_by_one_row() -> None:
    found = report()
    owned = sum(row.communication_ns for row in found.steps)
    assert owned == sum(row.communication_ns for row in found.ranks)  # none of these run at once

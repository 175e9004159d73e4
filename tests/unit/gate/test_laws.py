"""What holds for any two runs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.gate.compare import compare
from rankscope.model.comparison import ComparedFigure
from support.gate_reports import MS, make_side, make_snapshot

Ratios = list[float]

ratios = st.lists(st.floats(0.05, 0.95).map(lambda ratio: round(ratio, 3)), min_size=3, max_size=5)
mirrored = {"better": "worse", "worse": "better", "same": "same", None: None}


def compare_steps(base: Ratios, head: Ratios, *, times: float = 1.0) -> dict[str, ComparedFigure]:
    durations = [100 * MS * times]
    old = make_snapshot(base, communication=10 * MS * times, durations=durations * len(base))
    new = make_snapshot(head, communication=10 * MS * times, durations=durations * len(head))
    return {row.name: row for row in compare(make_side(old), make_side(new)).figures}


@settings(max_examples=40, deadline=None)
@given(ratios, ratios)
def test_swapping_the_sides_turns_every_change_round(base: Ratios, head: Ratios) -> None:
    forward, backward = compare_steps(base, head), compare_steps(head, base)
    for name, row in forward.items():
        assert backward[name].direction == mirrored[row.direction]
        if row.change is not None:
            assert backward[name].change == -row.change
        there, back = row.judgement, backward[name].judgement
        assert (there is None) == (back is None)
        if there is not None and back is not None:
            assert there.p_value == pytest.approx(back.p_value)


@settings(max_examples=40, deadline=None)
@given(ratios, ratios, st.permutations(range(3)))
def test_the_order_of_steps_changes_nothing(base: Ratios, head: Ratios, order: list[int]) -> None:
    base = base[:3]
    shuffled = [base[index] for index in order]
    for name, row in compare_steps(base, head).items():
        assert compare_steps(shuffled, head)[name].is_significant == row.is_significant


@settings(max_examples=40, deadline=None)
@given(ratios, ratios)
def test_time_times_four_scales_times_and_no_verdict(base: Ratios, head: Ratios) -> None:
    plain, scaled = compare_steps(base, head), compare_steps(base, head, times=4)
    for name, row in plain.items():
        assert scaled[name].is_significant == row.is_significant
        if row.change is not None:
            factor = 4 if row.figure.kind == "time" else 1
            assert scaled[name].change == factor * row.change


@settings(max_examples=40, deadline=None)
@given(ratios)
def test_a_run_differs_from_itself_in_nothing(steps: Ratios) -> None:
    rows = compare_steps(steps, steps).values()
    assert {row.direction for row in rows} <= {"same", None}
    assert not any(row.is_significant for row in rows)

from __future__ import annotations

from dataclasses import replace

import pytest

from rankscope.gate.compare import compare
from rankscope.gate.snapshot import take_snapshot
from rankscope.gate.verdict import judge_comparison
from rankscope.model.comparison import ComparedFigure, Comparison
from rankscope.model.snapshot import Baseline, Part, Snapshot
from support.gate_reports import MS, make_side, make_snapshot, two_rank_report


def row(comparison: Comparison, name: str) -> ComparedFigure:
    return next(figure for figure in comparison.figures if figure.name == name)


def compare_runs(base: Snapshot, head: Snapshot) -> Comparison:
    return compare(make_side(base), make_side(head))


def test_a_run_against_itself() -> None:
    side = make_side(take_snapshot(two_rank_report()))
    comparison = compare(side, side)
    assert {figure.direction for figure in comparison.figures} == {"same", None}
    assert comparison.changed("worse") == comparison.changed("better") == ()
    assert comparison.parts == ()


def test_directions() -> None:
    comparison = compare_runs(
        make_snapshot([0.5] * 10), make_snapshot([0.4] * 10, durations=[90.0 * MS] * 10)
    )
    overlap, duration = row(comparison, "steady.overlap_ratio"), row(comparison, "steady.duration")
    assert (overlap.direction, duration.direction) == ("worse", "better")
    assert overlap.change == pytest.approx(-0.1)
    assert overlap.relative_change == pytest.approx(-0.2)
    assert [figure.name for figure in comparison.changed("worse")] == [
        "steady.overlap_ratio",
        "steady.exposed_communication",
    ]
    assert [figure.name for figure in comparison.changed("better")] == ["steady.duration"]


def test_a_change_is_significant_only_in_the_direction_of_the_steps() -> None:
    """The steps became worse, but the whole run, which holds what is outside steps too, better."""
    base, head = make_snapshot([0.5] * 10), make_snapshot([0.4] * 10)
    head = replace(head, figures={**head.figures, "overlap_ratio": 0.6})
    assert row(compare_runs(base, head), "overlap_ratio").is_significant is False


def test_different_numbers_of_steps_compare_per_step() -> None:
    comparison = compare_runs(make_snapshot([0.5] * 4), make_snapshot([0.5] * 8))
    exposed = row(comparison, "exposed_communication")
    assert (exposed.base, exposed.head, exposed.is_per_step) == (5 * MS, 5 * MS, True)
    assert exposed.direction == "same"
    assert "4 against 8 recorded steps" in comparison.notes[0]


def test_without_steps_on_one_side_times_cannot_be_compared() -> None:
    base, head = make_snapshot([0.5] * 4), replace(make_snapshot([0.5] * 4), steps=0.0, samples={})
    exposed = row(compare_runs(base, head), "exposed_communication")
    assert (exposed.head, exposed.direction) == (None, None)
    assert exposed.reason == "one of them has no step markers, and the lengths of recordings differ"
    assert row(compare_runs(base, head), "overlap_ratio").direction == "same"


def test_without_steps_on_one_side_parts_cannot_be_compared() -> None:
    base = make_side(make_snapshot([0.5] * 4), parts=[part("gemm", 10)])
    head = make_side(replace(make_snapshot([0.5] * 4), steps=0.0, samples={}), parts=[part("gemm", 20)])
    assert compare(base, head).parts == ()


def test_undefined_on_one_side() -> None:
    comparison = compare_runs(make_snapshot([0.5, 0.5]), make_snapshot([None, None]))
    overlap = row(comparison, "steady.overlap_ratio")
    assert (overlap.change, overlap.direction, overlap.is_significant) == (None, None, None)
    assert overlap.reason is not None
    assert overlap.reason.startswith("head: ")


def test_steps_without_communication_are_no_samples() -> None:
    comparison = compare_runs(make_snapshot([0.5, None, 0.5, 0.5]), make_snapshot([0.5] * 4))
    judgement = row(comparison, "overlap_ratio").judgement
    assert judgement is not None
    assert (judgement.base_steps, judgement.head_steps) == (3, 4)


def test_compute_on_the_cpu_shows_how_busy_the_machine_was() -> None:
    """The same steps, compute 10 % longer: a change of the code on a GPU, perhaps of the neighbours on a CPU."""
    for is_cpu_only, worse in ((False, 2), (True, 0)):
        base, head = (
            replace(run, is_cpu_only=is_cpu_only, samples={**run.samples, "compute": [compute] * 10})
            for run, compute in ((make_snapshot([0.5] * 10), 100.0), (make_snapshot([0.45] * 10), 110.0))
        )
        comparison = compare_runs(base, head)
        assert len(comparison.changed("worse")) == worse
        assert ("Compute on the CPU differs by 10 %" in " ".join(comparison.notes)) == is_cpu_only


def test_a_base_of_several_runs_is_their_mean() -> None:
    base = make_side(make_snapshot([0.4] * 4), make_snapshot([0.5] * 4), make_snapshot([0.6] * 4))
    comparison = compare(base, make_side(make_snapshot([0.5] * 4)))
    assert row(comparison, "overlap_ratio").base == pytest.approx(0.5)
    assert comparison.base.runs == 3


def test_other_differences_are_noted() -> None:
    base = replace(make_snapshot([0.5] * 4), versions={"torch": "2.8"}, backend="nccl", devices=["A100"])
    head = replace(make_snapshot([0.5] * 4), versions={"torch": "2.9"}, backend="gloo", devices=[])
    notes = " ".join(compare_runs(base, head).notes)
    assert "torch 2.8 against 2.9" in notes
    assert "Backend: nccl against gloo" in notes
    assert "Devices: A100 against unknown" in notes


def test_other_ranks() -> None:
    base, head = make_snapshot([0.5] * 4, ranks=2), make_snapshot([0.5] * 4, ranks=4)
    notes = " ".join(compare_runs(base, head).notes)
    assert "2 against 4 ranks" in notes
    assert row(compare_runs(base, head), "exposed_communication").direction == "same"
    partly = replace(base, ranks=1, missing_ranks=[1])
    assert "1 rank (without 1)" in " ".join(compare_runs(base, partly).notes)


def part(name: str, ms: float, *, group: str = "", count: float = 1, exposed: float = 0) -> Part:
    return Part(
        part_class="collective" if group else "compute",
        name=name,
        group=group,
        count=count,
        time_ns=ms * MS,
        exposed_ns=exposed * MS if group else None,
    )


def changes(
    base: list[Part], head: list[Part], *, known: tuple[bool, bool] = (True, True)
) -> list[tuple[str, str, float]]:
    old = make_side(make_snapshot([0.5] * 4), parts=base, has_kernels=known[0])
    new = make_side(make_snapshot([0.5] * 4), parts=head, has_kernels=known[1])
    return [(p.name, p.change, p.change_ns / MS) for p in compare(old, new).parts]


def test_parts_that_appeared_vanished_or_changed() -> None:
    base = [part("gemm", 10), part("old", 3), part("steady", 5), part("all_reduce", 8, group="dp [0-1]")]
    head = [part("gemm", 12), part("new", 1), part("steady", 5.05), part("all_reduce", 4, group="dp [0-1]")]
    assert changes(base, head) == [
        ("all_reduce", "shorter", -4),
        ("old", "vanished", -3),
        ("gemm", "longer", 2),
        ("new", "appeared", 1),
    ]


def test_a_collective_that_is_less_hidden() -> None:
    base, head = (
        [part("all_reduce", 8, group="dp", exposed=2)],
        [part("all_reduce", 8, group="dp", exposed=3)],
    )
    assert changes(base, head) == [("all_reduce", "less hidden", 0)]


def test_kernels_are_compared_only_if_both_sides_know_them() -> None:
    assert changes([part("gemm", 10)], [], known=(True, False)) == []
    assert changes([], [part("all_reduce", 1, group="dp")], known=(False, True)) == [
        ("all_reduce", "appeared", 1)
    ]


def test_a_part_that_was_cut_off_has_not_appeared() -> None:
    base = make_side(make_snapshot([0.5] * 4), parts=[part("gemm", 10)])
    base = replace(base, parts=replace(base.parts, left_out_kernel_ns=2 * MS))
    head = make_side(make_snapshot([0.5] * 4), parts=[part("gemm", 10), part("small", 1), part("large", 3)])
    assert [p.name for p in compare(base, head).parts] == ["large"]


def test_groups_of_other_ranks_are_compared_by_name() -> None:
    base = make_side(make_snapshot([0.5] * 4, ranks=2), parts=[part("all_reduce", 4, group="dp [0-1] #2")])
    head = make_side(make_snapshot([0.5] * 4, ranks=4), parts=[part("all_reduce", 8, group="dp [0-3] #2")])
    assert [(p.group, p.change) for p in compare(base, head).parts] == [("dp #2", "longer")]


def test_parts_are_per_step_if_step_counts_differ() -> None:
    base = make_side(make_snapshot([0.5] * 4), parts=[part("gemm", 4, count=4)])
    head = make_side(make_snapshot([0.5] * 8), parts=[part("gemm", 8, count=8), part("new", 8)])
    assert [(p.name, p.head_ns) for p in compare(base, head).parts] == [("new", MS)]


def fails(base: Baseline, head: Baseline) -> list[str]:
    verdict = judge_comparison(compare(base, head), "head", fail_on_worse=True)
    return [outcome.name for outcome in verdict.failed]


def test_fail_on_worse_closes_the_gate_for_a_significant_change_only() -> None:
    base = make_side(make_snapshot([0.5] * 10))
    assert fails(base, make_side(make_snapshot([0.4] * 10))) == [
        "no_worse.steady.overlap_ratio",
        "no_worse.steady.exposed_communication",
    ]
    assert fails(base, make_side(make_snapshot([0.495] * 10))) == []
    assert fails(base, make_side(make_snapshot([0.6] * 10))) == []


def test_fail_on_worse_fails_where_nothing_can_be_judged() -> None:
    """A gate that silently stopped to check would be worse than none."""
    side = make_side(make_snapshot([], steps=0))
    names = {"no_worse.overlap_ratio", "no_worse.exposed_communication"}
    assert set(fails(side, side)) == names
    verdict = judge_comparison(compare(side, side), "head", fail_on_worse=True, allow_undefined=True)
    assert verdict.failed == ()
    assert fails(make_side(make_snapshot([0.5] * 2)), make_side(make_snapshot([0.5] * 2))) != []


def test_a_significant_change_without_a_limit_is_a_warning() -> None:
    base, head = make_side(make_snapshot([0.5] * 10)), make_side(make_snapshot([0.4] * 10))
    verdict = judge_comparison(compare(base, head), "head")
    assert verdict.failed == ()
    assert "per step went from 50.00 % to 40.00 % (-10.00 pp, p <0.001)" in verdict.warnings[0]

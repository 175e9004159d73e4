"""What a person must know before reading the figures of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rankscope.model.report import ProblemRow
from rankscope.model.run import Run
from rankscope.pipeline import analyze_run
from support.reading import report_of
from support.trace_text import Row, annotation, cpu_op, gloo, kernel, launch, nccl, step

WORK = [kernel("a", 0, 10), nccl(5, 10)]


def problems_of(events_of_rank: Mapping[int, Sequence[Row]], **more: Any) -> dict[str, ProblemRow]:
    return {problem.kind: problem for problem in report_of(events_of_rank, **more).problems}


def test_nothing_to_say() -> None:
    stepped = [
        step(1, 0, 100),
        launch(1, 1),
        launch(2, 2),
        kernel("a", 3, 10, correlation=1),
        nccl(5, 9, correlation=2),
    ]
    assert problems_of({0: stepped, 1: stepped}) == {}


def test_missing_ranks() -> None:
    problem = problems_of({0: WORK, 3: WORK}, world_size=8)["missing-ranks"]
    assert (problem.file, problem.severity) == ("", "warning")
    assert problem.message.startswith("ranks 1-2,4-7 of 8 have no readable file")


@pytest.mark.parametrize(
    ("host_rows", "hint"),
    [
        ([launch(1, 0), cpu_op("x", 0, 1)], "ProfilerActivity.CUDA"),
        ([cpu_op("x", 0, 1)], "nothing ran on the device"),
    ],
)
def test_a_rank_without_device_events(host_rows: list[Row], hint: str) -> None:
    problem = problems_of({0: WORK, 1: host_rows})["no-gpu-events"]
    assert (problem.file, problem.severity) == ("rank1.json", "warning")
    assert "rank 1 window 0 has no GPU events" in problem.message
    assert hint in problem.message


def test_launches_without_a_kernel_in_any_file() -> None:
    """The job used a device: host operators are then no compute."""
    report = report_of({0: [launch(1, 0), cpu_op("x", 0, 1), gloo("all_reduce", 0, 1)]})
    assert report.ranks == []
    assert "no-gpu-events" in [problem.kind for problem in report.problems]


def test_figures_for_the_cpu_are_called_so() -> None:
    problem = problems_of({0: [cpu_op("x", 0, 1), gloo("all_reduce", 0, 5)]})["cpu-only"]
    assert problem.severity == "note"


def test_no_step_markers() -> None:
    problem = problems_of({0: WORK})["no-steps"]
    assert (problem.file, problem.severity) == ("rank0.json", "note")
    assert "step()" in problem.message


def test_no_communication() -> None:
    assert problems_of({0: [kernel("a", 0, 10)]})["no-communication"].severity == "note"
    assert "no-communication" not in problems_of({0: [kernel("a", 0, 10)], 1: WORK})


def test_how_much_was_launched_outside_the_steps() -> None:
    """10 us of 40."""
    events = [step(1, 0, 100), launch(1, 1), nccl(0, 10), nccl(20, 30, correlation=1), kernel("a", 0, 1)]
    assert "10.0 us of 40.0 us of communication" in problems_of({0: events})["outside-steps"].message


def test_a_run_without_windows_says_nothing_of_them() -> None:
    assert analyze_run(Run(name="r", source="r", windows=())).problems == []


def test_a_run_in_which_nothing_can_be_analysed_says_so() -> None:
    problem = problems_of({0: [annotation("mine", 0, 10)]})["nothing-to-measure"]
    assert problem.severity == "warning"
    assert "ProfilerActivity" in problem.message

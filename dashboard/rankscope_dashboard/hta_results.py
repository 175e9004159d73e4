"""What HolisticTraceAnalysis answers about a run, as tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rankscope.bridge_hta import explain_overlap, measure_critical_path, quiet
from rankscope.model.report import Report
from rankscope.model.run import Run
from rankscope.renderers.tables import (
    Cell,
    Column,
    Table,
    count_cell,
    duration_cell,
    finish_table,
    number_cell,
    ratio_cell,
    text_cell,
)
from rankscope.units import us_to_ns

if TYPE_CHECKING:
    from hta.trace_analysis import TraceAnalysis

_KERNELS = 8
_IDLE_WORDS = {
    "host_wait": "the host launched too late",
    "kernel_wait": "between two kernels",
    "other": "other",
}
_BOUND_WORDS = {
    "cpu_bound": "the host",
    "gpu_compute_bound": "compute",
    "gpu_communication_bound": "communication",
    "gpu_kernel_kernel_overhead": "gaps between kernels",
    "gpu_kernel_launch_overhead": "launching kernels",
}


def compare_overlap(run: Run, report: Report) -> Table:
    """A row per rank: our overlap of the whole recording, HTA's, and what makes the difference in points."""
    columns = [
        Column(label="Rank"),
        Column(label="rankscope"),
        Column(label="HTA"),
        Column(label="Last step left out"),
        Column(label="Whole microseconds"),
        Column(label="Launch not recorded"),
    ]
    rows = [
        [
            Cell(text=str(row.rank), value=row.rank),
            ratio_cell(row.ours, "no communication"),
            ratio_cell(row.theirs, "HTA finds no communication on a device"),
            _points_cell(row.last_step),
            _points_cell(row.whole_microseconds),
            _points_cell(row.unknown_launch),
        ]
        for row in explain_overlap(run, report)
    ]
    notes = [
        "Added to HTA's figure the last three columns give ours: each is what one habit of HTA's makes. The last "
        "one leaves out kernels whose launch was not recorded. rankscope "
        "measures the whole recording to the nanosecond."
    ]
    return finish_table("Overlap beside ours", columns, rows, notes)


def _points_cell(difference: float | None) -> Cell:
    points = None if difference is None else round(100 * difference, 2) + 0.0  # no "-0.00"
    return number_cell(points, lambda value: f"{value:+.2f} pp", "one of the figures has no value")


def list_idle_time(analysis: TraceAnalysis, ranks: list[int]) -> Table:
    """Idle time of each stream by its reason."""
    with quiet():
        frame, _ = analysis.get_idle_time_breakdown(ranks=ranks, visualize=False)
        rows = [
            [
                Cell(text=str(row["rank"]), value=row["rank"]),
                Cell(text=str(row["stream"]), value=row["stream"]),
                text_cell(_IDLE_WORDS.get(row["idle_category"], str(row["idle_category"]))),
                duration_cell(us_to_ns(row["idle_time"])),
                ratio_cell(row["idle_time_ratio"]),
            ]
            for row in frame.to_dict("records")
        ]
    columns = [
        Column(label="Rank"),
        Column(label="Stream"),
        Column(label="Reason", numeric=False),
        Column(label="Time"),
        Column(label="Share"),
    ]
    return finish_table("Idle time", columns, rows)


def list_kernels(analysis: TraceAnalysis) -> Table:
    """The kernels that take longest, by kind and rank."""
    with quiet():
        _, frame = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=_KERNELS)
        rows = [
            [
                text_cell(str(row["kernel_type"]).lower()),
                text_cell(str(row["name"])),
                Cell(text=str(row["rank"]), value=row["rank"]),
                *(duration_cell(us_to_ns(row[f"{key} (us)"])) for key in ("sum", "mean", "max")),
            ]
            for row in frame.to_dict("records")
        ]
    columns = [
        Column(label="Kind", numeric=False),
        Column(label="Kernel", numeric=False),
        Column(label="Rank"),
        Column(label="Sum"),
        Column(label="Mean"),
        Column(label="Longest"),
    ]
    return finish_table("Kernels", columns, rows)


def list_queues(analysis: TraceAnalysis, ranks: list[int]) -> Table:
    """How many kernels wait in the queue of each stream."""
    with quiet():
        frame = analysis.get_queue_length_summary(ranks=ranks)
        found = [] if frame is None else list(frame["queue_length"].iterrows())
        rows = [
            [
                Cell(text=str(rank), value=rank),
                Cell(text=str(stream), value=stream),
                *(_length(row[key]) for key in ("mean", "50%", "max")),
            ]
            for (rank, stream), row in found
        ]
    columns = [Column(label=label) for label in ("Rank", "Stream", "Mean length", "Median", "Longest")]
    return finish_table("Queue length", columns, rows)


def _length(value: Any) -> Cell:  # noqa: ANN401 - a number of pandas
    return number_cell(
        None if math.isnan(value) else float(value), lambda length: f"{length:.1f}", "nothing is queued"
    )


def find_critical_path(run: Run, rank: int, step: int) -> Table:
    """What the critical path of a step (by its place among the rank's steps) consists of."""
    rows = [
        [
            text_cell(_BOUND_WORDS.get(part.bound_by, part.bound_by)),
            duration_cell(part.time_ns),
            ratio_cell(part.share),
            count_cell(part.pieces),
        ]
        for part in measure_critical_path(run, rank, step)
    ]
    columns = [
        Column(label="Bound by", numeric=False),
        Column(label="Time"),
        Column(label="Share of the path"),
        Column(label="Pieces"),
    ]
    return finish_table("Critical path", columns, rows)


ASKED: tuple[tuple[str, str, Callable[[Any, list[int]], Table]], ...] = (
    (
        "Idle time",
        "Why each stream stood still: a host that launches too late is the usual one to work on.",
        list_idle_time,
    ),
    (
        "Queue length",
        "How many kernels wait on each stream; queues that run empty mean that the host cannot keep up.",
        list_queues,
    ),
    (
        "Kernels",
        "The kernels that take longest on each rank; one that is slower on a single rank is worth a look.",
        lambda analysis, _ranks: list_kernels(analysis),
    ),
)
"""Heading, sentence and question of each table about the whole run."""

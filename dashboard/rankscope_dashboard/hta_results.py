"""What HolisticTraceAnalysis answers about a run, as tables; and why its overlap differs from ours."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rankscope.bridge_hta import to_hta
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


class HtaFault(Exception):  # noqa: N818 - a fault of HTA's, told to the visitor
    """HTA could not answer; the text says why."""


@contextmanager
def _quiet() -> Iterator[None]:
    """HTA's warnings and faults do not leave here, but as one `HtaFault`."""
    logger = logging.getLogger("hta")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as fault:
        # HTA gives up on traces that it does not foresee by whatever its code happens to raise.
        raise HtaFault(f"HTA gave up on this run: {type(fault).__name__}: {fault}") from fault
    finally:
        logger.setLevel(level)


def compare_overlap(run: Run, report: Report) -> Table:
    """A row per rank: our overlap of the whole recording, HTA's, and what makes the difference, in percentage points.

    HTA leaves out the last step, rounds every event to whole microseconds, and looks at nothing before the first and
    after the last step marker. The first two can be asked of it not to; what then remains is the third.
    """
    ours = {row.rank: row.overlap_ratio for row in report.ranks}
    usual, with_last, exact = (
        _ask_overlap(run, include_last_profiler_step=last, exact=exact)
        for last, exact in ((False, False), (True, False), (True, True))
    )
    columns = [
        Column(label="Rank"),
        Column(label="rankscope"),
        Column(label="HTA"),
        Column(label="Last step left out"),
        Column(label="Whole microseconds"),
        Column(label="Only between step markers"),
    ]
    rows = [
        [
            Cell(text=str(rank), value=rank),
            ratio_cell(ours[rank], "no communication"),
            ratio_cell(usual.get(rank), "HTA finds no communication on a device"),
            _change(with_last.get(rank), usual.get(rank)),
            _change(exact.get(rank), with_last.get(rank)),
            _change(ours[rank], exact.get(rank)),
        ]
        for rank in sorted(ours)
    ]
    notes = [
        "Added to HTA's figure the last three columns give ours: each is what one habit of HTA's makes. rankscope "
        "measures the whole recording to the nanosecond."
    ]
    return finish_table("Overlap beside ours", columns, rows, notes)


def _ask_overlap(run: Run, **options: bool) -> dict[int, float | None]:
    with _quiet():
        frame = to_hta(run, **options).get_comm_comp_overlap(visualize=False)
        pairs = zip(frame["rank"].tolist(), frame["comp_comm_overlap_pctg"].tolist(), strict=True)
        return {int(rank): None if math.isnan(percent) else percent / 100 for rank, percent in pairs}


def _change(after: float | None, before: float | None) -> Cell:
    if after is None or before is None:
        return number_cell(None, str, "one of the figures has no value")
    change = round(100 * (after - before), 2) + 0.0  # no "-0.00"
    return Cell(text=f"{change:+.2f} pp", value=change)


def list_idle_time(analysis: TraceAnalysis, ranks: list[int]) -> Table:
    """Idle time of each stream by its reason."""
    with _quiet():
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
    with _quiet():
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
    with _quiet():
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


def find_critical_path(analysis: TraceAnalysis, rank: int, step: int) -> Table:
    """What the critical path of a step consists of.

    Args:
        analysis: HTA's analysis.
        rank: the rank.
        step: which of its step markers, from 0.
    """
    with _quiet():
        graph, is_found = analysis.critical_path_analysis(
            rank=rank, annotation="ProfilerStep", instance_id=step
        )
        if not is_found:
            raise ValueError("it finds no path through this step")
        times = graph.get_critical_path_breakdown().groupby("bound_by")["duration"].agg(["sum", "count"])
    whole = int(times["sum"].sum()) or 1
    rows = [
        [
            text_cell(_BOUND_WORDS.get(str(name), str(name))),
            duration_cell(us_to_ns(int(row["sum"]))),
            ratio_cell(int(row["sum"]) / whole),
            count_cell(int(row["count"])),
        ]
        for name, row in times.sort_values("sum", ascending=False).iterrows()
    ]
    columns = [
        Column(label="Bound by", numeric=False),
        Column(label="Time"),
        Column(label="Share of the path"),
        Column(label="Pieces"),
    ]
    return finish_table("Critical path", columns, rows)


def open_analysis(run: Run) -> TraceAnalysis:
    """HTA's analysis of a run, without the last step, as HTA does it.

    Raises:
        HtaFault: HTA cannot take the run.
    """
    with _quiet():
        return to_hta(run)


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

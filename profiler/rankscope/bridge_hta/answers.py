"""What HTA answers about a run, as plain numbers; and why its overlap differs from ours."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rankscope.bridge_hta.load import to_hta
from rankscope.errors import InputError
from rankscope.model.report import Report
from rankscope.model.run import Run
from rankscope.units import us_to_ns

# What code raises on data that it did not foresee: HTA checks little and raises as it happens to.
_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)


class HtaFaultError(InputError):
    """HTA could not answer; the text says why."""


@contextmanager
def quiet() -> Iterator[None]:
    """HTA's warnings do not leave here, and its faults only as a `HtaFaultError`."""
    logger = logging.getLogger("hta")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except _FAULTS as fault:
        raise HtaFaultError(f"HTA gave up on this run: {type(fault).__name__}: {fault}") from fault
    finally:
        logger.setLevel(level)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapDifference:
    """Hidden share of a rank's communication by both, and what makes the difference; None where one has no value.

    Attributes:
        rank: the rank.
        ours, theirs: the shares.
        last_step: what HTA's leaving out the last step takes from ours.
        whole_microseconds: what its rounding to whole microseconds takes.
        unknown_launch: what its leaving out kernels takes whose launch was not recorded; `theirs` and the three make
            `ours`.
    """

    rank: int
    ours: float | None
    theirs: float | None
    last_step: float | None
    whole_microseconds: float | None
    unknown_launch: float | None


def explain_overlap(run: Run, report: Report) -> list[OverlapDifference]:
    """Each rank's overlap of the whole recording, HTA's, and what makes the difference.

    HTA leaves out the last step, rounds every event to whole microseconds, and leaves out kernels whose launch was not
    recorded. The first two can be asked of it not to; what then remains is the third.

    Raises:
        HtaFaultError: HTA cannot take the run.
    """
    usual, with_last, exact = (
        _ask_overlap(run, include_last_profiler_step=last, exact=exact)
        for last, exact in ((False, False), (True, False), (True, True))
    )
    return [
        OverlapDifference(
            rank=row.rank,
            ours=row.overlap_ratio,
            theirs=usual.get(row.rank),
            last_step=_subtract(with_last.get(row.rank), usual.get(row.rank)),
            whole_microseconds=_subtract(exact.get(row.rank), with_last.get(row.rank)),
            unknown_launch=_subtract(row.overlap_ratio, exact.get(row.rank)),
        )
        for row in sorted(report.ranks, key=lambda row: row.rank)
    ]


def _ask_overlap(run: Run, **options: bool) -> dict[int, float | None]:
    with quiet():
        frame = to_hta(run, **options).get_comm_comp_overlap(visualize=False)
        pairs = zip(frame["rank"].tolist(), frame["comp_comm_overlap_pctg"].tolist(), strict=True)
        return {int(rank): None if math.isnan(percent) else percent / 100 for rank, percent in pairs}


def _subtract(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPart:
    """What a step's critical path owes to one cause: HTA's name of it, time, share of the path, number of pieces."""

    bound_by: str
    time_ns: int
    share: float
    pieces: int


def measure_critical_path(run: Run, rank: int, step: int) -> list[PathPart]:
    """What the critical path of a step consists of, the longest part first.

    Args:
        run: the run, without its last step, as HTA takes it.
        rank: the rank.
        step: which of its step markers, from 0.

    Raises:
        HtaFaultError: HTA finds no path.
    """
    with quiet():
        graph, is_found = to_hta(run).critical_path_analysis(
            rank=rank, annotation="ProfilerStep", instance_id=step
        )
        if not is_found:
            raise ValueError("it finds no path through this step")
        times = graph.get_critical_path_breakdown().groupby("bound_by")["duration"].agg(["sum", "count"])
        whole = int(times["sum"].sum()) or 1
        return [
            PathPart(
                bound_by=str(name),
                time_ns=us_to_ns(int(row["sum"])),
                share=int(row["sum"]) / whole,
                pieces=int(row["count"]),
            )
            for name, row in times.sort_values("sum", ascending=False).iterrows()
        ]

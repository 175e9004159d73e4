"""Who arrived when, for the collectives that waited longest for their last rank."""

from __future__ import annotations

from dataclasses import dataclass

from rankscope.model.late_collectives import pick_late
from rankscope.model.report import CollectiveRow, Report
from rankscope.renderers.escape import make_inert
from rankscope.units import format_duration, format_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One rank at one collective: how long before the last one it came, in ns."""

    rank: int
    before_last_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """One collective.

    Attributes:
        name: "#34, step 10, all_reduce of 25 MiB"; inert.
        group: name of its group; inert.
        lateness_ns: last arrival - second last.
        transfer_ns: how long it took once all had come; None if unknown.
        ranks: in order of arrival; above the limit the first, the last and a few between.
        left_out: number of ranks that are not among them.
    """

    name: str
    group: str
    lateness_ns: int
    transfer_ns: int | None
    ranks: tuple[Arrival, ...]
    left_out: int

    @property
    def span_ns(self) -> int:
        """From the first arrival to the last."""
        return max((arrival.before_last_ns for arrival in self.ranks), default=0)


def list_arrivals(report: Report, *, collectives: int, ranks: int) -> tuple[Arrivals, ...]:
    """The latest collectives whose arrivals the report holds, the latest first.

    Args:
        report: the report.
        collectives, ranks: greatest numbers of each.
    """
    late = [row for row in pick_late(report.collectives, collectives) if row.arrivals_ns]
    return tuple(_describe(row, ranks) for row in late)


def _describe(row: CollectiveRow, limit: int) -> Arrivals:
    arrivals = row.arrivals_ns or {}
    last = max(arrivals.values())
    order = sorted(arrivals, key=lambda rank: (arrivals[rank], rank))
    shown = order if len(order) <= limit else _thin(order, limit)
    size = "" if row.size_bytes is None else f" of {format_size(row.size_bytes)}"
    step = "outside steps" if row.step is None else f"step {row.step}"
    return Arrivals(
        name=make_inert(f"#{row.index}, {step}, {row.op}{size}"),
        group=make_inert(row.group),
        lateness_ns=row.lateness_ns or 0,
        transfer_ns=row.transfer_ns,
        ranks=tuple(Arrival(rank=rank, before_last_ns=last - arrivals[rank]) for rank in shown),
        left_out=len(order) - len(shown),
    )


def _thin(order: list[int], limit: int) -> list[int]:
    """The first, evenly spaced ones, and in full the last quarter of the limit: there the story is."""
    tail = max(limit // 4, 1)
    head = limit - tail
    spread = len(order) - tail
    return [order[index * spread // head] for index in range(head)] + order[-tail:]


def describe_arrivals(arrivals: Arrivals) -> str:
    """One sentence on a collective: who was last, by how much, and what the transfer itself took."""
    transfer = ""
    if arrivals.transfer_ns is not None:
        transfer = f"; the transfer itself took {format_duration(arrivals.transfer_ns)}"
    late = format_duration(arrivals.lateness_ns)
    return f"rank {arrivals.ranks[-1].rank} came {late} after the second last{transfer}"

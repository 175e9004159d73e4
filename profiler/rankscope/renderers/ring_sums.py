"""The usual collective of a group beside what a ring would take for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rankscope.model.report import CollectiveRow, GroupRow, Report
from rankscope.model.ring import Ring, plan_ring
from rankscope.renderers.tables import take_median
from rankscope.renderers.undefined import make_path, reason_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RingSum:
    """The collectives of one operation, group and size: the size that is most frequent, of such the largest.

    Attributes:
        size_bytes: that size.
        ring: the ring's arithmetic; None where it knows none for the operation.
        transfer_ns: median of their transfers; None with its reason.
        transfer_reason: why that is unknown.
        wait_ns: median of the longest wait of each; None if unknown.
    """

    size_bytes: int
    ring: Ring | None
    transfer_ns: int | None
    transfer_reason: str | None
    wait_ns: int | None


def measure_ring(report: Report, group: GroupRow) -> RingSum | None:
    """The usual collective of a group; None where the traces give no sizes.

    A report that keeps the worst rows only gives the medians of all of them as quantiles; these are taken then.
    """
    rows = [row for row in report.collectives if (row.op, row.group) == (group.op, group.group)]
    kinds = {
        kind.size_bytes: kind
        for kind in report.quantiles
        if kind.table == "collectives" and (kind.op, kind.group) == (group.op, group.group)
    }
    counts = Counter({size: kind.count for size, kind in kinds.items()} or (row.size_bytes for row in rows))
    size_bytes = max((size for size in counts if size), key=lambda size: (counts[size], size), default=None)
    if size_bytes is None:
        return None
    same = [row for row in rows if row.size_bytes == size_bytes]
    if kinds:
        kind = kinds[size_bytes]
        transfer_ns = None if kind.transfer_ns is None else kind.transfer_ns.p50
        wait_ns = None if kind.wait_ns is None else kind.wait_ns.p50
    else:
        transfer_ns = take_median([row.transfer_ns for row in same])
        wait_ns = take_median([None if row.wait_ns is None else row.wait_ns.max for row in same])
    return RingSum(
        size_bytes=size_bytes,
        ring=plan_ring(group.op, len(group.ranks) or max((row.ranks for row in rows), default=0), size_bytes),
        transfer_ns=transfer_ns,
        transfer_reason=None if transfer_ns is not None else _why_unknown(report, same),
        wait_ns=wait_ns,
    )


def _why_unknown(report: Report, rows: list[CollectiveRow]) -> str:
    path = make_path("collectives", {"index": rows[0].index}, "transfer_ns") if rows else ""
    return reason_of(report, path) or "it was not found on all its ranks"

"""A summary that stays small: above a limit the worst rows, and quantiles of all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from rankscope.model.report import (
    SUMMARY_ROW_LIMIT,
    BucketRow,
    CausedWaitRow,
    CollectiveRow,
    ProblemRow,
    QuantileRow,
    Quantiles,
    Report,
)

Row = TypeVar("Row", CollectiveRow, BucketRow)


def limit_rows(report: Report, limit: int = SUMMARY_ROW_LIMIT) -> Report:
    """The report with at most `limit` rows of collectives, of buckets and of caused waits.

    Kept are the collectives with the longest wait, the buckets with the most exposed time, and the ranks that
    cost most, in their given order. Where rows were left out, `quantiles` describes all of them by kind, and a
    note says so. A report within the limit is returned as it is.

    Args:
        report: a report, whole or limited already.
        limit: greatest number of rows.
    """
    notes: list[ProblemRow] = []
    quantiles: list[QuantileRow] = []
    collectives, buckets, waits = report.collectives, report.buckets, report.caused_waits
    if len(collectives) > limit:
        kept = _worst(collectives, _longest_wait, limit)
        quantiles += _collective_quantiles(collectives, {id(row) for row in kept})
        notes.append(_note("collectives", len(kept), len(collectives), "with the longest wait"))
        collectives = kept
    if len(buckets) > limit:
        kept_buckets = _worst(buckets, lambda row: row.exposed_ns, limit)
        quantiles += _bucket_quantiles(buckets, {id(row) for row in kept_buckets})
        notes.append(_note("buckets", len(kept_buckets), len(buckets), "with the most exposed time"))
        buckets = kept_buckets
    if len(waits) > limit:
        kept_waits = _worst_ranks(waits, limit)
        notes.append(_note("caused_waits", len(kept_waits), len(waits), "of the ranks that cost most"))
        waits = kept_waits
    if not notes:
        return report
    return replace(
        report,
        collectives=collectives,
        buckets=buckets,
        caused_waits=waits,
        quantiles=[*report.quantiles, *quantiles],
        problems=[*report.problems, *notes],
    )


def _longest_wait(row: CollectiveRow) -> int:
    return -1 if row.wait_ns is None else row.wait_ns.max


def _worst(rows: Sequence[Row], badness: Callable[[Row], int], limit: int) -> list[Row]:
    worst = sorted(range(len(rows)), key=lambda index: (-badness(rows[index]), index))[:limit]
    return [rows[index] for index in sorted(worst)]


def _worst_ranks(rows: Sequence[CausedWaitRow], limit: int) -> list[CausedWaitRow]:
    """Rows of as many whole ranks as the limit allows."""
    of_rank: dict[int, list[CausedWaitRow]] = defaultdict(list)
    for row in rows:
        of_rank[row.rank].append(row)

    def cost(rank: int) -> tuple[int, int, int]:
        found = of_rank[rank]
        return -sum(r.cost_ns or 0 for r in found), -sum(r.lateness_ns or 0 for r in found), rank

    kept: set[int] = set()
    room = limit
    for rank in sorted(of_rank, key=cost):
        room -= len(of_rank[rank])
        if room < 0:
            break
        kept.add(rank)
    return [row for row in rows if row.rank in kept]


def _collective_quantiles(rows: Sequence[CollectiveRow], kept: set[int]) -> list[QuantileRow]:
    kinds: dict[Hashable, list[CollectiveRow]] = defaultdict(list)
    for row in rows:
        kinds[row.group, row.op, row.size_bytes].append(row)
    return [
        QuantileRow(
            table="collectives",
            group=members[0].group,
            op=members[0].op,
            size_bytes=members[0].size_bytes,
            count=len(members),
            kept=sum(id(row) in kept for row in members),
            transfer_ns=_quantiles(row.transfer_ns for row in members),
            wait_ns=_quantiles(None if row.wait_ns is None else row.wait_ns.max for row in members),
            lateness_ns=_quantiles(row.lateness_ns for row in members),
        )
        for members in kinds.values()
    ]


def _bucket_quantiles(rows: Sequence[BucketRow], kept: set[int]) -> list[QuantileRow]:
    kinds: dict[Hashable, list[BucketRow]] = defaultdict(list)
    for row in rows:
        kinds[row.layout, row.index, row.size_bytes].append(row)
    return [
        QuantileRow(
            table="buckets",
            size_bytes=members[0].size_bytes,
            layout=members[0].layout,
            index=members[0].index,
            count=len(members),
            kept=sum(id(row) in kept for row in members),
            transfer_ns=_quantiles(row.transfer_ns for row in members),
            wait_ns=_quantiles(row.wait_ns for row in members),
            exposed_ns=_quantiles(row.exposed_ns for row in members),
        )
        for members in kinds.values()
    ]


def _quantiles(values: Iterable[int | None]) -> Quantiles | None:
    """Median and 95th percentile of the known values: the lower neighbour where they fall between two."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    p50, p95 = np.percentile(known, [50, 95], method="lower").tolist()
    return Quantiles(p50=p50, p95=p95)


def _note(table: str, kept: int, count: int, which: str) -> ProblemRow:
    described = "" if table == "caused_waits" else "; `quantiles` describes all of them"
    return ProblemRow(
        file="",
        offset=None,
        kind="rows-left-out",
        message=f"the summary holds {kept:,} of {count:,} rows of `{table}`: those {which}{described}. "
        "--detail full writes all",
        severity="note",
    )

"""The figures of DDP buckets."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.gate.figures import BUCKET_FIGURES
from rankscope.gate.row import Row, Value, median
from rankscope.model.report import BucketRow, Report

_FIGURES = tuple(figure.name for figure in BUCKET_FIGURES)
_CUT = "the report holds only the buckets with the most exposed time; give traces, or a report with --detail full"


def measure_buckets(report: Report) -> list[Row]:
    """One row per bucket of a layout over its steady steps; over all steps if no bucket has a steady one."""
    found: dict[tuple[int, int], list[BucketRow]] = {}
    for row in [row for row in report.buckets if row.steady] or report.buckets:
        found.setdefault((row.layout, row.index), []).append(row)
    several = len({layout for layout, _ in found}) > 1
    is_cut = any(q.table == "buckets" and q.kept < q.count for q in report.quantiles)
    unknown = _CUT if is_cut else "unknown for this bucket"
    return [
        Row(
            place=f"bucket {index} of layout {layout}" if several else f"bucket {index}",
            keys={"bucket": index, "layout": layout},
            values=dict.fromkeys(_FIGURES) if is_cut else _bucket_values(rows),
            reasons=dict.fromkeys(_FIGURES, unknown),
        )
        for (layout, index), rows in sorted(found.items())
    ]


def _bucket_values(rows: Sequence[BucketRow]) -> dict[str, Value]:
    lasted = sum(row.finished_ns - row.started_ns for row in rows)
    exposed = sum(row.exposed_ns for row in rows)
    return {
        "overlap_ratio": 1 - exposed / lasted if lasted else None,
        "exposed_communication": exposed / len(rows),
        "bus_bandwidth": median([row.bus_bandwidth_gbps for row in rows]),
        "transfer": median([row.transfer_ns for row in rows]),
        "wait": median([row.wait_ns for row in rows]),
        "queue": median([row.queue_ns for row in rows]),
        "host_overhead": median([row.host_overhead_ns for row in rows]),
        "size": rows[0].size_bytes,
    }

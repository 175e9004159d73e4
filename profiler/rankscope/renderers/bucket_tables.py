"""Tables of DDP buckets, and the bucket times of one step on one rank."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from rankscope.model.report import BucketRow, LayoutBucket, LayoutRow, Report
from rankscope.renderers.escape import MESSAGE_LIMIT, make_inert
from rankscope.renderers.tables import (
    Cell,
    Column,
    Table,
    count_cell,
    duration_cell,
    finish_table,
    number_cell,
    ratio_cell,
    size_cell,
    take_median,
    text_cell,
)
from rankscope.renderers.undefined import Reasons, make_path

_COLUMNS = (
    Column(label="Bucket", term="Bucket"),
    Column(label="Bytes"),
    Column(label="Parameters", short="Param.", wide=True),
    Column(label="Host overhead", short="Host", wide=True, term="Host overhead"),
    Column(label="Queue", term="Queue"),
    Column(label="Wait", term="Wait"),
    Column(label="Transfer", term="Transfer"),
    Column(label="Exposed", term="Exposed"),
    Column(label="Hidden", term="Hidden"),
    Column(label="Bus bandwidth", short="Bus", term="Bus bandwidth"),
)

_LAYOUT_COLUMNS = (
    Column(label="Bucket", term="Bucket"),
    Column(label="Bytes"),
    Column(label="Type", numeric=False),
    Column(label="Parameters"),
    Column(label="First to be ready", numeric=False),
    Column(label="Last to be ready", numeric=False),
)


def pick_layout(report: Report) -> LayoutRow | None:
    """The layout that the most steady rows of buckets use; without steady rows the last one."""
    used = Counter(row.layout for row in report.buckets if row.steady)
    if not used:
        return report.bucket_layouts[-1] if report.bucket_layouts else None
    number = max(used, key=lambda layout: (used[layout], layout))
    return next((row for row in report.bucket_layouts if row.layout == number), None)


def build_bucket_table(report: Report, limit: int) -> Table:
    """One row per bucket of the layout in use: medians over the steady steps and ranks; above `limit` the worst."""
    layout = pick_layout(report)
    rows = [] if layout is None else [row for row in report.buckets if row.layout == layout.layout]
    is_steady = any(row.steady for row in rows)
    by_index: dict[int, list[BucketRow]] = defaultdict(list)
    for row in rows:
        if row.steady or not is_steady:
            by_index[row.index].append(row)
    parts = {} if layout is None else {bucket.index: bucket for bucket in layout.buckets}
    reasons = Reasons(report.undefined)
    order = sorted(by_index)
    if len(order) > limit:
        worst = sorted(order, key=lambda index: -(take_median([r.exposed_ns for r in by_index[index]]) or 0))
        order = sorted(worst[:limit])
    cells = [_bucket_cells(index, by_index[index], parts.get(index), reasons) for index in order]
    which = "the steady steps" if is_steady else "all steps, none of which is steady,"
    notes = [f"Times: median over {which} and the ranks."] if cells else []
    if len(order) < len(by_index):
        notes.append(f"Shown: the {len(order):,} of {len(by_index):,} buckets with the most exposed time.")
    return finish_table("Buckets", _COLUMNS, cells, notes)


def _bucket_cells(
    index: int, rows: Sequence[BucketRow], bucket: LayoutBucket | None, reasons: Reasons
) -> list[Cell]:
    def why(figure: str) -> str | None:
        return reasons.find(make_path("buckets", {"index": index}, figure))

    def median(values: Iterable[int | None], figure: str) -> Cell:
        return duration_cell(take_median(list(values)), why(figure))

    total = sum(row.finished_ns - row.started_ns for row in rows)
    exposed = sum(row.exposed_ns for row in rows)
    size = take_median([row.size_bytes for row in rows])
    bandwidths = [row.bus_bandwidth_gbps for row in rows if row.bus_bandwidth_gbps is not None]
    bandwidth = statistics.median(bandwidths) if bandwidths else None
    no_parameters = "the parameters of the bucket are not known"
    return [
        Cell(text=_name(index, bucket), value=index),
        size_cell(size, why("size_bytes")),
        number_cell(len(bucket.parameters) if bucket and bucket.parameters else None,
                    lambda count: f"{count:,}", no_parameters),
        median((row.host_overhead_ns for row in rows), "host_overhead_ns"),
        median((row.queue_ns for row in rows), "queue_ns"),
        median((row.wait_ns for row in rows), "wait_ns"),
        median((row.transfer_ns for row in rows), "transfer_ns"),
        median((row.exposed_ns for row in rows), "exposed_ns"),
        ratio_cell(1 - exposed / total if total else None, "it took no time"),
        number_cell(bandwidth, lambda value: f"{value:.3g} GB/s", why("bus_bandwidth_gbps")),
    ]  # fmt: skip


def _name(index: int, bucket: LayoutBucket | None) -> str:
    """A bucket's number; an FSDP unit's with its name and what is done to it."""
    if bucket is None or bucket.op == "all_reduce" or not bucket.parameters:
        return str(index)
    return f"{index} {make_inert(bucket.parameters[0])} {bucket.op}"


def build_layout_table(report: Report, limit: int) -> Table:
    """What is in each bucket of the layout in use."""
    layout = pick_layout(report)
    buckets = [] if layout is None else [bucket for bucket in layout.buckets if bucket.parameters]
    rows = [
        (
            Cell(text=str(bucket.index), value=bucket.index),
            size_cell(bucket.size_bytes, "the trace gives no size for it"),
            text_cell(bucket.dtype or ""),
            count_cell(len(bucket.parameters)),
            text_cell(bucket.parameters[0]),
            text_cell(bucket.parameters[-1]),
        )
        for bucket in buckets[:limit]
    ]
    notes = [f"Shown: the first {limit:,} of {len(buckets):,} buckets."] if len(buckets) > limit else []
    return finish_table("What is in each bucket", _LAYOUT_COLUMNS, rows, notes)


def describe_layout(report: Report) -> tuple[str, ...]:
    """Which layout the tables show and where its parameters come from; inert sentences."""
    layout = pick_layout(report)
    if layout is None:
        return ()
    count = len(layout.buckets)
    if layout.parameters_from == "annotations":
        return (f"FSDP gathers parameters and reduces gradients in {count:,} transfers per step.",)
    module = f" of {layout.module}" if layout.module else ""
    cap = "" if layout.cap_mb is None else f" under bucket_cap_mb={layout.cap_mb:g}"
    sentences = [f"DDP sends the gradients{module} in {count:,} bucket{'' if count == 1 else 's'}{cap}."]
    if layout.before_rebuild:
        sentences.append(
            "These are the buckets before DDP rebuilt them, which it does once: record later steps to see the others."
        )
    if layout.parameters_from == "gradient sizes":
        sentences.append(
            "Which parameters are in which bucket follows from the order and sizes of the gradients; the collector "
            "(collector.watch(model)) records their names."
        )
    return tuple(make_inert(sentence, MESSAGE_LIMIT) for sentence in sentences)


def pick_bucket_step(report: Report, preferred: int | None = None) -> tuple[BucketRow, ...]:
    """The buckets of one step and backward on one rank, in order: what a drawing shows.

    Args:
        report: the report.
        preferred: step to take if it has buckets.

    Returns:
        Of the preferred step, else of the middle one of the steady steps (of all, if none is steady), on the rank
        with the most exposed time in buckets; () without buckets.
    """
    layout = pick_layout(report)
    rows = [] if layout is None else [row for row in report.buckets if row.layout == layout.layout]
    steady = sorted({row.step for row in rows if row.step is not None and row.steady})
    steps = steady or sorted({row.step for row in rows if row.step is not None})
    if not steps:
        return ()
    step = preferred if preferred in steps else steps[len(steps) // 2]
    of_backward: dict[tuple[int, int, int, str], list[BucketRow]] = defaultdict(list)
    for row in rows:
        if row.step == step:
            of_backward[row.rank, row.window, row.backward, str(row.device)].append(row)
    worst = max(of_backward, key=lambda key: (sum(row.exposed_ns for row in of_backward[key]), -key[0]))
    return tuple(sorted(of_backward[worst], key=lambda row: (row.index, row.started_ns)))


def split_bucket(row: BucketRow) -> tuple[int, int, int, int, int]:
    """Times of a bucket in ns, none before the one before it; an unknown one is that of the next.

    Returns:
        When its gradients were ready, when the host had asked for it too, when it started, when the last rank had
        come, when it was finished.
    """
    asked = max((t for t in (row.ready_ns, row.launched_ns) if t is not None), default=row.started_ns)
    asked = min(asked, row.started_ns)
    ready = asked if row.ready_ns is None else min(row.ready_ns, asked)
    came = row.started_ns + min(row.wait_ns or 0, row.finished_ns - row.started_ns)
    return ready, asked, row.started_ns, came, row.finished_ns

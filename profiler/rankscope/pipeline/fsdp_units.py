"""FSDP units as rows of the table of buckets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankscope.analyses.buckets import measure_buckets
from rankscope.correlate.bucket_layouts import NO_MODULE, Place, SentBucket
from rankscope.correlate.ddp_buckets import NO_GRADIENT, BucketEvents
from rankscope.correlate.device_events import NO_TIME
from rankscope.correlate.fsdp_units import find_units
from rankscope.model.report import BucketRow, LayoutBucket, LayoutRow
from rankscope.pipeline.buckets import WindowBuckets, rows_of_window, sent_of, size_bytes, waits_of
from rankscope.pipeline.together import Together
from rankscope.pipeline.window_results import WindowResults

MODULE = "FSDP"

_Asked = tuple[str, str, SentBucket]
"""Operation, unit and size of a communication."""


def fsdp_rows(
    results: Sequence[WindowResults],
    together: Together,
    origin_ns: int,
    steady: Sequence[int],
    *,
    first_layout: int,
) -> tuple[list[LayoutRow], list[BucketRow]]:
    """Layouts and rows of FSDP's all-gathers and reduce-scatters; none without its annotations.

    A layout is the order of a step; its "parameters" are the module's name.

    Args:
        results: the windows.
        together: matching and clocks.
        origin_ns: absolute time of the report's zero.
        steady: steady steps.
        first_layout: number of the first layout.
    """
    layouts: dict[tuple[_Asked, ...], LayoutRow] = {}
    rows: list[BucketRow] = []
    for part, result in enumerate(results):
        window = _window(result, part, together, layouts, first_layout)
        rows += rows_of_window(window, together, origin_ns, set(steady))
    return list(layouts.values()), sorted(rows, key=lambda r: (r.rank, r.window, r.started_ns, r.index))


def _window(
    result: WindowResults,
    part: int,
    together: Together,
    layouts: dict[tuple[_Asked, ...], LayoutRow],
    first_layout: int,
) -> WindowBuckets:
    communications = result.communications
    units = find_units(communications)
    events = BucketEvents(
        index=units.index,
        host_row=units.host_row,
        last_gradient=np.full(len(units.index), NO_GRADIENT, np.int64),
        step=result.communication_steps[units.index],
        backward=np.zeros(len(units.index), np.int64),
        gradients=result.buckets.gradients,
        by_host_rows=True,
    )
    sent = tuple(sent_of(result, int(i)) for i in units.index)
    ops = tuple(communications.kinds[k].op for k in communications.kind[units.index])
    asked = list(zip(ops, units.unit, sent, strict=True))
    index, layout = np.empty(len(asked), np.int64), np.empty(len(asked), np.int64)
    for number in np.unique(events.step).tolist():
        mine = np.flatnonzero(events.step == number)
        order = tuple(asked[i] for i in mine.tolist())
        index[mine] = np.arange(len(mine))
        layout[mine] = layouts.setdefault(order, _layout_row(first_layout + len(layouts), order)).layout
    collective, wait, transfer = waits_of(together, part, events)
    times = measure_buckets(communications, events)
    is_gather = np.array([op == "all_gather" for op in ops], bool)
    # What an all-gather needs is there long before: a prefetch is no sign of when its shards were ready.
    times.ready_ns[is_gather] = NO_TIME
    times.queue_ns[is_gather] = NO_TIME
    return WindowBuckets(
        result=result,
        events=events,
        times=times,
        collective=collective,
        wait_ns=wait,
        transfer_ns=transfer,
        sent=sent,
        places=tuple(Place(NO_MODULE, i) for i in index.tolist()),
        layout=layout,
        ops=ops,
    )


def _layout_row(number: int, order: tuple[_Asked, ...]) -> LayoutRow:
    """The layout that the communications of a step form, in the order in which the host asked for them."""
    return LayoutRow(
        layout=number,
        cap_mb=None,
        buckets=[
            LayoutBucket(index=i, size_bytes=size_bytes(sent), dtype=sent.dtype, parameters=[unit], op=op)
            for i, (op, unit, sent) in enumerate(order)
        ],
        module=MODULE,
        parameters_from="annotations",
    )

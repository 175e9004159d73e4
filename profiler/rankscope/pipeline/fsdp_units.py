"""FSDP units as rows of the table of buckets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankscope.analyses.buckets import measure_buckets
from rankscope.correlate.bucket_layouts import NO_MODULE, Place
from rankscope.correlate.ddp_buckets import NO_GRADIENT, BucketEvents
from rankscope.correlate.device_events import NO_TIME
from rankscope.correlate.fsdp_units import find_units
from rankscope.model.report import BucketRow, LayoutBucket, LayoutRow
from rankscope.pipeline.buckets import WindowBuckets, rows_of_window, sent_of, size_bytes, waits_of
from rankscope.pipeline.together import Together
from rankscope.pipeline.window_results import WindowResults

MODULE = "FSDP"


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
    layouts: dict[tuple[object, ...], LayoutRow] = {}
    rows: list[BucketRow] = []
    for part, result in enumerate(results):
        window = _window(result, part, together, layouts, first_layout)
        rows += rows_of_window(window, together, origin_ns, set(steady))
    return list(layouts.values()), sorted(rows, key=lambda r: (r.rank, r.window, r.started_ns, r.index))


def _window(
    result: WindowResults,
    part: int,
    together: Together,
    layouts: dict[tuple[object, ...], LayoutRow],
    first_layout: int,
) -> WindowBuckets:
    communications = result.communications
    units = find_units(communications)
    step = result.communication_steps[units.index]
    events = BucketEvents(
        index=units.index,
        host_row=units.host_row,
        last_gradient=np.full(len(units.index), NO_GRADIENT, np.int64),
        step=step,
        backward=np.zeros(len(units.index), np.int64),
        gradients=result.buckets.gradients,
        by_host_rows=True,
    )
    sent = tuple(sent_of(result, int(i)) for i in units.index)
    ops = tuple(communications.kinds[k].op for k in communications.kind[units.index])
    places = [Place(NO_MODULE, 0)] * len(units.index)
    layout = np.full(len(units.index), -1, np.int64)
    for number in np.unique(step).tolist():
        mine = np.flatnonzero(step == number).tolist()
        key = tuple((ops[i], units.unit[i], sent[i]) for i in mine)
        if key not in layouts:
            layouts[key] = LayoutRow(
                layout=first_layout + len(layouts),
                cap_mb=None,
                buckets=[
                    LayoutBucket(
                        index=place,
                        size_bytes=size_bytes(sent[i]),
                        dtype=sent[i].dtype,
                        parameters=[units.unit[i]],
                        op=ops[i],
                    )
                    for place, i in enumerate(mine)
                ],
                module=MODULE,
                parameters_from="annotations",
            )
        layout[mine] = layouts[key].layout
        for place, i in enumerate(mine):
            places[i] = Place(NO_MODULE, place)
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
        places=tuple(places),
        layout=layout,
        ops=ops,
    )

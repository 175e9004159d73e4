"""DDP buckets of all ranks, as rows of the report and as what `advise` works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankscope.advise.ddp_layout import MIB
from rankscope.analyses.buckets import BucketTimes, measure_buckets
from rankscope.correlate.bucket_layouts import NO_MODULE, Place, SentBucket, infer_members, place_buckets
from rankscope.correlate.clocks import correction
from rankscope.correlate.ddp_buckets import BucketEvents
from rankscope.correlate.device_events import NO_TIME
from rankscope.correlate.match import UNMATCHED
from rankscope.correlate.steps import OUTSIDE_STEPS
from rankscope.model.collective import bus_factor, element_size_bytes
from rankscope.model.intervals import Bool, Int64
from rankscope.model.manifest import DdpFacts
from rankscope.model.report import BucketRow, LayoutBucket, LayoutRow
from rankscope.pipeline.together import Together
from rankscope.pipeline.window_results import WindowResults

_ALL_REDUCE = "all_reduce"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBuckets:
    """DDP buckets of one window on one device.

    Attributes:
        result: the window.
        events: its buckets.
        times: their times.
        collective: int64[b], the collective of each, UNMATCHED if it was found on no other rank.
        wait_ns, transfer_ns: int64[b]; NO_TIME unless the collective is complete.
        sent: what each sends.
        places: module and index of each.
        layout: int64[b], number of the layout of each.
        ops: operation of each; () where all are all-reduces.
    """

    result: WindowResults
    events: BucketEvents
    times: BucketTimes
    collective: Int64
    wait_ns: Int64
    transfer_ns: Int64
    sent: tuple[SentBucket, ...]
    places: tuple[Place, ...]
    layout: Int64
    ops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBuckets:
    """DDP buckets of a run: its windows in the order of the results, and the layouts that they number."""

    windows: tuple[WindowBuckets, ...]
    layouts: tuple[LayoutRow, ...]


def collect_buckets(results: Sequence[WindowResults], together: Together) -> RunBuckets:
    """The buckets of all windows."""
    layouts: dict[tuple[object, ...], LayoutRow] = {}
    windows = [_window_buckets(r, i, together, layouts) for i, r in enumerate(results)]
    rows = []
    for number, layout in enumerate(layouts.values()):
        users = [(w, w.events.step[w.layout == number]) for w in windows]
        before = all(_is_unsteady(w.result, steps).all() for w, steps in users)
        rows.append(
            LayoutRow(
                layout=layout.layout,
                cap_mb=None if before else layout.cap_mb,
                buckets=layout.buckets,
                module=layout.module,
                before_rebuild=before,
                parameters_from=layout.parameters_from,
            )
        )
    return RunBuckets(windows=tuple(windows), layouts=tuple(rows))


def _window_buckets(
    result: WindowResults, part: int, together: Together, layouts: dict[tuple[object, ...], LayoutRow]
) -> WindowBuckets:
    communications = result.communications
    events = result.buckets
    sent = tuple(sent_of(result, int(i)) for i in events.index)
    places: list[Place] = [Place(NO_MODULE, 0)] * len(events)
    layout = np.full(len(events), -1, np.int64)
    modules = _modules(result)
    for step, backward in sorted(set(zip(events.step.tolist(), events.backward.tolist(), strict=True))):
        mine = np.flatnonzero((events.step == step) & (events.backward == backward)).tolist()
        found = place_buckets([sent[i] for i in mine], modules)
        for i, place in zip(mine, found, strict=True):
            places[i] = place
        for module in sorted({place.module for place in found}):
            own = [i for i in mine if places[i].module == module]
            layout[own] = _layout_number(result, events, own, sent, module, layouts)
    collective, wait, transfer = waits_of(together, part, events)
    return WindowBuckets(
        result=result,
        events=events,
        times=measure_buckets(communications, events),
        collective=collective,
        wait_ns=wait,
        transfer_ns=transfer,
        sent=sent,
        places=tuple(places),
        layout=layout,
    )


def _modules(result: WindowResults) -> list[DdpFacts]:
    manifest = result.events.window.manifest
    return [] if manifest is None else list(manifest.ddp)


def sent_of(result: WindowResults, index: int) -> SentBucket:
    """What one of the window's communications sends."""
    kind = result.communications.kinds[int(result.communications.kind[index])]
    size = element_size_bytes(kind.dtype)
    elements = kind.size_bytes // size if kind.size_bytes is not None and size else None
    return SentBucket(elements, kind.dtype)


def _layout_number(
    result: WindowResults,
    events: BucketEvents,
    own: list[int],
    sent: Sequence[SentBucket],
    module: int,
    layouts: dict[tuple[object, ...], LayoutRow],
) -> int:
    """Number of the layout that the buckets `own` of one backward and module form; a new one is added."""
    modules = _modules(result)
    key = (module, *(sent[i] for i in own))
    if key in layouts:
        return layouts[key].layout
    names, source = _parameter_names(result, events, own, sent, module)
    facts = modules[module] if module != NO_MODULE else None
    cap = facts.bucket_cap_bytes if facts is not None else None
    layouts[key] = LayoutRow(
        layout=len(layouts),
        cap_mb=None if cap is None else cap / MIB,
        buckets=[
            LayoutBucket(
                index=index, size_bytes=size_bytes(sent[i]), dtype=sent[i].dtype, parameters=names[index]
            )
            for index, i in enumerate(own)
        ],
        module=facts.module if facts is not None else None,
        parameters_from=source,
    )
    return layouts[key].layout


def _parameter_names(
    result: WindowResults, events: BucketEvents, own: list[int], sent: Sequence[SentBucket], module: int
) -> tuple[list[list[str]], str | None]:
    """Names of the parameters of each bucket, and where they come from."""
    if module != NO_MODULE:
        facts = _modules(result)[module]
        return [[facts.parameters[i].name for i in b.parameters] for b in facts.buckets], "collector"
    gradients = events.gradients
    here = (gradients.step == events.step[own[0]]) & (gradients.backward == events.backward[own[0]])
    elements = gradients.elements[here].tolist()
    members = infer_members([sent[i] for i in own], elements) if elements else None
    if members is None:
        return [[] for _ in own], None
    return [[f"#{i} ({elements[i]} elements)" for i in bucket] for bucket in members], "gradient sizes"


def size_bytes(sent: SentBucket) -> int | None:
    """Bytes that a bucket sends; None if unknown."""
    size = element_size_bytes(sent.dtype)
    return None if sent.elements is None or size is None else sent.elements * size


def waits_of(together: Together, part: int, events: BucketEvents) -> tuple[Int64, Int64, Int64]:
    """Collective, wait and transfer of each bucket."""
    comms, times, matching = together.comms, together.times, together.matching
    mine = together.events_of_part[part]
    event_of = np.empty(len(mine), np.int64)
    event_of[comms.index[mine]] = mine
    event = event_of[events.index]
    collective = matching.collective[event]
    at = np.maximum(collective, 0)
    measured = np.zeros(len(event), bool)
    if len(times):
        several = matching.present[at] > 1
        measured = (collective != UNMATCHED) & times.complete[at] & times.synchronising[at] & several
    wait = np.where(measured, together.wait_ns[event], NO_TIME)
    transfer = np.where(measured, times.transfer_ns[at], NO_TIME) if len(times) else wait
    return collective, wait, transfer


def _is_unsteady(result: WindowResults, steps: Int64) -> Bool:
    return np.isin(steps, list(result.unsteady))


def bucket_rows(
    buckets: RunBuckets, together: Together, origin_ns: int, steady: Sequence[int]
) -> list[BucketRow]:
    """One row per bucket, step and rank, in order of rank and time."""
    rows = [
        row for window in buckets.windows for row in rows_of_window(window, together, origin_ns, set(steady))
    ]
    return sorted(rows, key=lambda r: (r.rank, r.window, r.started_ns, r.index))


def rows_of_window(
    window: WindowBuckets, together: Together, origin_ns: int, steady: set[int]
) -> list[BucketRow]:
    """Rows of one window, in the order in which the host asked for them."""
    times, recorded = window.times, window.result.events.window
    clock = together.clocks.of_rank.get(recorded.rank)
    shift = np.zeros(len(window.events), np.int64) if clock is None else correction(clock, times.started_ns)
    shift = shift + origin_ns
    rows = []
    for i in range(len(window.events)):
        duration = int(times.finished_ns[i] - times.started_ns[i])
        hidden, transfer = int(times.hidden_ns[i]), _known(window.transfer_ns[i])
        size = size_bytes(window.sent[i])
        op = window.ops[i] if window.ops else _ALL_REDUCE
        step = int(window.events.step[i])
        rows.append(
            BucketRow(
                step=None if step == OUTSIDE_STEPS else step,
                steady=step in steady,
                layout=int(window.layout[i]),
                index=window.places[i].index,
                rank=recorded.rank,
                size_bytes=size,
                ready_ns=_known(times.ready_ns[i], shift[i]),
                launched_ns=_known(times.launched_ns[i], shift[i]),
                host_overhead_ns=_known(times.host_overhead_ns[i]),
                started_ns=int(times.started_ns[i] - shift[i]),
                finished_ns=int(times.finished_ns[i] - shift[i]),
                queue_ns=_known(times.queue_ns[i]),
                wait_ns=_known(window.wait_ns[i]),
                transfer_ns=transfer,
                exposed_ns=duration - hidden,
                overlap_ratio=hidden / duration if duration else None,
                bus_bandwidth_gbps=_bus_bandwidth(together, int(window.collective[i]), op, size, transfer),
                backward=int(window.events.backward[i]),
                device=window.result.events.device,
                window=recorded.window,
                op=op,
            )
        )
    return rows


def _known(value: np.int64, shift: np.int64 | int = 0) -> int | None:
    return None if value == NO_TIME else int(value - shift)


def _bus_bandwidth(
    together: Together, collective: int, op: str, size: int | None, transfer: int | None
) -> float | None:
    if size is None or not transfer:
        return None
    factor = bus_factor(op, int(together.matching.expected[collective]))
    return None if factor is None else factor * size / transfer

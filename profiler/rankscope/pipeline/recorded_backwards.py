"""The backwards of a run as `advise` replays them, or why they cannot be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankscope.advise.backward import Recorded
from rankscope.advise.ddp_layout import Bucket, Gradient, initial_layout, rebuilt_layout
from rankscope.correlate.bucket_layouts import NO_MODULE
from rankscope.correlate.clocks import Clocks, correction
from rankscope.correlate.ddp_buckets import NO_GRADIENT
from rankscope.correlate.device_events import NO_TIME
from rankscope.correlate.gradient_rows import device_ready_times, find_copies_back
from rankscope.correlate.launches import NO_ROW
from rankscope.model.collective import element_size_bytes
from rankscope.model.intervals import Int64
from rankscope.model.manifest import DdpFacts
from rankscope.model.table import NO_ID
from rankscope.pipeline.bucket_members import members_of, subsequence
from rankscope.pipeline.buckets import RunBuckets, WindowBuckets, size_bytes
from rankscope.units import us_to_ns

_MOST_BACKWARDS = 20
_FEWEST_BACKWARDS = 3
_PAUSE_NS = us_to_ns(100)
_RECORD_SIZES = "record with rankscope.Collector and watch(model), or with record_shapes=True"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backwards:
    """What can be replayed.

    Attributes:
        recorded: synchronised backwards of steady steps, on all ranks.
        facts: what the collector says of the module; None without it.
        reason: why nothing can be replayed, and what to record; "" if something can.
    """

    recorded: tuple[Recorded, ...] = ()
    facts: DdpFacts | None = None
    reason: str = ""

    def lay_out(self, caps: Sequence[int]) -> list[Bucket]:
        """Buckets for caps in bytes, over gradients in ready order."""
        gradients = self.recorded[0].gradients
        facts = self.facts
        if facts is None or not _never_rebuilds(facts) or len(facts.ready_order) != len(gradients):
            return rebuilt_layout(gradients, caps)
        place = {parameter: ready for ready, parameter in enumerate(facts.ready_order)}
        in_parameters = [gradients[place[i]] for i in range(len(gradients))]
        return [
            Bucket(
                size_bytes=bucket.size_bytes,
                dtype=bucket.dtype,
                gradients=tuple(place[i] for i in bucket.gradients),
            )
            for bucket in initial_layout(in_parameters, caps)
        ]


def _never_rebuilds(facts: DdpFacts) -> bool:
    return bool(facts.find_unused_parameters) and not facts.static_graph and not facts.has_rebuilt_buckets


def collect_backwards(
    buckets: RunBuckets, clocks: Clocks, steady: Sequence[int], ranks: Sequence[int]
) -> Backwards:
    """The synchronised backwards of the steady steps, on all ranks.

    Args:
        buckets: DDP buckets of all windows.
        clocks: the ranks' clocks.
        steady: steady steps.
        ranks: all ranks of the job.
    """
    windows = [w for w in buckets.windows if len(w.events)]
    facts = _only_module(windows)
    if isinstance(facts, str):
        return Backwards(reason=facts)
    units: dict[tuple[int, int, int], dict[int, _Part]] = defaultdict(dict)
    reason = (
        "no step holds a whole backward with buckets on all ranks; record at least two whole steady steps"
    )
    for window in windows:
        recorded = window.result.events.window
        for part in _parts(window, clocks, set(steady), facts):
            if isinstance(part, str):
                reason = part
            else:
                units[recorded.window, part.step, part.backward][recorded.rank] = part
    whole = [list(by_rank.values()) for by_rank in units.values() if set(by_rank) == set(ranks)]
    joined = [r for parts in whole if (r := _join(parts, windows)) is not None]
    if not joined:
        return Backwards(facts=facts, reason=reason)
    usual = joined[-1].gradients
    alike = [r for r in joined if r.gradients == usual][-_MOST_BACKWARDS:]
    return Backwards(recorded=tuple(_ordinary(alike)), facts=facts)


def _ordinary(backwards: Sequence[Recorded]) -> list[Recorded]:
    """The half of the backwards, three at least, whose lengths are nearest to the median: no hiccups among them."""
    lengths = np.array([r.end_ns - int(r.ready_ns[:, 0].min()) for r in backwards])
    nearest = np.argsort(np.abs(lengths - np.median(lengths)), kind="stable")
    return [backwards[i] for i in sorted(nearest[: max(-(-len(backwards) // 2), _FEWEST_BACKWARDS)].tolist())]


def _only_module(windows: Sequence[WindowBuckets]) -> DdpFacts | str | None:
    """The one DDP module of the run; None without the collector's facts; a text if there are several."""
    manifests = [w.result.events.window.manifest for w in windows]
    modules = {place.module for w in windows for place in w.places}
    if len(modules - {NO_MODULE}) > 1:
        return "several DDP modules take part; record a run in which only one of them trains"
    for manifest in manifests:
        if manifest is not None and manifest.ddp:
            chosen = next(iter(modules - {NO_MODULE}), 0)
            return manifest.ddp[chosen] if chosen < len(manifest.ddp) else None
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One backward on one rank."""

    step: int
    backward: int
    gradients: tuple[Gradient, ...]
    ready_ns: Int64
    issued_ns: Int64
    computed_ns: Int64
    copied_ns: int
    members: tuple[tuple[int, ...], ...]
    sent_bytes: tuple[int, ...]
    started_ns: Int64
    finished_ns: Int64


def _parts(
    window: WindowBuckets, clocks: Clocks, steady: set[int], facts: DdpFacts | None
) -> list[_Part | str]:
    events = window.events
    keys = sorted(set(zip(events.step.tolist(), events.backward.tolist(), strict=True)))
    keys = [key for key in keys if key[0] in steady][-_MOST_BACKWARDS:]
    times = _window_times(window)
    return [_part(window, times, clocks, step, backward, facts) for step, backward in keys]


def _part(
    window: WindowBuckets,
    moments: _WindowTimes,
    clocks: Clocks,
    step: int,
    backward: int,
    facts: DdpFacts | None,
) -> _Part | str:
    events, times = window.events, window.times
    rank = window.result.events.window.rank
    if not events.by_host_rows:
        return f"the trace holds no host operators; {_RECORD_SIZES} and ProfilerActivity.CPU"
    all_gradients = events.gradients
    here = np.flatnonzero((all_gradients.step == step) & (all_gradients.backward == backward))
    mine = np.flatnonzero((events.step == step) & (events.backward == backward))
    mine = mine[np.argsort([window.places[i].index for i in mine.tolist()], kind="stable")]
    if (window.transfer_ns[mine] == NO_TIME).any():
        return "a bucket was not found on all ranks, so its transfer cannot be told; record every rank"
    found = _gradients(window, here, facts)
    if found is None:
        return f"the sizes of the parameters are not in the trace; {_RECORD_SIZES}"
    gradients, here = found
    ready, issued = moments.ready_ns[here], moments.issued_ns[here]
    clock = clocks.of_rank.get(rank)
    if clock is None or (ready == NO_TIME).any():
        return "the trace does not tell when gradients were ready on every rank; record every rank from one start"

    def common(values: Int64) -> Int64:
        return values - correction(clock, values)

    sizes = [size_bytes(window.sent[i]) for i in mine.tolist()]
    members = members_of(window, mine, gradients, facts)
    if members is None or any(size is None for size in sizes):
        return f"it cannot be told which parameters make up which bucket; {_RECORD_SIZES}"
    return _Part(
        step=step,
        backward=backward,
        gradients=gradients,
        ready_ns=common(np.maximum.accumulate(ready)),
        issued_ns=common(issued),
        computed_ns=common(_computed(window, int(ready.max()), int(times.finished_ns[mine].max()))),
        copied_ns=_copied(window, moments, step, int(times.finished_ns[mine].max())),
        members=members,
        sent_bytes=tuple(size or 0 for size in sizes),
        started_ns=common(times.started_ns[mine]),
        finished_ns=common(times.finished_ns[mine]),
    )


def _gradients(
    window: WindowBuckets, here: Int64, facts: DdpFacts | None
) -> tuple[tuple[Gradient, ...], Int64] | None:
    """Gradients of one backward in ready order, and which of the rows `here` they are; None if unknown.

    With the collector's facts they are DDP's parameters, and gradients of anything else are left out; without, all
    whose shapes were recorded.
    """
    rows = window.events.gradients
    elements = rows.elements[here].tolist()
    if facts is not None and facts.ready_order:
        ordered = [facts.parameters[i] for i in facts.ready_order if i < len(facts.parameters)]
        chosen = subsequence(elements, [p.elements for p in ordered])
        if chosen is not None:
            known = [Gradient(elements=p.elements, dtype=p.dtype, size_bytes=p.size_bytes) for p in ordered]
            return tuple(known), here[chosen]
    found = []
    for count, index in zip(elements, here.tolist(), strict=True):
        dtype = rows.dtype[index]
        size = element_size_bytes(dtype)
        if count == NO_ID or dtype is None or size is None:
            return None
        found.append(Gradient(elements=count, dtype=dtype, size_bytes=count * size))
    return (tuple(found), here) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _WindowTimes:
    """Moments of a whole window, worked out once.

    Attributes:
        ready_ns: int64[g], when each gradient was in place; NO_TIME if unknown.
        issued_ns: int64[g], when the host thread was done with it, apart from asking for buckets.
        copies: int64[c], rows of copies back from the buckets.
    """

    ready_ns: Int64
    issued_ns: Int64
    copies: Int64


def _window_times(window: WindowBuckets) -> _WindowTimes:
    events, device = window.events, window.result.events
    table, rows = device.table, events.gradients.rows
    issued = table.ends_of(rows)
    asked = np.flatnonzero((events.host_row != NO_ROW) & (events.last_gradient != NO_GRADIENT))
    np.minimum.at(issued, events.last_gradient[asked], table.start_ns[events.host_row[asked]])
    ready = issued
    if device.device != "cpu":
        ready = device_ready_times(device, table.lane[rows].astype(np.int64), table.ends_of(rows))
    return _WindowTimes(ready_ns=ready, issued_ns=issued, copies=find_copies_back(device))


def _computed(window: WindowBuckets, ready_ns: int, finished_ns: int) -> Int64:
    """When compute ended that went on without a pause after the last gradient and before the last bucket, int64[1]."""
    events = window.result.events
    rows = np.sort(np.concatenate([events.compute, events.memory]))
    starts, ends = events.table.start_ns[rows], events.table.ends_of(rows)
    after = (starts >= ready_ns) & (starts < finished_ns)
    end = ready_ns
    for start, row_end in zip(starts[after].tolist(), ends[after].tolist(), strict=True):
        if start > end + _PAUSE_NS:
            break
        end = max(end, row_end)
    return np.array([end], np.int64)


def _copied(window: WindowBuckets, moments: _WindowTimes, step: int, finished_ns: int) -> int:
    """Time that copying gradients back out of the buckets takes after the last one has arrived, in ns."""
    rows = moments.copies
    table = window.result.events.table
    after = (table.start_ns[rows] >= finished_ns) & (
        window.result.spans.step_at(table.start_ns[rows]) == step
    )
    return int(table.duration_ns[rows[after]].sum())


def _join(parts: Sequence[_Part], windows: Sequence[WindowBuckets]) -> Recorded | None:
    """One backward on all ranks, or None if the ranks disagree on it."""
    first = parts[0]
    if any(
        (p.gradients, p.members, p.sent_bytes) != (first.gradients, first.members, first.sent_bytes)
        for p in parts
    ):
        return None
    host_ns, delay_ns, on_cpu = _overheads(windows)
    return Recorded(
        step=first.step,
        gradients=first.gradients,
        ready_ns=np.stack([p.ready_ns for p in parts]),
        issued_ns=np.stack([p.issued_ns for p in parts]),
        computed_ns=np.concatenate([p.computed_ns for p in parts]),
        copied_ns=np.array([p.copied_ns for p in parts], np.int64),
        buckets=tuple(
            Bucket(
                size_bytes=sum(first.gradients[i].size_bytes for i in members),
                dtype=first.gradients[members[0]].dtype,
                gradients=members,
            )
            for members in first.members
        ),
        sent_bytes=np.array(first.sent_bytes, np.int64),
        started_ns=np.stack([p.started_ns for p in parts]),
        finished_ns=np.stack([p.finished_ns for p in parts]),
        host_ns=host_ns,
        start_delay_ns=delay_ns,
        on_cpu=on_cpu,
    )


def _overheads(windows: Sequence[WindowBuckets]) -> tuple[int, int, bool]:
    """Host time per bucket, delay of a start that nothing holds up, and whether the host computes."""
    on_cpu = windows[0].result.events.device == "cpu"
    host: list[int] = []
    delays: list[int] = []
    for window in windows:
        events, times, table = window.events, window.times, window.result.events.table
        if on_cpu:
            rows = events.host_row[events.host_row != NO_ROW]
            host += table.duration_ns[rows].tolist()
        else:
            host += times.host_overhead_ns[times.host_overhead_ns != NO_TIME].tolist()
        firsts = np.array([place.index == 0 for place in window.places], bool)
        delays += times.queue_ns[firsts & (times.queue_ns != NO_TIME)].tolist()
    return _median(host), _median(delays), on_cpu


def _median(values: list[int]) -> int:
    return int(np.median(values)) if values else 0

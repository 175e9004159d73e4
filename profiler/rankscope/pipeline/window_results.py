"""Everything worked out for one window on one device, before the windows are put together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankscope.analyses.overlap import WindowOverlap, measure_overlap
from rankscope.analyses.step_overlap import StepOverlap, measure_steps
from rankscope.correlate.communications import Communications, resolve_communications
from rankscope.correlate.ddp_buckets import BucketEvents, bucket_sizes, buckets_by_sizes, find_buckets
from rankscope.correlate.ddp_rebuild import Rebuild, find_rebuild
from rankscope.correlate.device_events import DeviceEvents
from rankscope.correlate.steps import OUTSIDE_STEPS, StepSpans, find_steps, steps_of
from rankscope.model.intervals import Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowResults:
    """Results of one window on one device.

    Attributes:
        events: its rows by class.
        spans: its steps.
        communications: its communication events, resolved.
        communication_steps: int64 step number of each of them.
        buckets: DDP buckets among them.
        rebuild: where DDP rebuilt its buckets, if it did.
        unsteady: steps before that.
        overlap: union measures of the window.
        steps: union measures per step.
    """

    events: DeviceEvents
    spans: StepSpans
    communications: Communications
    communication_steps: Int64
    buckets: BucketEvents
    rebuild: Rebuild | None
    unsteady: frozenset[int]
    overlap: WindowOverlap
    steps: list[StepOverlap]


def analyze_window(events: DeviceEvents, world_size: int | None) -> WindowResults:
    """Results of one window on one device."""
    spans = find_steps(events.table)
    communications = resolve_communications(events, world_size)
    buckets = find_buckets(communications, spans, steps_of(events, spans, communications.rows))
    rebuild = find_rebuild(communications, spans) or _rebuild_by_sizes(communications, buckets)
    communication_steps = _communication_steps(communications, spans, rebuild)
    unsteady = frozenset(n for n in spans.numbers.tolist() if rebuild is not None and n < rebuild.step)
    step_of_event = {
        "compute": steps_of(events, spans, events.compute),
        "communication": communication_steps,
        "memory": steps_of(events, spans, events.memory),
    }
    return WindowResults(
        events=events,
        spans=spans,
        communications=communications,
        communication_steps=communication_steps,
        buckets=buckets,
        rebuild=rebuild,
        unsteady=unsteady,
        overlap=measure_overlap(events),
        steps=measure_steps(events, spans, step_of_event, unsteady),
    )


def _rebuild_by_sizes(communications: Communications, buckets: BucketEvents) -> Rebuild | None:
    """The rebuild that only the sizes of the buckets show: its broadcasts are not in the trace."""
    found = buckets_by_sizes(buckets.step, bucket_sizes(communications, buckets.index))
    return None if found is None else Rebuild(step=found[1], index=np.empty(0, np.int64))


def _communication_steps(communications: Communications, spans: StepSpans, rebuild: Rebuild | None) -> Int64:
    """Step of each communication event; the rebuild's broadcasts close the step before it."""
    steps = steps_of(communications.events, spans, communications.rows)
    if rebuild is None:
        return steps
    steps = steps.copy()
    position = int(np.flatnonzero(spans.numbers == rebuild.step)[0])
    steps[rebuild.index] = spans.numbers[position - 1] if position > 0 else OUTSIDE_STEPS
    return steps

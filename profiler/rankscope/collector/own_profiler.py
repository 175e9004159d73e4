"""The same file and the same facts for people who keep their own `torch.profiler`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from rankscope.collector.facts import WindowFacts, read_clocks
from rankscope.collector.guard import Guard
from rankscope.collector.joint import JointActions
from rankscope.collector.membership import Membership
from rankscope.collector.options import RankSelection, parse_calibrate, parse_output, require_torch
from rankscope.collector.saving import TraceSaver
from rankscope.collector.watching import WatchedModules
from rankscope.model.manifest import ClockSample

if TYPE_CHECKING:
    from torch.profiler import profile

_NO_STEP_TIMES = "recorded by the user's own torch.profiler: wall times of steps are unknown"


def on_trace_ready(
    directory: str | os.PathLike[str],
    *,
    model: object = None,
    labels: Mapping[str, object] | None = None,
    max_trace_mb: float | None = None,
    stagger_seconds: float | None = None,
    scrub: bool = False,
    calibrate: bool | float = False,
    sync_clocks: bool = False,
) -> Callable[[profile], None]:
    """A handler for `torch.profiler.profile(on_trace_ready=...)` that writes what a `Collector` writes.

    Args:
        directory: folder of the run, the same for all ranks.
        model: the DDP module, or several in a list, whose buckets are to be explained.
        labels: free facts about the run.
        max_trace_mb: drop a compressed trace larger than this, in MiB.
        stagger_seconds: time in seconds over which ranks spread their writing; see `Collector`.
        scrub: take host names and paths out.
        calibrate: measure the job's all-reduce over message sizes once, after the first window; see `Collector`.
            All ranks must record.
        sync_clocks: compare clocks at the end of each window; see `Collector`. All ranks must record.

    Returns:
        The handler. A fault in it becomes one `RankscopeWarning`; training and profiling go on.

    Raises:
        UsageError: an option makes no sense.
        RankscopeError: torch cannot be imported.
    """
    faults: list[str] = []
    calibrate_seconds = parse_calibrate(calibrate, faults)
    options = parse_output(
        directory,
        faults,
        labels=labels,
        max_trace_mb=max_trace_mb,
        stagger_seconds=stagger_seconds,
        scrub=scrub,
    )
    require_torch()
    watched = WatchedModules()
    guard = Guard(clean_up=lambda: None)
    for one in _list_models(model):
        guard.run(partial(watched.add, one))
    windows = _Windows(
        saver=TraceSaver(options, watched, Membership()),
        joint=JointActions(
            calibrate_seconds=calibrate_seconds,
            sync_clocks=sync_clocks,
            selection=RankSelection(),
            watched=watched,
        ),
    )
    return lambda profiler: guard.run(lambda: windows.save(profiler))


@dataclass(slots=True, kw_only=True)
class _Windows:
    """The windows of one profiler; `opened` is what the clocks said when the next one began."""

    saver: TraceSaver
    joint: JointActions
    opened: ClockSample = field(default_factory=read_clocks)

    def save(self, profiler: profile) -> None:
        """Write the window that has just ended."""
        clock_samples = [self.opened, read_clocks()]
        is_together = sys.exc_info()[0] is None  # a rank that is leaving with an exception leaves alone
        if is_together:
            self.joint.compare_clocks()

        def export(path: str) -> None:
            profiler.export_chrome_trace(path)
            if is_together:
                self.joint.calibrate()

        def describe() -> WindowFacts:
            return WindowFacts(
                index=len(self.saver.paths),
                clock_samples=clock_samples,
                notes=[_NO_STEP_TIMES, *self.joint.take_notes()],
                clock_offsets=self.joint.take_offsets(),
                calibration=self.joint.take_calibration(),
            )

        self.saver.save(export, describe, is_urgent=not is_together)
        self.opened = clock_samples[-1]


def _list_models(model: object) -> list[object]:
    if model is None:
        return []
    # A Sequential can be iterated too: only plain containers mean several models.
    return list(model) if isinstance(model, (list, tuple)) else [model]

"""The two lines in a training script: `with Collector(...) as collector:` and `collector.step()`."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import TypeVar

from rankscope.collector.afterwards import start_afterwards
from rankscope.collector.facts import WindowFacts
from rankscope.collector.guard import Guard
from rankscope.collector.joint import JointActions
from rankscope.collector.membership import Membership
from rankscope.collector.options import (
    ProfilerFlags,
    parse_calibrate,
    parse_output,
    parse_ranks,
    require_torch,
)
from rankscope.collector.pushing import Push, join_actions
from rankscope.collector.recording import Recording
from rankscope.collector.saving import TraceSaver
from rankscope.collector.schedule import Schedule, Window
from rankscope.collector.step_times import describe_steps
from rankscope.collector.warning import warn
from rankscope.collector.watching import WatchedModules
from rankscope.errors import RankscopeError

_NEVER = sys.maxsize
_MOST_STEP_TIMES = 10_000  # kept for the manifest; a year-long wait must not fill the memory

Model = TypeVar("Model")


class Collector:
    """Records this rank with `torch.profiler` and writes one trace per window, with the facts about it.

    Use it as a context manager round the training loop, on every rank, and call `step()` at the end of each
    training step. It never talks to other ranks unless `calibrate` or `sync_clocks` ask for it. Any fault of its own
    becomes one `RankscopeWarning`, after which it does nothing more; the training goes on.

    Args:
        directory: folder of the run, the same for all ranks; made if absent. Files are named
            `rank_00007.<window>.pt.trace.json.gz` and never overwritten.
        wait: steps of each cycle that cost nothing.
        warmup: steps in which the profiler runs without keeping events.
        active: recorded steps.
        repeat: number of windows; 0 records windows until training ends.
        skip_first: steps before the first cycle.
        ranks: ranks that record: None for all, a list such as [0, 7], or N for every N-th.
        record_shapes: keep shapes of operands; None keeps them where sizes of collectives would be lost
            otherwise (gloo and CPU, NCCL below torch 2.12).
        with_stack: keep Python stacks (large and slow).
        profile_memory: keep allocations.
        labels: free facts about the run, such as {"commit": "1a2b3c"}.
        max_trace_mb: limit for one compressed trace in MiB. A larger one is dropped with a warning, and
            collecting stops, since later windows would be as large.
        stagger_seconds: time in seconds over which the ranks spread their writing, rank r waiting
            r / world_size of it. None: no wait up to 64 ranks, else 10 ms per rank, at most 30 s.
        scrub: take host names and paths out of traces.
        calibrate: measure the job's all-reduce over message sizes once, after the first window, for about 3 s or
            the seconds given. All ranks must call `step()`; see docs/collect.md.
        sync_clocks: compare this rank's clock with rank 0's at both ends of each window, over the rendezvous
            store. All ranks must call `step()`; at most 5 s each time.
        when_done: called with `directory` on the lowest recording rank, on a thread of its own, after its last
            window has been written. Other ranks may still be writing theirs.
        push: address of a dashboard, or a `Push` with name and tags, to which the lowest recording rank sends the
            run after its last window, beside the training and after `when_done`.
        enabled: False makes every method do nothing.

    Raises:
        UsageError: an option makes no sense; all such options are named.
        RankscopeError: torch cannot be imported.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        wait: int = 1,
        warmup: int = 1,
        active: int = 3,
        repeat: int = 1,
        skip_first: int = 0,
        ranks: Iterable[int] | int | None = None,
        record_shapes: bool | None = None,
        with_stack: bool = False,
        profile_memory: bool = False,
        labels: Mapping[str, object] | None = None,
        max_trace_mb: float | None = None,
        stagger_seconds: float | None = None,
        scrub: bool = False,
        calibrate: bool | float = False,
        sync_clocks: bool = False,
        when_done: Callable[[Path], object] | None = None,
        push: Push | str | None = None,
        enabled: bool = True,
    ) -> None:
        self._schedule = Schedule(
            wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first
        )
        faults = self._schedule.list_faults()
        self._selection = parse_ranks(ranks, faults)
        calibrate_seconds = parse_calibrate(calibrate, faults)
        self._options = parse_output(
            directory,
            faults,
            labels=labels,
            max_trace_mb=max_trace_mb,
            stagger_seconds=stagger_seconds,
            scrub=scrub,
        )
        self._flags = ProfilerFlags(
            record_shapes=record_shapes, with_stack=with_stack, profile_memory=profile_memory
        )
        self._is_off = not enabled
        if enabled:
            require_torch()
        self._watched, self._membership = WatchedModules(), Membership()
        self._saver = TraceSaver(self._options, self._watched, self._membership)
        self._joint = JointActions(
            calibrate_seconds=calibrate_seconds,
            sync_clocks=sync_clocks,
            selection=self._selection,
            watched=self._watched,
        )
        self._when_done = join_actions(when_done, push, self._selection, self._membership)
        self._guard = Guard(clean_up=self._abandon)
        self._recording: Recording | None = None
        self._attended: Window | None = None  # a window of which this rank only shares the joint actions
        self._has_started = False
        # All that step() touches: the running step, when each step began, and the first step that needs work.
        self._step = 0
        self._starts: deque[int] = deque(maxlen=_MOST_STEP_TIMES)
        self._wake = 0 if enabled else _NEVER

    @property
    def files(self) -> tuple[Path, ...]:
        """The traces that this process has written so far."""
        return tuple(self._saver.paths)

    def __enter__(self) -> Collector:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(is_interrupted=kind is not None)

    def start(self) -> None:
        """Begin with step 0."""
        if not self._is_off:
            self._guard.run(self._start)

    def step(self) -> None:
        """End the running training step and begin the next one."""
        self._step += 1
        self._starts.append(perf_counter_ns())
        if self._step >= self._wake:
            self._guard.run(self._advance)

    def watch(self, model: Model) -> Model:
        """Keep the bucket layout of `model`, a DDP module (several may be watched); returns `model`."""
        if not self._is_off:
            self._guard.run(lambda: self._watched.add(model))
        return model

    def stop(self) -> None:
        """Write what is being recorded and record no more."""
        self._end(is_interrupted=False)

    def _start(self) -> None:
        if self._has_started:
            raise RankscopeError("start() was called twice; one Collector records one run")
        self._has_started = True
        self._starts.append(perf_counter_ns())
        if self._is_left_out():
            if not self._joint.concerns(self._membership.identity.rank):
                self._switch_off()
            self._plan()
            return
        # Now rather than after minutes of training: a directory that cannot be written
        directory = self._options.directory
        directory.mkdir(parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK | os.X_OK):
            raise RankscopeError(f"{directory} cannot be written by this user")
        self._plan()

    def _advance(self) -> None:
        if not self._has_started:
            raise RankscopeError("step() was called before start(); use `with Collector(...) as collector:`")
        self._move()
        # The step that now begins must not be charged with what the collector just did.
        self._starts[-1] = perf_counter_ns()

    def _move(self) -> None:
        """Bring the recording to the step that now begins."""
        recording = self._recording
        if recording is not None and self._step < recording.window.end:
            recording.advance(self._step)
            self._wake = self._step + 1
            return
        if recording is not None:
            self._close_window()
        elif self._attended is not None:
            self._attended = None
            self._joint.compare_clocks()
            self._joint.calibrate()
        self._plan()

    def _plan(self) -> None:
        """Begin the window that starts with the running step, or sleep until the next one."""
        window = None if self._is_off else self._schedule.find_window(self._step)
        self._wake = _NEVER if window is None else window.first
        if window is None or window.first > self._step:
            self._finish_if_last(window)
            return
        if self._is_left_out():
            self._attend(window)
            return
        self._joint.compare_clocks()
        self._recording = Recording(window, self._flags, self._watched)
        self._recording.start()
        self._wake = self._step + 1

    def _attend(self, window: Window) -> None:
        """Share the joint actions of a window that this rank does not record."""
        if not self._joint.concerns(self._membership.identity.rank):
            self._switch_off()
            return
        self._attended = window
        self._joint.compare_clocks()
        self._wake = window.end

    def _close_window(self, *, is_interrupted: bool = False) -> None:
        recording = self._recording
        if recording is None:
            return
        recording.finish(is_interrupted=is_interrupted)
        self._recording = None
        finished = self._step - recording.window.active_from
        is_whole = finished >= recording.window.active
        if is_whole:
            self._joint.compare_clocks()

        def export(path: str) -> None:
            recording.export(path)
            if is_whole:  # only now: torch might mix a second profiler with a window that is not yet exported
                self._joint.calibrate()

        if finished >= (0 if is_interrupted else 1) and not self._is_left_out():
            self._saver.save(export, lambda: self._describe(recording, finished), is_urgent=is_interrupted)
        self._starts = deque(list(self._starts)[-1:], maxlen=_MOST_STEP_TIMES)

    def _describe(self, recording: Recording, finished: int) -> WindowFacts:
        window = recording.window
        is_whole = finished >= window.active
        early = [] if is_whole else [f"recording ended after {finished} of {window.active} steps"]
        return WindowFacts(
            index=window.index,
            steps=describe_steps(list(self._starts), self._step, window, recording.clock_samples[-1]),
            clock_samples=recording.clock_samples,
            unfinished_step=None if is_whole else self._step,
            notes=[*early, *self._joint.take_notes()],
            clock_offsets=self._joint.take_offsets(),
            calibration=self._joint.take_calibration(),
        )

    def _finish_if_last(self, window: Window | None) -> None:
        """Start what the user wants done with the run, once, on one rank."""
        action = self._when_done
        is_first = self._membership.identity.rank == self._selection.first
        if window is None and action is not None and is_first and self._saver.paths:
            self._when_done = None
            start_afterwards(action, self._options.directory)

    def _end(self, *, is_interrupted: bool) -> None:
        if self._is_off:
            return
        self._guard.run(lambda: self._close_window(is_interrupted=is_interrupted))
        self._guard.run(lambda: self._finish_if_last(None))
        self._joint.decline()
        self._wake = _NEVER
        self._is_off = True
        if not is_interrupted and not self._saver.paths:
            self._guard.run(self._say_why_empty)

    def _say_why_empty(self) -> None:
        if not self._is_left_out():
            warn(self._schedule.explain_nothing_recorded(self._step))

    def _is_left_out(self) -> bool:
        """Whether this rank is known and not among those that record."""
        identity = self._membership.refresh()
        if self._selection.is_everyone:
            return False
        # Before the process group exists every rank looks like rank 0 of 1: at the start that is no answer.
        is_known = identity.certain or self._step >= self._schedule.window(0).first
        return is_known and not self._selection.includes(identity.rank)

    def _switch_off(self) -> None:
        self._is_off = True
        self._wake = _NEVER

    def _abandon(self) -> None:
        """Leave torch and DDP as they would be without the collector."""
        self._wake = _NEVER
        self._joint.decline()
        recording, self._recording = self._recording, None
        self._watched.sample_as_before()
        if recording is not None:
            recording.finish()

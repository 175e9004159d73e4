"""One recorded window on this rank: torch's profiler from the first warm-up step to the window's end."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from rankscope.collector.facts import is_cuda_run, read_clocks
from rankscope.collector.options import ProfilerFlags
from rankscope.collector.schedule import Window
from rankscope.collector.watching import WatchedModules
from rankscope.errors import RankscopeError
from rankscope.model.manifest import ClockSample

if TYPE_CHECKING:
    from torch.profiler import ProfilerAction, ProfilerActivity, profile

_SELF_DESCRIBING_KERNELS = (2, 12)  # first torch whose NCCL kernels carry sequence number and sizes
_DEVICE_PATIENCE_SECONDS = 10.0


class Recording:
    """A window being recorded.

    Each window has a `torch.profiler.profile` of its own, made when its warm-up begins: by then the process
    group and CUDA exist, and torch has no earlier window to warn about.

    Attributes:
        window: the steps that it covers.
        clock_samples: readings at the start and the end of recording.
        is_active: whether events are being kept.
        is_finished: whether torch's profiler has been stopped; then `export` may be called.
    """

    def __init__(self, window: Window, flags: ProfilerFlags, watched: WatchedModules) -> None:
        self.window = window
        self.clock_samples: list[ClockSample] = []
        self.is_active = False
        self.is_finished = False
        self._watched = watched
        self._profile = make_profile(window, flags)

    def start(self) -> None:
        """Begin the window's first step."""
        # torch counts from 0 in each profile; the step that now begins has the job's own number.
        self._profile.step_num = self.window.first
        self._profile.start()
        self._enter(self.window.first)

    def advance(self, step: int) -> None:
        """End the running step and begin `step`."""
        self._note_iterations(step - 1)
        self._profile.step()
        self._enter(step)

    def finish(self, *, is_interrupted: bool = False) -> None:
        """Stop recording and keep what was recorded; a second call does nothing.

        Raises:
            RankscopeError: the training was interrupted and the GPU does not come to rest.
        """
        if self.is_finished:
            return
        self.is_finished = True
        if not is_interrupted:
            self._note_iterations(self.window.end - 1)
        self._watched.sample_as_before()
        if is_interrupted:
            _wait_for_device()
        self.clock_samples.append(read_clocks())
        self._profile.stop()

    def export(self, path: str) -> None:
        """Write the window as Kineto JSON to `path`."""
        self._profile.export_chrome_trace(path)

    def _note_iterations(self, ended: int) -> None:
        if self.is_active:
            self._watched.note_iterations(ended)

    def _enter(self, step: int) -> None:
        if step == self.window.active_from:
            self.is_active = True
            self._watched.sample_every_iteration()
            self.clock_samples.append(read_clocks())


def make_profile(window: Window, flags: ProfilerFlags) -> profile:
    """The profiler of torch for one window, which numbers steps as the whole job does.

    Raises:
        RankscopeError: another profiler is recording, which a second one would end without a word.
    """
    import torch
    from torch.profiler import profile

    is_profiling = getattr(torch.autograd, "_profiler_enabled", lambda: False)  # not public, as old as Kineto
    if is_profiling():
        raise RankscopeError(
            "another torch.profiler is recording in this process; keep it and give it "
            "rankscope.on_trace_ready(directory) instead of using a Collector"
        )
    shapes = needs_shapes() if flags.record_shapes is None else flags.record_shapes
    return profile(
        activities=list_activities(),
        schedule=lambda step: _choose_action(window, step),
        record_shapes=shapes,
        with_stack=flags.with_stack,
        profile_memory=flags.profile_memory,
    )


def list_activities() -> list[ProfilerActivity]:
    """What torch records in this process: the CPU, and GPUs where there are any."""
    import torch
    from torch.profiler import ProfilerActivity

    return [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]


def needs_shapes() -> bool:
    """Whether sizes of collectives would be lost without shapes: gloo and CPU, and NCCL below torch 2.12."""
    import torch
    import torch.distributed as dist

    if not torch.cuda.is_available() or _read_torch_version() < _SELF_DESCRIBING_KERNELS:
        return True
    if not dist.is_available() or not dist.is_initialized():
        return False
    return str(dist.get_backend()) not in ("nccl", "undefined")


def _choose_action(window: Window, step: int) -> ProfilerAction:
    """What torch does in `step`; before the window (torch asks for step 0 when built) as in its first step."""
    from torch.profiler import ProfilerAction

    step = max(step, window.first)
    if step >= window.end:
        return ProfilerAction.NONE
    if step < window.active_from:
        return ProfilerAction.WARMUP
    return ProfilerAction.RECORD_AND_SAVE if step == window.end - 1 else ProfilerAction.RECORD


def _read_torch_version() -> tuple[int, int]:
    import torch

    major, minor = str(torch.__version__).split(".")[:2]
    return int(major), int(minor)


def _wait_for_device() -> None:
    """Return when the GPU is idle, or raise: stopping the profiler waits for it, and perhaps for ever.

    After an exception a collective may be waiting for a rank that will never come. The wait happens on a
    thread that can be left behind.
    """
    import torch

    if not is_cuda_run():
        return
    waiter = threading.Thread(target=_synchronize, args=(torch.cuda.current_device(),), daemon=True)
    waiter.start()
    waiter.join(_DEVICE_PATIENCE_SECONDS)
    if waiter.is_alive():
        raise RankscopeError(
            f"the GPU is still busy {_DEVICE_PATIENCE_SECONDS:.0f} s after the training failed (a collective "
            "that waits for another rank?), so the window that was being recorded is lost"
        )


def _synchronize(device: int) -> None:
    import torch

    # A broken GPU raises here; stopping the profiler will raise the same where the guard can see it.
    with contextlib.suppress(RuntimeError):
        torch.cuda.synchronize(device)

"""What ranks do together because the user asked for it: clock samples and the calibration sweep."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rankscope.collector.calibration import Sweep, make_profile, run_sweep
from rankscope.collector.clock_sync import sample_offset
from rankscope.collector.guard import Guard
from rankscope.collector.memory import count_ranks_on_host, find_free_bytes
from rankscope.collector.options import RankSelection
from rankscope.collector.rendezvous import Meeting, Offer, read_store
from rankscope.collector.watching import Gradients, WatchedModules
from rankscope.errors import RankscopeError
from rankscope.model.manifest import Calibration, ClockOffset

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup
    from torch.profiler import profile

_CLOCK_SECONDS = 5.0
_MEETING_SECONDS = 60.0
_UNWATCHED_BYTES = 64 << 20
_MEMORY_SHARE = 4  # one part in so many of the free memory
# Keys in the store must never be used twice, by several collectors in one process either.
_comparisons, _sweeps = itertools.count(), itertools.count()


@dataclass(slots=True, kw_only=True)
class JointActions:
    """Runs the joint actions of one process and keeps what they found until a trace takes it.

    A fault in one of them becomes one warning and a note; that kind of action is not tried again; recording
    goes on.

    Attributes:
        calibrate_seconds: time that the sweep may take, in seconds; 0 for no sweep.
        sync_clocks: whether clocks are compared at both ends of each window.
        selection: the ranks that record.
        watched: the modules whose gradients tell what to sweep.
        notes: what could not be done since the last `take_notes`, and why.
    """

    calibrate_seconds: float
    sync_clocks: bool
    selection: RankSelection
    watched: WatchedModules
    notes: list[str] = field(default_factory=list)
    _offsets: list[ClockOffset] = field(default_factory=list)
    _calibration: Calibration | None = None
    _is_calibrated: bool = False
    _clock_guard: Guard = field(default_factory=lambda: Guard(_nothing, "rankscope stopped comparing clocks"))
    _sweep_guard: Guard = field(default_factory=lambda: Guard(_nothing, "rankscope could not calibrate"))

    def concerns(self, rank: int) -> bool:
        """Whether this rank takes part in anything, even if it does not record."""
        return self.calibrate_seconds > 0 or (self.sync_clocks and rank == 0)

    def compare_clocks(self) -> None:
        """Sample this rank's clock offset now, at the same step on all ranks."""
        if self.sync_clocks:
            self._run(self._clock_guard, self._compare_clocks)

    def calibrate(self) -> None:
        """Run the sweep, the first time that this is called."""
        if self.calibrate_seconds > 0 and not self._is_calibrated:
            self._is_calibrated = True
            self._run(self._sweep_guard, self._calibrate)

    def decline(self) -> None:
        """Tell ranks that wait for this one, or will, that it is not coming to the sweep."""
        if self.calibrate_seconds > 0 and not self._is_calibrated:
            self._is_calibrated = True
            self._run(self._sweep_guard, self._decline)

    def take_offsets(self) -> list[ClockOffset]:
        """The clock samples since the last call."""
        offsets, self._offsets = self._offsets, []
        return offsets

    def take_calibration(self) -> Calibration | None:
        """The result of the sweep, once."""
        calibration, self._calibration = self._calibration, None
        return calibration

    def take_notes(self) -> list[str]:
        """What could not be done since the last call, and why."""
        notes, self.notes = self.notes, []
        return notes

    def _run(self, guard: Guard, action: Callable[[], None]) -> None:
        was_broken = guard.broken
        guard.run(action)
        if guard.fault is not None and not was_broken:
            self.notes.append(f"{guard.consequence}: {guard.fault}")

    def _compare_clocks(self) -> None:
        import torch.distributed as dist

        if not _has_peers():
            self.notes.append("clocks were not compared: there was no process group of several ranks")
            return
        world_size, rank = dist.get_world_size(), dist.get_rank()
        ranks = [each for each in range(world_size) if each == 0 or self.selection.includes(each)]
        if rank not in ranks or len(ranks) == 1:
            return
        key = f"rankscope/clocks/{next(_comparisons)}"
        sample = sample_offset(read_store(), key, rank=rank, ranks=ranks, limit_seconds=_CLOCK_SECONDS)
        if sample is not None:
            self._offsets.append(sample)

    def _decline(self) -> None:
        if _has_peers():
            _find_meeting(self.watched.find_gradients() or _assume_gradients()).decline()

    def _calibrate(self) -> None:
        if not _has_peers():
            self.notes.append("no calibration: there was no process group of several ranks")
            return
        target = self.watched.find_gradients() or _assume_gradients()
        meeting = _find_meeting(target)
        ready = None
        try:
            ready = _prepare(target)
        finally:  # perhaps there is no memory, or another profiler is recording: the others need not wait
            if ready is None:
                meeting.decline()
        agreed_bytes = None
        try:
            agreed_bytes = meeting.attend(ready.offer, _MEETING_SECONDS)
        finally:
            if agreed_bytes is None:
                ready.profiler.stop()
        if agreed_bytes is None:
            raise RankscopeError(
                f"not all ranks of the process group came within {_MEETING_SECONDS:.0f} s with the same model and "
                "memory to spare"
            )
        sweep = Sweep(
            group=target.group,
            group_name=str(getattr(target.group, "group_name", "")),
            ranks=list_ranks(target.group),
            buffer=ready.buffer[: agreed_bytes // ready.buffer.element_size()],
            wanted_bytes=target.size_bytes,
            seconds=self.calibrate_seconds,
        )
        self._calibration = run_sweep(sweep, ready.profiler)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """All that could fail on one rank alone, done before ranks meet."""

    buffer: torch.Tensor
    profiler: profile

    @property
    def offer(self) -> Offer:
        return Offer(most=self.buffer.nbytes, terms=f"{self.buffer.dtype} {self.buffer.device.type}")


def _prepare(target: Gradients) -> _Ready:
    import torch

    sharers = count_ranks_on_host(len(list_ranks(target.group))) if target.device.type == "cpu" else 1
    size_bytes = min(target.size_bytes, find_free_bytes(target.device) // (_MEMORY_SHARE * sharers))
    buffer = torch.zeros(size_bytes // target.dtype.itemsize, dtype=target.dtype, device=target.device)
    profiler = make_profile()
    profiler.start()
    return _Ready(buffer=buffer, profiler=profiler)


def _find_meeting(target: Gradients) -> Meeting:
    """The next meeting of the ranks that reduce these gradients."""
    import torch.distributed as dist

    ranks = list_ranks(target.group)
    place = zlib.crc32(repr(ranks).encode())
    return Meeting(
        store=read_store(),
        key=f"rankscope/calibration/{place:08x}/{next(_sweeps)}",
        rank=dist.get_rank(),
        ranks=ranks,
    )


def _assume_gradients() -> Gradients:
    """What is measured when no module is watched."""
    import torch
    import torch.distributed as dist

    on_cuda = torch.cuda.is_available() and str(dist.get_backend()) != "gloo"
    return Gradients(
        group=dist.distributed_c10d._get_default_group(),
        size_bytes=_UNWATCHED_BYTES,
        dtype=torch.float32,
        device=torch.device("cuda", torch.cuda.current_device()) if on_cuda else torch.device("cpu"),
    )


def list_ranks(group: ProcessGroup) -> list[int]:
    """The global ranks of a group."""
    import torch.distributed as dist

    return list(dist.get_process_group_ranks(group))


def _has_peers() -> bool:
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _nothing() -> None:
    """The clean-up after a joint action: it leaves nothing behind."""

"""One sweep of the job's own all-reduce over message sizes, timed as the trace would time it.

All ranks take every decision together (see `_agree`), so that no rank is left alone in a collective.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from rankscope.collector.recording import list_activities
from rankscope.errors import RankscopeError
from rankscope.model.manifest import Calibration, CalibrationPoint

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup
    from torch.profiler import profile

SMALLEST_BYTES = 64 << 10
_REPEATS = 8
_TOLD_BYTES = 8  # one int64
_LEAST_WAIT_SECONDS = 30.0
# What a trace holds for an all-reduce: gloo's annotation on the CPU, NCCL's or RCCL's kernel on a GPU.
_ROWS = re.compile(r"gloo:all_?reduce$|(nccl|rccl)\w*Kernel_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A sweep to be run by all ranks of a group.

    Attributes:
        group: the process group.
        group_name: its name in the manifest.
        ranks: its global ranks.
        buffer: what is reduced, one-dimensional; its size is the largest message, its content is lost.
        wanted_bytes: the largest message that would be of use; more than the buffer holds where memory was short.
        seconds: time in seconds that it may take, about.
    """

    group: ProcessGroup
    group_name: str
    ranks: Sequence[int]
    buffer: torch.Tensor
    wanted_bytes: int
    seconds: float


@dataclass(slots=True)
class _Log:
    """What was run so far: the size of each operation in order, 0 for those by which ranks agree."""

    started: float = field(default_factory=time.monotonic)
    sizes: list[int] = field(default_factory=list)

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self.started


def list_sizes(largest_bytes: int, element_bytes: int) -> list[int]:
    """The message sizes of a sweep: 64 KiB, doubled while well below `largest_bytes`, and that itself.

    >>> list_sizes(300_000, 4)
    [65536, 131072, 300000]
    >>> list_sizes(10_001, 4)
    [10000]
    """
    largest_bytes -= largest_bytes % element_bytes
    sizes = []
    size = SMALLEST_BYTES
    while size * 3 <= largest_bytes * 2:
        sizes.append(size)
        size *= 2
    return [*sizes, largest_bytes]


def make_profile() -> profile:
    """The profiler that times a sweep. Built before ranks meet, since building it may fail."""
    from torch.profiler import profile

    return profile(activities=list_activities())


def run_sweep(sweep: Sweep, profiler: profile) -> Calibration:
    """Run the sweep, on all ranks of the group at once.

    Args:
        sweep: what to run.
        profiler: a profiler that has been started; it is stopped here.

    Raises:
        RankscopeError: on some rank the profiler did not record each operation once.
    """
    sizes = list_sizes(sweep.buffer.nbytes, sweep.buffer.element_size())
    log = _Log()
    try:
        reached = _run_first_round(sweep, sizes, log)
        _run_other_rounds(sweep, reached, log)
    finally:
        profiler.stop()
    durations = _read_durations(profiler, len(log.sizes))
    shortest = _exchange(sweep, durations)
    points = [
        CalibrationPoint(
            size_bytes=size,
            durations_ns=[ns for of, ns in zip(log.sizes, shortest, strict=True) if of == size],
        )
        for size in reached
    ]
    return Calibration(
        group=sweep.group_name,
        ranks=list(sweep.ranks),
        dtype=str(sweep.buffer.dtype).removeprefix("torch."),
        device=sweep.buffer.device.type,
        limited_by=_find_limit(sweep, is_complete=reached == sizes),
        points=points,
    )


def _find_limit(sweep: Sweep, *, is_complete: bool) -> str:
    if not is_complete:
        return "time"
    return "memory" if sweep.buffer.nbytes + sweep.buffer.element_size() <= sweep.wanted_bytes else ""


def _run_first_round(sweep: Sweep, sizes: Sequence[int], log: _Log) -> list[int]:
    """Run every size once, stopping where the next would take too long; return the sizes that were run."""
    _reduce(sweep, SMALLEST_BYTES, log, is_counted=False)  # connects, and wakes threads and caches
    reached = []
    for size in sizes:
        before = log.elapsed_seconds
        _reduce(sweep, size, log)
        reached.append(size)
        now = log.elapsed_seconds
        # The next is twice as large; half of the time belongs to the repeats.
        if _agree(sweep, now + 2 * (now - before), log) > sweep.seconds / 2:
            break
    return reached


def _run_other_rounds(sweep: Sweep, sizes: Sequence[int], log: _Log) -> None:
    round_seconds = log.elapsed_seconds
    for _ in range(_REPEATS - 1):
        before = log.elapsed_seconds
        if _agree(sweep, before + round_seconds, log) > sweep.seconds:
            return
        for size in sizes:
            _reduce(sweep, size, log)
        round_seconds = log.elapsed_seconds - before


def _reduce(sweep: Sweep, size_bytes: int, log: _Log, *, is_counted: bool = True) -> None:
    message = sweep.buffer[: max(size_bytes // sweep.buffer.element_size(), 1)]
    log.sizes.append(size_bytes if is_counted else 0)
    _run(sweep, message)


def _agree(sweep: Sweep, seconds: float, log: _Log) -> float:
    """The largest `seconds` of all ranks, so that all decide alike."""
    import torch
    import torch.distributed as dist

    told = torch.tensor([int(seconds * 1e9)], dtype=torch.int64, device=sweep.buffer.device)
    log.sizes.append(0)
    _run(sweep, told, dist.ReduceOp.MAX)
    return int(told.item()) / 1e9


def _run(sweep: Sweep, message: torch.Tensor, op: object = None) -> None:
    """One all-reduce, waited for within bounds: a rank that dies on the way must not hold up the others for ever."""
    import torch.distributed as dist

    work = dist.all_reduce(
        message, op=dist.ReduceOp.SUM if op is None else op, group=sweep.group, async_op=True
    )
    work.wait(timedelta(seconds=max(_LEAST_WAIT_SECONDS, 4 * sweep.seconds)))


def _read_durations(profiler: profile, expected: int) -> list[int]:
    """Durations in ns of the recorded operations in order; -1 for each if they are not as many as expected."""
    rows = sorted(
        (event.time_range.start, event.time_range.end)
        for event in profiler.events() or ()  # type: ignore[no-untyped-call]
        if _ROWS.match(event.name)
    )
    if len(rows) != expected:
        return [-1] * expected
    return [round((end - start) * 1000) for start, end in rows]


def _exchange(sweep: Sweep, durations: Sequence[int]) -> list[int]:
    """For each operation the shortest duration over the ranks, which is that of the last to arrive."""
    import torch
    import torch.distributed as dist

    shared = torch.tensor(durations, dtype=torch.int64, device=sweep.buffer.device)
    _run(sweep, shared, dist.ReduceOp.MIN)
    shortest = [int(ns) for ns in shared.tolist()]
    if min(shortest) < 0:
        raise RankscopeError("a rank's profiler did not record each operation of the sweep once")
    return shortest

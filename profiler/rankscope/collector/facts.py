"""Gathers the manifest of a window: who, where, with what versions, in which groups, at which times."""

from __future__ import annotations

import platform
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankscope.collector.ddp import INTERNALS_MOVED
from rankscope.collector.identity import Identity
from rankscope.collector.watching import WatchedModules
from rankscope.model.manifest import (
    Calibration,
    ClockOffset,
    ClockSample,
    Manifest,
    ManifestGroup,
    StepTime,
)

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

_CLOCK_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFacts:
    """What only the recording itself knows of a window.

    Attributes:
        index: number of the window on this rank, from 0.
        steps: wall times of the steps finished since the last window.
        clock_samples: readings at the window's start and end.
        unfinished_step: the step that was running when recording ended early.
        notes: what could not be recorded, and why.
        clock_offsets: samples against rank 0's clock.
        calibration: the sweep, in one window at most.
    """

    index: int
    steps: Sequence[StepTime] = ()
    clock_samples: Sequence[ClockSample] = ()
    unfinished_step: int | None = None
    notes: Sequence[str] = ()
    clock_offsets: Sequence[ClockOffset] = ()
    calibration: Calibration | None = None


def build_manifest(
    window: WindowFacts,
    *,
    identity: Identity,
    groups: Sequence[ManifestGroup],
    watched: WatchedModules,
    labels: Mapping[str, str],
    scrub: bool,
) -> Manifest:
    """All facts of the window, without talking to any other rank."""
    notes = list(window.notes)
    # "undefined" = one backend per device kind; the group's entry names them
    backend = groups[0].backend if identity.backend == "undefined" and groups else identity.backend
    return Manifest(
        rank=identity.rank,
        world_size=identity.world_size,
        local_rank=identity.local_rank,
        window=window.index,
        host="" if scrub else socket.gethostname(),
        backend=backend,
        versions=read_versions(),
        groups=list(groups),
        steps=list(window.steps),
        ddp=watched.read_facts(notes),
        clock_samples=list(window.clock_samples),
        labels=dict(labels),
        notes=notes,
        unfinished_step=window.unfinished_step,
        clock_offsets=list(window.clock_offsets),
        calibration=window.calibration,
    )


def read_clocks() -> ClockSample:
    """Both clocks at one moment: of a few readings, the one that took the least time."""
    best = (sys.maxsize, 0, 0)
    for _ in range(_CLOCK_TRIES):
        before = time.perf_counter_ns()
        unix = time.time_ns()
        after = time.perf_counter_ns()
        best = min(best, (after - before, unix, (before + after) // 2))
    return ClockSample(unix_ns=best[1], monotonic_ns=best[2])


def read_versions() -> dict[str, str]:
    """Component -> version of what the trace depends on; a component that is absent has no entry."""
    import torch

    # Through sys.modules: importing the package's root here would tie the collector to all that it exports.
    rankscope = getattr(sys.modules.get("rankscope"), "__version__", "")
    versions = {
        "rankscope": rankscope,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "cuda": str(torch.version.cuda or ""),
        "hip": str(torch.version.hip or ""),
        "nccl": _read_nccl_version(),
    }
    return {component: version for component, version in versions.items() if version}


def is_cuda_run() -> bool:
    """Whether the training itself has used CUDA in this process."""
    import torch

    return torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]


def read_groups(notes: list[str]) -> list[ManifestGroup]:
    """The process groups that this rank is in, in creation order; [] without torch.distributed."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized():
        return []
    try:
        return [_describe_group(group) for group in dist.distributed_c10d._world.pg_map]
    except INTERNALS_MOVED as fault:
        notes.append(f"process groups could not be read: {type(fault).__name__}: {fault}")
        return []


def _describe_group(group: ProcessGroup) -> ManifestGroup:
    import torch.distributed as dist

    config = dist.distributed_c10d._get_pg_config(group)
    backend = str(dist.get_backend(group))
    return ManifestGroup(
        name=str(config["pg_name"]),
        description=str(config.get("pg_desc", "")),
        backend=str(config.get("backend_config", "")) if backend == "undefined" else backend,
        ranks=[int(rank) for rank in config["ranks"]],
    )


def _read_nccl_version() -> str:
    import torch

    if not torch.cuda.is_available():
        return ""
    try:
        return ".".join(str(part) for part in torch.cuda.nccl.version())  # type: ignore[no-untyped-call]
    except INTERNALS_MOVED:
        return ""

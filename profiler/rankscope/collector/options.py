"""What the user asked for, checked once, with every fault named in one error."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rankscope.errors import RankscopeError, UsageError

_BYTES_PER_MIB = 1 << 20  # MiB, as in DDP's bucket_cap_mb
# Up to this many ranks a file system takes all files at once; above, writing is spread over time.
_STAGGER_FROM_RANKS = 65
_STAGGER_SECONDS_PER_RANK = 0.01
_STAGGER_SECONDS_MOST = 30.0
_CALIBRATE_SECONDS = 3.0
_CALIBRATE_SECONDS_MOST = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSelection:
    """The ranks that record: all, every n-th, or those named."""

    every: int = 1
    named: frozenset[int] | None = None

    @property
    def first(self) -> int:
        """The lowest rank that records."""
        return 0 if self.named is None else min(self.named)

    @property
    def is_everyone(self) -> bool:
        """Whether no rank is left out."""
        return self.named is None and self.every == 1

    def includes(self, rank: int) -> bool:
        """Whether `rank` records.

        >>> RankSelection(every=8).includes(16), RankSelection(named=frozenset({0, 7})).includes(3)
        (True, False)
        """
        return rank in self.named if self.named is not None else rank % self.every == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerFlags:
    """What torch.profiler keeps for each event; `record_shapes` None lets the collector decide."""

    record_shapes: bool | None = None
    with_stack: bool = False
    profile_memory: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Where and how a trace is written.

    Attributes:
        directory: folder of the run, the same for all ranks.
        labels: the user's own facts, kept in the manifest.
        max_trace_bytes: a compressed trace that would be larger is dropped; None for no limit.
        stagger_seconds: time over which the ranks spread their writing; None derives it from the world size.
        scrub: whether host names and paths are taken out.
    """

    directory: Path
    labels: Mapping[str, str]
    max_trace_bytes: int | None = None
    stagger_seconds: float | None = None
    scrub: bool = False

    def find_delay_seconds(self, rank: int, world_size: int) -> float:
        """Seconds that `rank` waits before it writes to the run directory.

        >>> OutputOptions(directory=Path("runs"), labels={}).find_delay_seconds(512, 1024)
        5.12
        """
        spread = self.stagger_seconds
        if spread is None:
            large = world_size >= _STAGGER_FROM_RANKS
            spread = min(world_size * _STAGGER_SECONDS_PER_RANK, _STAGGER_SECONDS_MOST) if large else 0.0
        return spread * rank / world_size


def require_torch() -> None:
    """Import torch, or say what is missing.

    Raises:
        RankscopeError: torch cannot be imported.
    """
    try:
        import torch  # noqa: F401 - only whether it can be imported
    except ImportError as fault:
        raise RankscopeError(
            f"rankscope.collector needs torch, which cannot be imported here ({fault}). Run it with the Python "
            "of your training, or install torch >= 2.3 (`pip install torch`)."
        ) from fault


def parse_output(
    directory: str | os.PathLike[str],
    faults: list[str],
    *,
    labels: Mapping[str, object] | None,
    max_trace_mb: float | None,
    stagger_seconds: float | None,
    scrub: bool,
) -> OutputOptions:
    """The output options.

    Args:
        directory: folder of the run.
        faults: those found in other options, to be named in the same error.
        labels: free facts; keys and values become text.
        max_trace_mb: largest compressed trace in MiB.
        stagger_seconds: time in seconds over which ranks spread their writing.
        scrub: whether host names and paths are taken out.

    Raises:
        UsageError: one or more options make no sense; all are named.
    """
    if "://" in os.fspath(directory):
        faults.append(
            f"directory must be a folder of a file system, not {os.fspath(directory)!r}: collect locally, "
            "then copy with `rankscope push`"
        )
    if max_trace_mb is not None and not (max_trace_mb > 0 and math.isfinite(max_trace_mb)):
        faults.append(f"max_trace_mb must be a size in MiB above 0, not {max_trace_mb!r}")
    if stagger_seconds is not None and not (stagger_seconds >= 0 and math.isfinite(stagger_seconds)):
        faults.append(f"stagger_seconds must be a time in seconds, at least 0, not {stagger_seconds!r}")
    if faults:
        raise UsageError("The collector's options cannot be used: " + "; ".join(faults) + ".")
    return OutputOptions(
        directory=Path(directory),
        labels={str(key): str(value) for key, value in (labels or {}).items()},
        max_trace_bytes=None if max_trace_mb is None else int(max_trace_mb * _BYTES_PER_MIB),
        stagger_seconds=stagger_seconds,
        scrub=scrub,
    )


def parse_calibrate(calibrate: bool | float, faults: list[str]) -> float:
    """Seconds that calibration may take, 0 for none; what makes no sense is added to `faults`.

    >>> [parse_calibrate(value, []) for value in (True, 10, False)]
    [3.0, 10.0, 0.0]
    """
    if isinstance(calibrate, bool):
        return _CALIBRATE_SECONDS if calibrate else 0.0
    if not (0 < calibrate <= _CALIBRATE_SECONDS_MOST):
        faults.append(
            f"calibrate must be True, False, or seconds up to {_CALIBRATE_SECONDS_MOST:.0f}, not {calibrate!r}"
        )
    return float(calibrate)


def parse_ranks(ranks: Iterable[int] | int | None, faults: list[str]) -> RankSelection:
    """The selection that `ranks` means; what makes no sense is added to `faults`.

    >>> parse_ranks(8, faults := []), faults
    (RankSelection(every=8, named=None), [])
    >>> parse_ranks([], faults), faults
    (RankSelection(every=1, named=None), ['ranks must name at least one rank, or be None for all'])
    """
    if ranks is None:
        return RankSelection()
    if isinstance(ranks, int):
        if ranks >= 1:
            return RankSelection(every=ranks)
        faults.append(f"ranks={ranks} must be at least 1 (every n-th rank)")
        return RankSelection()
    named = frozenset(ranks)
    wrong = [rank for rank in named if not isinstance(rank, int) or rank < 0]
    if wrong:
        faults.append(f"ranks must be whole numbers from 0, not {wrong!r}")
    elif not named:
        faults.append("ranks must name at least one rank, or be None for all")
    return RankSelection() if wrong or not named else RankSelection(named=named)

"""A synthetic run before it becomes files: what its ranks do, their clocks and hosts, and the given answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from rankscope.errors import UsageError
from rankscope.model.manifest import DdpFacts
from rankscope.testing.expected import Expected
from rankscope.testing.program import Backend, Group, Program
from rankscope.testing.schedule import lay_out
from rankscope.testing.timeline import Timeline

ORIGIN_UNIX_NS = 1_733_000_009_000_000_000
"""Start of a run unless it says otherwise: 2024-11-30 20:53:29 UTC."""

RANKS_PER_HOST = 8
"""Ranks on one host unless a run says otherwise."""

_Measured = TypeVar("_Measured")
_PARTS_PER_BILLION = 1_000_000_000
_PPB_PER_PPM = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RankClock:
    """How a rank's clock reads true time: `offset_ns` ahead, and `drift_ppb` parts per billion faster."""

    offset_ns: int = 0
    drift_ppb: int = 0

    def read(self, true_ns: int) -> int:
        """What the clock shows at a true time, in whole ns.

        >>> RankClock(offset_ns=5, drift_ppb=20_000).read(1_000_000_000)
        1000020005
        """
        return true_ns + self.offset_ns + true_ns * self.drift_ppb // _PARTS_PER_BILLION


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A synthetic run.

    Attributes:
        name: short name.
        backend: "nccl", "rccl" or "gloo".
        programs: rank -> what it does.
        groups: process groups in creation order, the default group first.
        expected: the answers.
        ranks_per_host: ranks on one host; a rank's device is its number on the host.
        clocks: rank -> clock; ranks that are not listed have a perfect one.
        absent: ranks whose file is not written.
        ddp: what the collector would know of the wrapped module, or None.
        origin_unix_ns: true time 0, in nanoseconds since the Unix epoch.
    """

    name: str
    backend: Backend
    programs: Mapping[int, Program]
    groups: tuple[Group, ...]
    expected: Expected
    ranks_per_host: int = RANKS_PER_HOST
    clocks: Mapping[int, RankClock] = field(default_factory=dict)
    absent: frozenset[int] = frozenset()
    ddp: DdpFacts | None = None
    origin_unix_ns: int = ORIGIN_UNIX_NS

    @property
    def world_size(self) -> int:
        """Number of ranks of the job."""
        return len(self.programs)

    def host_of(self, rank: int) -> str:
        """Name of the host of a rank."""
        return host_name(rank, self.ranks_per_host)

    def clock_of(self, rank: int) -> RankClock:
        """The clock of a rank."""
        return self.clocks.get(rank, RankClock())

    def lay_out(self) -> Timeline:
        """All rows of all ranks in true time."""
        return lay_out(self.programs, self.groups, self.backend)

    def with_clocks(
        self, offsets_ns: Mapping[int, int] | None = None, drift_ppm: Mapping[int, float] | None = None
    ) -> Scenario:
        """The same run with clocks that are off.

        Args:
            offsets_ns: rank -> nanoseconds that its clock is ahead at the start of the run.
            drift_ppm: rank -> parts per million that its clock runs faster.

        Returns:
            A scenario whose `expected` states the offsets and drifts.

        Raises:
            UsageError: a rank is not in the run.
        """
        offsets, drifts = dict(offsets_ns or {}), dict(drift_ppm or {})
        self._require_ranks([*offsets, *drifts])
        clocks = {
            rank: RankClock(
                offset_ns=offsets.get(rank, 0), drift_ppb=round(drifts.get(rank, 0.0) * _PPB_PER_PPM)
            )
            for rank in sorted({*offsets, *drifts})
        }
        stated = replace(
            self.expected,
            clock_offsets_ns={rank: offsets.get(rank, 0) for rank in sorted(self.programs)},
            drift_ppm=drifts,
        )
        return replace(self, clocks=clocks, expected=stated)

    def without_files_of(self, ranks: Iterable[int]) -> Scenario:
        """The same run, but the files of some ranks are never written.

        Their measures leave `expected`, and so does the straggler: what is left may not decide it.

        Raises:
            UsageError: a rank is not in the run.
        """
        absent = frozenset(ranks)
        self._require_ranks(absent)
        steps = {s: _without(by_rank, absent) for s, by_rank in self.expected.steps.items()}
        durations = {s: _without(by_rank, absent) for s, by_rank in self.expected.step_duration_ns.items()}
        stated = replace(
            self.expected,
            ranks=_without(self.expected.ranks, absent),
            steps=steps,
            step_duration_ns=durations,
            buckets=tuple(b for b in self.expected.buckets if b.rank not in absent),
            straggler=None,
            missing_ranks=tuple(sorted(absent)),
        )
        return replace(self, absent=absent, expected=stated)

    def _require_ranks(self, ranks: Iterable[int]) -> None:
        unknown = sorted(set(ranks) - set(self.programs))
        if unknown:
            raise UsageError(f"scenario {self.name} has ranks 0 to {self.world_size - 1}, not {unknown}")


def host_name(rank: int, ranks_per_host: int) -> str:
    """Name of the host of a rank.

    >>> host_name(9, 8)
    'host1'
    """
    return f"host{rank // ranks_per_host}"


def _without(by_rank: dict[int, _Measured], absent: frozenset[int]) -> dict[int, _Measured]:
    return {rank: measured for rank, measured in by_rank.items() if rank not in absent}

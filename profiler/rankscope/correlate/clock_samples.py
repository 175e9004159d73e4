"""Clock offsets that the collector measured over the rendezvous store: a check of the alignment, and its fallback.

They are far less exact than collective ends (a round trip of some 100 us against some 10 us), but need no collective.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from rankscope.correlate.clocks import Clocks, RankClock
from rankscope.model.manifest import ClockOffset
from rankscope.units import ms_to_ns

METHOD = "clock samples"

_TRACE_CLOCK_ERROR_NS = ms_to_ns(1)
"""How far the profiler's clock may be from the wall clock that was sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A rank whose clock by collective ends is not where the samples saw it.

    Attributes:
        rank: the rank.
        aligned_ns, sampled_ns: its offset from the reference by collective ends, and by the samples.
        uncertainty_ns: how far the samples may be off.
    """

    rank: int
    aligned_ns: int
    sampled_ns: int
    uncertainty_ns: int


class ClockSamples:
    """The best sample of each rank, all against one rank."""

    def __init__(self, offsets: Iterable[ClockOffset]) -> None:
        self._best: dict[int, ClockOffset] = {}
        for offset in offsets:
            known = self._best.get(offset.rank)
            if known is None or offset.uncertainty_ns < known.uncertainty_ns:
                self._best[offset.rank] = offset
        self._references = {offset.reference for offset in self._best.values()}

    def between(self, rank: int, other: int) -> tuple[int, int] | None:
        """(clock of `rank` minus clock of `other`, how far that may be off) in ns; None where not sampled."""
        if len(self._references) != 1:
            return None
        ends = [self._of(rank), self._of(other)]
        if ends[0] is None or ends[1] is None:
            return None
        return ends[0][0] - ends[1][0], ends[0][1] + ends[1][1]

    def _of(self, rank: int) -> tuple[int, int] | None:
        if rank in self._references:
            return 0, 0
        best = self._best.get(rank)
        return None if best is None else (best.offset_ns, best.uncertainty_ns)


def tie_by_samples(clocks: Clocks, samples: ClockSamples, ranks: Iterable[int]) -> Clocks:
    """Clocks with the ranks tied that collectives leave untied, as far as samples reach.

    Args:
        clocks: by collective ends.
        samples: of the run.
        ranks: all ranks with communication.
    """
    reference = clocks.reference
    if reference is None:
        return clocks
    added: dict[int, RankClock] = {}
    for rank in ranks:
        if clocks.is_tied(rank):
            continue
        own = clocks.of_rank.get(rank, RankClock(reference=rank))
        between = samples.between(own.reference, reference)
        if between is None:
            continue
        offset = own.offset_ns + between[0]
        error = between[1] + (own.uncertainty_ns or 0) + _TRACE_CLOCK_ERROR_NS
        added[rank] = replace(
            own, offset_ns=offset, low_ns=offset - error, high_ns=offset + error, reference=reference
        )
    if not added:
        return clocks
    of_rank: Mapping[int, RankClock] = {reference: RankClock(reference=reference), **clocks.of_rank, **added}
    method = METHOD if clocks.method == "none" else f"{clocks.method}, {METHOD}"
    return replace(clocks, method=method, of_rank=dict(sorted(of_rank.items())))


def find_disagreements(clocks: Clocks, samples: ClockSamples) -> list[Disagreement]:
    """Ranks whose clock by collective ends lies outside what the samples allow, the profiler's own error included."""
    found = []
    for rank, clock in sorted(clocks.of_rank.items()):
        reference = clocks.reference
        between = None if reference is None or rank == reference else samples.between(rank, reference)
        if between is None or not clocks.is_tied(rank):
            continue
        if abs(clock.offset_ns - between[0]) > between[1] + _TRACE_CLOCK_ERROR_NS:
            found.append(
                Disagreement(
                    rank=rank, aligned_ns=clock.offset_ns, sampled_ns=between[0], uncertainty_ns=between[1]
                )
            )
    return found

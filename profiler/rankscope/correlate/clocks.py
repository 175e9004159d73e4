"""One time axis for all ranks: offsets from collective ends, uncertainty from causality.

A synchronising collective ends at about the same time on all its ranks, so the median difference of ends is the
offset of two clocks. That it ends on no rank before every rank has arrived bounds the offset from both sides.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace

import numpy as np

from rankscope.correlate.match import UNMATCHED, Matching
from rankscope.correlate.run_communications import RunCommunications
from rankscope.model.grouping import medians
from rankscope.model.intervals import Bool, Int64
from rankscope.units import s_to_ns

_MIN_DRIFT_SPAN_NS = s_to_ns(2)
_MIN_DRIFT_EVENTS = 20
_DRIFT_OVER_NOISE = 4.0
_UNBOUNDED = 1 << 60
_MAX_ROUNDS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RankClock:
    """A rank's clock against the reference rank's: offset + drift * (t - middle), t on the rank's own clock.

    Attributes:
        offset_ns: own clock - reference clock at `middle_ns`.
        drift: dimensionless, 1e-6 is one part per million; 0 where the window is too short to see it.
        middle_ns: time on the own clock at which `offset_ns` holds.
        low_ns, high_ns: offsets that causality allows, None where nothing bounds them.
        reference: the rank whose clock this one is measured against: the lowest of all that hang together.
    """

    offset_ns: int = 0
    drift: float = 0.0
    middle_ns: int = 0
    low_ns: int | None = None
    high_ns: int | None = None
    reference: int = 0

    @property
    def uncertainty_ns(self) -> int | None:
        """Half the width of what causality allows; None where unbounded, 0 at least."""
        if self.low_ns is None or self.high_ns is None:
            return None
        return max((self.high_ns - self.low_ns + 1) // 2, 0)

    @property
    def beyond_bounds_ns(self) -> int:
        """How far the offset lies outside what causality allows: much means wrong matches or a clock that jumped."""
        below = 0 if self.low_ns is None else self.low_ns - self.offset_ns
        above = 0 if self.high_ns is None else self.offset_ns - self.high_ns
        return max(below, above, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Clocks of all ranks.

    Attributes:
        method: "none", or "collective ends".
        reference: the rank whose clock is the axis.
        of_rank: rank -> its clock. Ranks that hang together, but not with the reference, have clocks against the
            lowest of themselves; a rank that shares no synchronising collective has none.
        residual_median_ns, residual_max_ns: last end - first end of a collective after alignment.
    """

    method: str
    reference: int | None
    of_rank: dict[int, RankClock] = field(default_factory=dict)
    residual_median_ns: int | None = None
    residual_max_ns: int | None = None

    def is_tied(self, rank: int) -> bool:
        """Whether a rank's times can be compared with the reference's."""
        clock = self.of_rank.get(rank)
        return rank == self.reference or (clock is not None and clock.reference == self.reference)

    def error_ns(self, rank: int) -> int | None:
        """How far a rank's clock may be off: the smaller of what causality allows and how far ends lie apart.

        Causality bounds nothing well where arrivals never come close; then the agreement of ends tells more.
        """
        clock = self.of_rank.get(rank)
        if clock is None:
            return None
        known = [e for e in (clock.uncertainty_ns, self.residual_median_ns) if e is not None]
        return min(known) if known else None

    def aligned(self, rank: Int64, times_ns: Int64) -> Int64:
        """Times of the ranks' own clocks on the reference's; those of ranks without a clock stay as they are."""
        if len(rank) == 0 or not self.of_rank:
            return times_ns.copy()
        size = max(int(rank.max()), *self.of_rank) + 1
        offset, middle = np.zeros(size, np.int64), np.zeros(size, np.int64)
        drift = np.zeros(size)
        for number, clock in self.of_rank.items():
            offset[number], middle[number], drift[number] = clock.offset_ns, clock.middle_ns, clock.drift
        aligned: Int64 = times_ns - offset[rank]
        if drift.any():
            aligned -= np.rint(drift[rank] * (times_ns - middle[rank])).astype(np.int64)
        return aligned


def correction(clock: RankClock, times_ns: Int64) -> Int64:
    """What to subtract from times of a rank's own clock, int64 ns."""
    if clock.drift == 0.0:
        return np.full(len(times_ns), clock.offset_ns, np.int64)
    drifted: Int64 = np.rint(clock.drift * (times_ns - clock.middle_ns)).astype(np.int64)
    return drifted + clock.offset_ns


def align_clocks(comms: RunCommunications, matching: Matching) -> Clocks:
    """The clocks of all ranks, tied through the collectives that they share.

    The reference is the lowest rank of the largest set of ranks that hang together.
    """
    ranks = comms.ranks
    ties = _ties(comms, matching)
    if not len(ties.event):
        return Clocks(method="none", reference=ranks[0] if ranks else None)
    clocks: dict[int, RankClock] = {}
    links = _Links(ties, ranks)
    components = links.components()
    for component in components:
        clocks |= _bound(ties, _tie(ties, links, component), min(component))
    aligned = Clocks(method="collective ends", reference=min(components[0]), of_rank=clocks)
    median, largest = _residuals(ties, aligned)
    return replace(aligned, residual_median_ns=median, residual_max_ns=largest)


def _tie(ties: _Ties, links: _Links, component: list[int]) -> dict[int, RankClock]:
    """Clocks of ranks that hang together, against the lowest of them."""
    reference = min(component)
    clocks = {reference: RankClock(reference=reference)}
    for group, new in links.spanning_order(reference):
        clocks |= _clocks_of(ties, links.events[group], new, clocks, reference)
    return _centred(ties, clocks, reference)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ties:
    """Events of synchronising collectives that are on several ranks, sorted by collective.

    Attributes:
        event: int64[m], index into the communications.
        collective: int64[m], dense number.
        rank, start, end: int64[m].
        group: int64[m].
    """

    event: Int64
    collective: Int64
    rank: Int64
    start: Int64
    end: Int64
    group: Int64


def _ties(comms: RunCommunications, matching: Matching) -> _Ties:
    usable = (matching.collective != UNMATCHED) & comms.is_synchronising
    event = np.flatnonzero(usable)
    event = event[np.argsort(matching.collective[event], kind="stable")]
    counts = np.bincount(matching.collective[event], minlength=len(matching))
    event = event[counts[matching.collective[event]] > 1]
    _, collective = np.unique(matching.collective[event], return_inverse=True)
    return _Ties(
        event=event,
        collective=collective.reshape(-1).astype(np.int64),
        rank=comms.rank[event],
        start=comms.start_ns[event],
        end=comms.end_ns[event],
        group=comms.group[event],
    )


class _Links:
    """Which ranks share which groups: a graph of ranks.

    Attributes:
        events: group -> int64 indices into the ties.
    """

    def __init__(self, ties: _Ties, ranks: tuple[int, ...]) -> None:
        self.events: dict[int, Int64] = {}
        self._members: dict[int, list[int]] = {}
        self._groups_of: dict[int, list[int]] = {rank: [] for rank in ranks}
        order = np.argsort(ties.group, kind="stable")
        groups, starts = np.unique(ties.group[order], return_index=True)
        for group, mine in zip(groups.tolist(), np.split(order, starts[1:]), strict=True):
            self.events[group] = mine
            self._members[group] = np.unique(ties.rank[mine]).tolist()
            for rank in self._members[group]:
                self._groups_of[rank].append(group)

    def components(self) -> list[list[int]]:
        """Sets of two or more ranks that hang together, the largest first, then the one with the lowest rank."""
        seen: set[int] = set()
        found = []
        for rank in self._groups_of:
            if rank in seen:
                continue
            component, stack = [], [rank]
            seen.add(rank)
            while stack:
                one = stack.pop()
                component.append(one)
                for group in self._groups_of[one]:
                    new = [r for r in self._members[group] if r not in seen]
                    seen.update(new)
                    stack += new
            if len(component) > 1:
                found.append(component)
        return sorted(found, key=lambda c: (-len(c), min(c)))

    def spanning_order(self, reference: int) -> list[tuple[int, list[int]]]:
        """(group, ranks that it ties to those before) until all that hang together are tied.

        Groups with many ranks and collectives go first: fewer links, better medians.
        """
        order: list[tuple[int, list[int]]] = []
        tied, used = {reference}, set()
        heap = [self._rated(group) for group in self._groups_of[reference]]
        heapq.heapify(heap)
        while heap:
            _, _, group = heapq.heappop(heap)
            if group in used:
                continue
            used.add(group)
            new = [rank for rank in self._members[group] if rank not in tied]
            if not new:
                continue
            tied.update(new)
            order.append((group, new))
            for other in {g for rank in new for g in self._groups_of[rank]} - used:
                heapq.heappush(heap, self._rated(other))
        return order

    def _rated(self, group: int) -> tuple[int, int, int]:
        return -len(self._members[group]), -len(self.events[group]), group


def _clocks_of(
    ties: _Ties, inside: Int64, new: list[int], known: dict[int, RankClock], reference: int
) -> dict[int, RankClock]:
    """Clocks of new ranks from the ends of a group's collectives against those of the ranks already tied."""
    clocks = Clocks(method="", reference=reference, of_rank=known)
    anchors = inside[np.isin(ties.rank[inside], list(known))]
    anchored, middle = medians(
        ties.collective[anchors], clocks.aligned(ties.rank[anchors], ties.end[anchors])
    )
    by_rank = inside[np.argsort(ties.rank[inside], kind="stable")]
    found = {}
    for rank in new:
        first, after = np.searchsorted(ties.rank[by_rank], [rank, rank + 1])
        mine = by_rank[first:after]
        place = np.minimum(np.searchsorted(anchored, ties.collective[mine]), max(len(anchored) - 1, 0))
        paired = anchored[place] == ties.collective[mine]
        own = ties.end[mine[paired]]
        if len(own):
            found[rank] = replace(_fit(own, own - middle[place[paired]]), reference=reference)
    return found


def _centred(ties: _Ties, clocks: dict[int, RankClock], reference: int) -> dict[int, RankClock]:
    """The clocks, each moved by how far its ends lie from the medians over all ranks.

    The first estimate leans on few ranks, and their ends have noise of their own.
    """
    mine = np.flatnonzero(np.isin(ties.rank, list(clocks)))
    ends = Clocks(method="", reference=reference, of_rank=clocks).aligned(ties.rank[mine], ties.end[mine])
    keys, middle = medians(ties.collective[mine], ends)
    apart = ends - middle[np.searchsorted(keys, ties.collective[mine])]
    ranks, errors = medians(ties.rank[mine], apart)
    error_of: dict[int, int] = dict(zip(ranks.tolist(), errors.tolist(), strict=True))
    base = error_of.get(reference, 0)
    return {
        rank: replace(clock, offset_ns=clock.offset_ns + error_of.get(rank, base) - base)
        for rank, clock in clocks.items()
    }


def _middle(values: Int64) -> int:
    """Median, exact; between two middles rounded down, so that a constant added to all is added to it."""
    places = [(len(values) - 1) // 2, len(values) // 2]
    return int(np.partition(values, places)[places].sum() // 2)


def _fit(own_ns: Int64, apart_ns: Int64) -> RankClock:
    """Offset, and drift where the window is long enough and the slope stands out of the noise."""
    offset = _middle(apart_ns)
    span = int(own_ns.max() - own_ns.min())
    middle = _middle(own_ns)
    if span < _MIN_DRIFT_SPAN_NS or len(own_ns) < _MIN_DRIFT_EVENTS:
        return RankClock(offset_ns=offset, middle_ns=middle)
    slope = _robust_slope(own_ns - middle, apart_ns - offset)
    level = _middle(apart_ns - np.rint(slope * (own_ns - middle)).astype(np.int64))
    rest = apart_ns - level - slope * (own_ns - middle)
    noise = max(float(np.median(np.abs(rest))), 1.0)
    if abs(slope) * span < _DRIFT_OVER_NOISE * noise:
        return RankClock(offset_ns=offset, middle_ns=middle)
    return RankClock(offset_ns=level, drift=slope, middle_ns=middle)


def _robust_slope(x: Int64, y: Int64) -> float:
    """Median of the slopes between events half the window apart (a Theil-Sen estimator with n/2 pairs)."""
    order = np.argsort(x, kind="stable")
    half = len(order) // 2
    early, late = order[:half], order[-half:]
    runs = (x[late] - x[early]).astype(np.float64)
    good = runs > 0
    return float(np.median((y[late] - y[early])[good] / runs[good])) if good.any() else 0.0


def _bound(ties: _Ties, of_rank: dict[int, RankClock], reference: int) -> dict[int, RankClock]:
    """The clocks with the offsets that causality allows against the reference's.

    No rank ends a collective before every rank has arrived: start_s - e_s <= T <= end_r - e_r for all ranks r, s
    of a collective, with T its latest arrival and e the error of an estimated offset. From e = 0 at the
    reference, upper and lower limits spread over the collectives until nothing changes (shortest paths).
    """
    clocks = Clocks(method="collective ends", reference=reference, of_rank=of_rank)
    tied = np.flatnonzero(np.isin(ties.rank, list(of_rank)))
    ranks, rank = np.unique(ties.rank[tied], return_inverse=True)
    rank, collective = rank.reshape(-1), ties.collective[tied]
    start = clocks.aligned(ties.rank[tied], ties.start[tied])
    end = clocks.aligned(ties.rank[tied], ties.end[tied])
    middle = int(np.median(start))
    start, end = start - middle, end - middle  # small numbers, far from _UNBOUNDED
    at_reference = ranks == reference
    high = _spread_limits(rank, collective, start, end, at_reference)
    # Mirrored in time, starts and ends change places and the upper limit becomes the lower one.
    low = -_spread_limits(rank, collective, -end, -start, at_reference)
    bounded = {}
    for number, up, down in zip(ranks.tolist(), high.tolist(), low.tolist(), strict=True):
        clock = of_rank[number]
        bounded[number] = replace(
            clock,
            high_ns=None if up >= _UNBOUNDED else clock.offset_ns + up,
            low_ns=None if down <= -_UNBOUNDED else clock.offset_ns + down,
        )
    return {**of_rank, **bounded}


def _spread_limits(rank: Int64, collective: Int64, start: Int64, end: Int64, at_reference: Bool) -> Int64:
    """Upper limit of each rank's error, int64[ranks] ns; _UNBOUNDED where nothing limits it."""
    limit = np.where(at_reference, 0, _UNBOUNDED).astype(np.int64)
    for _ in range(_MAX_ROUNDS):
        arrival = np.full(int(collective.max()) + 1, -_UNBOUNDED, np.int64)
        known = limit[rank] < _UNBOUNDED
        np.maximum.at(arrival, collective[known], start[known] - limit[rank[known]])
        useful = arrival[collective] > -_UNBOUNDED
        tighter = limit.copy()
        np.minimum.at(tighter, rank[useful], end[useful] - arrival[collective[useful]])
        tighter[at_reference] = 0
        if (tighter == limit).all():
            break
        limit = tighter
    return limit


def _residuals(ties: _Ties, clocks: Clocks) -> tuple[int | None, int | None]:
    """Median and largest spread of a collective's ends after alignment: last end - first end, ns."""
    tied = np.flatnonzero(np.isin(ties.rank, list(clocks.of_rank)))
    if len(tied) == 0:
        return None, None
    size = int(ties.collective.max()) + 1
    ends = clocks.aligned(ties.rank[tied], ties.end[tied])
    first = np.full(size, np.iinfo(np.int64).max)
    last = np.full(size, np.iinfo(np.int64).min)
    np.minimum.at(first, ties.collective[tied], ends)
    np.maximum.at(last, ties.collective[tied], ends)
    spread = (last - first)[np.bincount(ties.collective[tied], minlength=size) > 1]
    return (int(np.median(spread)), int(spread.max())) if len(spread) else (None, None)

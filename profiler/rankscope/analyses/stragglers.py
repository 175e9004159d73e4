"""Whom everybody waits for: what ranks, hosts, groups and stages cost, and the verdict.

Lateness (last arrival - second last) is shown, but it blames innocent ranks where groups chain and is blind to two
equally slow ones. What decides is the cost of a set of ranks: how much shorter the steps would be if its own work
were like that of its peers, by replay of the synchronisation graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rankscope.correlate.candidates import Candidate
from rankscope.correlate.graph_steps import GraphSteps, StepTimes
from rankscope.correlate.own_work import OwnWork, change_to_peers
from rankscope.correlate.replay import replay
from rankscope.correlate.sync_graph import SyncGraph
from rankscope.model.chance import chance_of
from rankscope.model.groups import name_ranks
from rankscope.model.intervals import Bool, Int64

Verdict = Literal["found", "none", "inconclusive"]
Confidence = Literal["high", "medium", "low"]

_BATCH = 8
_SIMILAR = 0.6
_MIN_STEPS = 3
_MANY_STEPS = 5
_REPLAY_TOLERANCE = 0.02
_CHANCE = 0.065
_ALWAYS_LAST = 0.9
_MANY_COLLECTIVES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When a set is named.

    Attributes:
        cost_ratio: least cost as a share of the step.
        steps_ratio: least share of the steady steps in which the cost is that high.
    """

    cost_ratio: float = 0.02
    steps_ratio: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a set of ranks costs.

    Attributes:
        candidate: the set.
        per_step_ns: int64[s], by how much each step would be shorter.
        step_ns: int64[s], how long it is among the ranks that hang together with the set.
    """

    candidate: Candidate
    per_step_ns: Int64
    step_ns: Int64

    @property
    def typical_ns(self) -> int:
        """Median over the steps."""
        return int(np.median(self.per_step_ns)) if len(self.per_step_ns) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StragglerResult:
    """The verdict and what it rests on.

    Attributes:
        verdict: found, none or inconclusive.
        culprit: the set that is named, and its cost.
        confidence: of a verdict "found".
        slowdown: measured over replayed length of the steps; None where the replay is off by more than 2 %.
        saved_ns: int64[s], by how much each step would really be shorter: the cost, less what the hosts of the other
            ranks would then make them wait for (`with_saving`); None if nobody is named.
        reason: one sentence.
        costs: of all candidates.
        steps: the steps.
    """

    verdict: Verdict
    culprit: Cost | None
    confidence: Confidence | None
    slowdown: float | None
    reason: str
    costs: tuple[Cost, ...]
    steps: StepTimes
    saved_ns: Int64 | None = None

    @property
    def typical_saving_ns(self) -> int | None:
        """Median over the steps."""
        return None if self.saved_ns is None or not len(self.saved_ns) else int(np.median(self.saved_ns))


@dataclass(frozen=True, slots=True, kw_only=True)
class LastArrivals:
    """How often ranks were last.

    Attributes:
        share: rank -> share of its groups' countable collectives in which it was last.
        countable: rank -> number of those.
        rivals: number of ranks among which one could be last.
    """

    share: Mapping[int, float]
    countable: Mapping[int, int]
    rivals: int


def measure_costs(
    graph: SyncGraph,
    work: OwnWork,
    candidates: Sequence[Candidate],
    component: Mapping[int, int],
    steady: Sequence[int] | None,
) -> tuple[StepTimes, tuple[Cost, ...]]:
    """Lengths of the steps, and the cost of each candidate per step.

    Args:
        graph: the synchronisation graph.
        work: own work of its nodes.
        candidates: sets of ranks.
        component: rank -> number of the ranks that hang together with it; steps are measured among those.
        steady: step numbers to judge by; None if the run has no step markers: then all is one step.
    """
    boundaries = GraphSteps(graph, steady)
    base = replay(graph)
    boundaries.keep_long(base)
    component_of_sync = _component_of_sync(graph, component)
    everything = np.ones(len(graph), bool)
    steps = StepTimes(
        numbers=boundaries.numbers,
        measured_ns=boundaries.lengths(graph.end_ns, everything),
        replayed_ns=boundaries.lengths(base, everything),
    )
    costs = []
    at_arrival = np.empty((len(graph.event), min(len(candidates), _BATCH)), np.int64)
    at_block = np.empty_like(at_arrival)
    for first in range(0, len(candidates), _BATCH):
        batch = candidates[first : first + _BATCH]
        for i, candidate in enumerate(batch):
            at_arrival[:, i], at_block[:, i] = change_to_peers(graph, work, candidate.ranks)
        ends = replay(graph, work_change=at_arrival[:, : len(batch)], block_change=at_block[:, : len(batch)])
        for i, candidate in enumerate(batch):
            among = _hang_together(component_of_sync, component, candidate.ranks)
            length = boundaries.lengths(base, among)
            # A set that works less than its peers would make steps longer; it costs nothing.
            saved = np.clip(length - boundaries.lengths(ends[:, i], among), 0, length)
            costs.append(Cost(candidate=candidate, per_step_ns=saved, step_ns=length))
    return steps, tuple(costs)


def _component_of_sync(graph: SyncGraph, component: Mapping[int, int]) -> Int64:
    """int64[s], the component of each sync's ranks."""
    ranks = graph.node_rank[graph.node[graph.first[:-1]]].tolist()
    return np.array([component.get(rank, -1) for rank in ranks], np.int64)


def _hang_together(component_of_sync: Int64, component: Mapping[int, int], ranks: Sequence[int]) -> Bool:
    """bool[s], syncs among the ranks that hang together with any of these."""
    return np.isin(component_of_sync, [component.get(rank, -2) for rank in ranks])


def with_saving(
    result: StragglerResult,
    graph: SyncGraph,
    work: OwnWork,
    component: Mapping[int, int],
    steady: Sequence[int] | None,
) -> StragglerResult:
    """The verdict with what a step would really be shorter, and the slowdown by that.

    The cost says how long devices wait for the set. Where the hosts of the other ranks run behind that wait, they
    would be waited for next.
    """
    if result.culprit is None:
        return result
    ranks = result.culprit.candidate.ranks
    events = (len(graph.event), 1)
    at_arrival, at_block = change_to_peers(graph, work, ranks)
    base = replay(graph, free_hosts=np.zeros(events, bool))
    ends = replay(
        graph,
        work_change=at_arrival,
        block_change=at_block,
        free_hosts=np.isin(graph.node_rank[graph.node], ranks).reshape(events),
    )
    steps = GraphSteps(graph, steady)
    steps.keep_long(base)
    among = _hang_together(_component_of_sync(graph, component), component, ranks)
    length = steps.lengths(base, among)
    saved = np.maximum(length - steps.lengths(ends, among), 0)
    left = int((length - saved).sum())
    error = result.steps.replay_error
    trusted = error is not None and error <= _REPLAY_TOLERANCE and left > 0
    return replace(result, saved_ns=saved, slowdown=int(length.sum()) / left if trusted else None)


def judge(
    steps: StepTimes,
    costs: Sequence[Cost],
    thresholds: Thresholds,
    *,
    last: LastArrivals,
    obstacle: str | None,
) -> StragglerResult:
    """The verdict.

    Args:
        steps: the steps that count.
        costs: of the candidates.
        thresholds: when a set is named.
        last: how often each rank was last.
        obstacle: why the data cannot tell, or None.
    """
    if obstacle is not None:
        return _result("inconclusive", steps, costs, obstacle)
    if len(steps.numbers) == 0 or not costs:
        return _result("inconclusive", steps, costs, "no collective was found on several ranks")
    passing = [cost for cost in costs if _passes(cost, steps, thresholds, last)]
    if not passing:
        return _nobody(steps, costs, thresholds)
    most = max(cost.typical_ns for cost in passing)
    culprit = min(
        (cost for cost in passing if cost.typical_ns >= _SIMILAR * most),
        key=lambda c: (len(c.candidate.ranks), -c.typical_ns, c.candidate.ranks),
    )
    return _found(culprit, steps, costs, thresholds)


def _passes(cost: Cost, steps: StepTimes, thresholds: Thresholds, last: LastArrivals) -> bool:
    ranks = cost.candidate.ranks
    share = sum(last.share.get(rank, 0.0) for rank in ranks)
    if len(steps.numbers) < _MIN_STEPS:
        return bool(_is_high(cost, thresholds).all()) and share >= thresholds.steps_ratio
    if not _is_usual(cost, thresholds):
        return False
    countable = min((last.countable.get(rank, 0) for rank in ranks), default=0)
    always_last = share >= _ALWAYS_LAST and countable >= _MANY_COLLECTIVES
    return always_last or not _may_be_chance(cost, thresholds, last.rivals // len(ranks))


def is_certain(cost: Cost, thresholds: Thresholds, rivals: int) -> bool:
    """Whether a set costs enough in enough of the steps, and chance does not explain that.

    Args:
        cost: what it costs.
        thresholds: what is enough.
        rivals: number of sets one of which could be it.
    """
    enough = len(cost.per_step_ns) >= _MIN_STEPS and _is_usual(cost, thresholds)
    return enough and not _may_be_chance(cost, thresholds, rivals)


def _is_usual(cost: Cost, thresholds: Thresholds) -> bool:
    """Whether the cost reaches the threshold in enough of the steps."""
    return bool(_is_high(cost, thresholds).mean() >= thresholds.steps_ratio) and cost.typical_ns > 0


def _may_be_chance(cost: Cost, thresholds: Thresholds, rivals: int) -> bool:
    high = _is_high(cost, thresholds)
    return chance_of(int(high.sum()), len(high), max(rivals, 2)) > _CHANCE


def _nobody(steps: StepTimes, costs: Sequence[Cost], thresholds: Thresholds) -> StragglerResult:
    """Verdict "none", or "inconclusive" where a set costs enough, but in too few steps to tell it from chance."""
    enough = [c for c in costs if _is_usual(c, thresholds)]
    if not enough:
        share = max(c.typical_ns / max(int(np.median(c.step_ns)), 1) for c in costs)
        text = (
            f"no rank or set of ranks costs {100 * thresholds.cost_ratio:g} % of the step in half of the steps; the "
            f"most is {100 * max(share, 0):.1f} %"
        )
        return _result("none", steps, costs, text)
    worst = max(enough, key=lambda c: (c.typical_ns, -len(c.candidate.ranks)))
    share = worst.typical_ns / max(int(np.median(worst.step_ns)), 1)
    text = (
        f"{name_ranks(worst.candidate.ranks)} {'costs' if len(worst.candidate.ranks) == 1 else 'cost'} "
        f"{100 * share:.1f} % of the step, but that the others waited in {int(_is_high(worst, thresholds).sum())} of "
        f"{len(worst.step_ns)} steps may be chance; record more steps"
    )
    return _result("inconclusive", steps, costs, text)


def _is_high(cost: Cost, thresholds: Thresholds) -> Bool:
    """bool[s], steps in which the cost reaches the threshold."""
    high: Bool = cost.per_step_ns >= thresholds.cost_ratio * cost.step_ns
    return high


def _found(culprit: Cost, steps: StepTimes, costs: Sequence[Cost], thresholds: Thresholds) -> StragglerResult:
    high = float(_is_high(culprit, thresholds).mean())
    if len(steps.numbers) < _MIN_STEPS:
        confidence: Confidence = "low"
    else:
        confidence = "high" if len(steps.numbers) >= _MANY_STEPS and high >= 0.8 else "medium"
    return StragglerResult(
        verdict="found",
        culprit=culprit,
        confidence=confidence,
        slowdown=None,
        reason=f"with its own work like that of its peers, {100 * high:.0f} % of the steps would be at least "
        f"{100 * thresholds.cost_ratio:g} % shorter",
        costs=tuple(costs),
        steps=steps,
    )


def _result(verdict: Verdict, steps: StepTimes, costs: Sequence[Cost], reason: str) -> StragglerResult:
    return StragglerResult(
        verdict=verdict,
        culprit=None,
        confidence=None,
        slowdown=None,
        reason=reason,
        costs=tuple(costs),
        steps=steps,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """A display figure: for whom others waited at countable collectives.

    Attributes:
        per_step: (step, rank) -> sum of last arrival - second last where the rank was last, ns.
        last_in: rank -> number of countable collectives in which it was last.
        countable: rank -> number of countable collectives of its groups.
        collectives: int64[k], the collectives that are countable.
    """

    per_step: dict[tuple[int, int], int]
    last_in: dict[int, int]
    countable: dict[int, int]
    collectives: Int64


def add_lateness(
    *,
    step: Int64,
    last_rank: Int64,
    lateness_ns: Int64,
    threshold_ns: Int64,
    countable: Int64,
    first: Int64,
    member_rank: Int64,
) -> Lateness:
    """Sums of lateness over countable collectives.

    Args:
        step, last_rank, lateness_ns, threshold_ns: int64[c], of each collective; lateness counts above its threshold.
        countable: int64[k], the collectives that count.
        first: int64[c + 1], where each collective's members begin.
        member_rank: int64[m], ranks of the members.
    """
    inside = np.zeros(len(last_rank), bool)
    inside[countable] = True
    of_member = np.repeat(inside, np.diff(first))
    ranks, counts = np.unique(member_rank[of_member], return_counts=True)
    late = countable[lateness_ns[countable] > threshold_ns[countable]]
    per_step: dict[tuple[int, int], int] = defaultdict(int)
    for number, rank, ns in zip(
        step[late].tolist(), last_rank[late].tolist(), lateness_ns[late].tolist(), strict=True
    ):
        per_step[number, rank] += ns
    late_ranks, late_counts = np.unique(last_rank[late], return_counts=True)
    return Lateness(
        per_step=dict(per_step),
        last_in=dict(zip(late_ranks.tolist(), late_counts.tolist(), strict=True)),
        countable=dict(zip(ranks.tolist(), counts.tolist(), strict=True)),
        collectives=countable,
    )

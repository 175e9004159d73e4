"""All ranks together: matching, clocks, waits, the synchronisation graph and the straggler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankscope.analyses.collectives import CollectiveTimes, measure_collectives
from rankscope.analyses.late_cause import LateCause, explain_lateness
from rankscope.analyses.slow_network import find_slow_network
from rankscope.analyses.stragglers import (
    Cost,
    LastArrivals,
    Lateness,
    StragglerResult,
    Thresholds,
    add_lateness,
    is_certain,
    judge,
    measure_costs,
    with_saving,
)
from rankscope.correlate.candidates import find_candidates
from rankscope.correlate.clock_samples import ClockSamples, Disagreement, find_disagreements, tie_by_samples
from rankscope.correlate.clocks import Clocks, align_clocks
from rankscope.correlate.communications import Communications
from rankscope.correlate.graph_steps import StepTimes
from rankscope.correlate.match import Matching, match_collectives
from rankscope.correlate.own_work import OwnWork, measure_own_work
from rankscope.correlate.point_to_point import Pairs, pair_point_to_point
from rankscope.correlate.run_communications import RunCommunications, join_ranks
from rankscope.correlate.sync_graph import NONE, SyncGraph, build_sync_graph
from rankscope.model.grouping import places_of_each
from rankscope.model.groups import name_ranks
from rankscope.model.intervals import Int64
from rankscope.model.run import Run
from rankscope.pipeline.window_results import WindowResults
from rankscope.units import format_duration, format_size, us_to_ns

_LATENESS_ERRORS = 3
_MIN_IN_GRAPH = 0.5
_BEYOND_BOUNDS_NS = us_to_ns(250)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Everything that needs more than one rank.

    Attributes:
        parts: communications of every window and device.
        comms: communication events of all ranks.
        events_of_part: for each part its events, indices into `comms`.
        wait_ns: int64[n], wait of each event that is part of a collective; 0 for the others.
        matching: which of them are one collective.
        pairs: sends and their receives.
        clocks: the ranks' clocks.
        clock_disagreements: ranks whose clocks the collector's samples saw elsewhere.
        times: waits, transfers and arrivals.
        collective_step: int64[c], step of each collective, -1 outside steps.
        graph: the synchronisation graph.
        lateness: the display figure.
        straggler: the verdict.
        cause: why the culprit is late; None without one.
    """

    parts: tuple[Communications, ...]
    comms: RunCommunications
    events_of_part: tuple[Int64, ...]
    wait_ns: Int64
    matching: Matching
    pairs: Pairs
    clocks: Clocks
    clock_disagreements: tuple[Disagreement, ...]
    times: CollectiveTimes
    collective_step: Int64
    graph: SyncGraph
    lateness: Lateness
    straggler: StragglerResult
    cause: LateCause | None


def put_together(
    run: Run, results: Sequence[WindowResults], steady: Sequence[int], thresholds: Thresholds | None = None
) -> Together:
    """Ranks together.

    Args:
        run: the run.
        results: its windows.
        steady: numbers of the steady steps; empty if there are no step markers.
        thresholds: when a straggler is named.
    """
    parts = [r.communications for r in results]
    comms = join_ranks(parts, [r.communication_steps for r in results])
    matching = match_collectives(comms, run.world_size)
    pairs = pair_point_to_point(comms)
    clocks = align_clocks(comms, matching)
    times = measure_collectives(comms, matching, clocks)
    step = _collective_steps(comms, times)
    graph = build_sync_graph(comms, parts, matching, pairs, clocks)
    has_steps = any(len(r.spans) for r in results)
    lateness = measure_lateness(comms, times, clocks, graph, step, steady if has_steps else None)
    steps = steady if has_steps else None
    work = measure_own_work(graph, comms, _component(clocks))
    straggler = _straggler(run, comms, graph, work, clocks, lateness, steps, thresholds)
    cause = None
    if straggler.verdict == "none":
        straggler, cause = _or_slow_network(run, straggler, graph, comms, steps, thresholds or Thresholds())
    elif straggler.culprit is not None:
        rank = _worst_of(straggler)
        spans = [r.spans for r in results]
        cause = explain_lateness(rank, parts, spans, comms, graph, work, clocks, steps)
    samples = ClockSamples(o for w in run.windows if w.manifest is not None for o in w.manifest.clock_offsets)
    return Together(
        parts=tuple(parts),
        comms=comms,
        events_of_part=tuple(places_of_each(comms.part, len(parts))),
        wait_ns=_wait_of_events(comms, times),
        matching=matching,
        pairs=pairs,
        clocks=tie_by_samples(clocks, samples, comms.ranks),
        clock_disagreements=tuple(find_disagreements(clocks, samples)),
        times=times,
        collective_step=step,
        graph=graph,
        lateness=lateness,
        straggler=straggler,
        cause=cause,
    )


def _wait_of_events(comms: RunCommunications, times: CollectiveTimes) -> Int64:
    wait = np.zeros(len(comms), np.int64)
    wait[times.event] = times.wait_ns
    return wait


def _collective_steps(comms: RunCommunications, times: CollectiveTimes) -> Int64:
    """The largest step number over the ranks: one that launched it before its window says -1."""
    step = np.full(len(times), NONE, np.int64)
    np.maximum.at(step, times.collective, comms.step[times.event])
    return step


def measure_lateness(
    comms: RunCommunications,
    times: CollectiveTimes,
    clocks: Clocks,
    graph: SyncGraph,
    step: Int64,
    steady: Sequence[int] | None,
    *,
    exclude: bool = True,
) -> Lateness:
    """Last arrival - second last arrival, summed by step and by the rank that was last.

    Args:
        comms, times, clocks, graph: of the run.
        step: int64[c], step of each collective.
        steady: step numbers that count; None = all.
        exclude: leave out what says little: collectives that some rank lacks, the first of a group in a window,
            those that queued behind another, and latenesses below 3 x the clocks' uncertainty. Without, every
            matched synchronising collective counts.
    """
    counts = times.synchronising & times.aligned & (np.diff(times.first) > 1)
    threshold = np.zeros(len(times), np.int64)
    if exclude:
        counts &= times.complete & ~times.first_of_group
        # One that queued behind another on its stream arrived when the stream was free, which says nothing.
        queued = np.zeros(len(comms), bool)
        queued[graph.event[graph.queued_behind != NONE]] = True
        counts[times.collective[queued[times.event]]] = False
        threshold = _LATENESS_ERRORS * _clock_errors(comms, times, clocks)
    if steady is not None:
        counts &= np.isin(step, list(steady))
    return add_lateness(
        step=step,
        last_rank=times.last_rank,
        lateness_ns=times.lateness_ns,
        threshold_ns=threshold,
        countable=np.flatnonzero(counts),
        first=times.first,
        member_rank=comms.rank[times.event],
    )


def _clock_errors(comms: RunCommunications, times: CollectiveTimes, clocks: Clocks) -> Int64:
    """The largest clock error among the ranks of each collective, int64[c] ns."""
    size = max(comms.ranks, default=0) + 1
    error_of = np.zeros(size, np.int64)
    for rank in comms.ranks:
        error_of[rank] = clocks.error_ns(rank) or 0
    largest = np.zeros(len(times), np.int64)
    np.maximum.at(largest, times.collective, error_of[comms.rank[times.event]])
    return largest


def _straggler(
    run: Run,
    comms: RunCommunications,
    graph: SyncGraph,
    work: OwnWork,
    clocks: Clocks,
    lateness: Lateness,
    steady: Sequence[int] | None,
    thresholds: Thresholds | None,
) -> StragglerResult:
    obstacle = _obstacle(run, comms, graph, clocks)
    if len(graph) == 0:
        empty = np.empty(0, np.int64)
        steps = StepTimes(numbers=empty, measured_ns=empty, replayed_ns=empty)
        nobody = LastArrivals(share={}, countable={}, rivals=0)
        return judge(steps, (), thresholds or Thresholds(), last=nobody, obstacle=obstacle)
    candidates = find_candidates(work, comms, _hosts(run))
    judged = _judged_steps(steady, work)
    steps, costs = measure_costs(graph, work, candidates, _component(clocks), judged)
    last = LastArrivals(
        share={rank: lateness.last_in.get(rank, 0) / n for rank, n in lateness.countable.items() if n},
        countable=lateness.countable,
        rivals=len(comms.ranks),
    )
    verdict = judge(steps, costs, thresholds or Thresholds(), last=last, obstacle=obstacle)
    return with_saving(verdict, graph, work, _component(clocks), judged)


def _or_slow_network(
    run: Run,
    nobody: StragglerResult,
    graph: SyncGraph,
    comms: RunCommunications,
    steady: Sequence[int] | None,
    thresholds: Thresholds,
) -> tuple[StragglerResult, LateCause | None]:
    """The verdict where nobody works longer than its peers: slow links, or still nobody."""
    slow = find_slow_network(graph, comms, _hosts(run), steady)
    if slow is None:
        return nobody, None
    cost = Cost(candidate=slow.candidate, per_step_ns=slow.per_step_ns, step_ns=slow.step_ns)
    if not is_certain(cost, thresholds, slow.rivals):
        return nobody, None
    ratio = slow.transfer_ns / max(slow.peers_ns, 1)
    size = "" if slow.size_bytes is None else f" of {format_size(slow.size_bytes)}"
    reason = (
        f"nobody arrives late, but {slow.op}{size} takes {format_duration(slow.transfer_ns)} on its links, {ratio:.1f} "
        f"times the {format_duration(slow.peers_ns)} on links of the same shape"
    )
    cause = LateCause(
        kind="network", stage=None, name=slow.op, excess_ns=cost.typical_ns, reason=reason, evidence=()
    )
    return replace(
        nobody, verdict="found", culprit=cost, confidence="medium", reason=reason, saved_ns=slow.per_step_ns
    ), cause


def _judged_steps(steady: Sequence[int] | None, work: OwnWork) -> Sequence[int] | None:
    """The steps to judge by: best those of which nothing is missing on any rank, nor of the step before.

    A rank that lacks a collective does not come sooner when others do: its wait for them looks like work.
    """
    if steady is None:
        return None
    whole = [step for step in steady if step not in work.incomplete_steps]
    return [step for step in whole if step - 1 not in work.incomplete_steps] or whole or steady


def _component(clocks: Clocks) -> dict[int, int]:
    """Rank -> a number that is equal for ranks that hang together."""
    return {rank: clock.reference for rank, clock in clocks.of_rank.items()}


def _hosts(run: Run) -> dict[int, str]:
    return {w.rank: w.host for w in run.windows if w.host}


def _worst_of(straggler: StragglerResult) -> int:
    """The rank of the culprit that costs most by itself, to look for the cause."""
    assert straggler.culprit is not None  # noqa: S101 - only called with one
    ranks = straggler.culprit.candidate.ranks
    single = {c.candidate.ranks[0]: c.typical_ns for c in straggler.costs if len(c.candidate.ranks) == 1}
    return max(ranks, key=lambda rank: (single.get(rank, 0), -rank))


def _obstacle(run: Run, comms: RunCommunications, graph: SyncGraph, clocks: Clocks) -> str | None:
    """Why nobody may be named, or None."""
    if len(comms) == 0:
        return "there is no communication"
    missing = run.missing_ranks
    if missing:
        have, among = ("has", "it") if len(missing) == 1 else ("have", "among them")
        return (
            f"{name_ranks(missing)} {have} no readable file: the rank that the others wait for may be {among}"
        )
    if len(comms.ranks) < 2:
        return "only one rank communicates"
    if len(graph) == 0:
        return "no collective could be matched over the ranks"
    synchronising = comms.is_synchronising | comms.is_point_to_point
    duration = comms.end_ns - comms.start_ns
    total = int(duration[synchronising].sum())
    share = int(duration[graph.event].sum()) / total if total else 0.0
    if share < _MIN_IN_GRAPH:
        return f"only {100 * share:.0f} % of the synchronising communication could be matched over the ranks"
    beyond = {rank: clock.beyond_bounds_ns for rank, clock in clocks.of_rank.items()}
    doubtful = [rank for rank, ns in beyond.items() if ns > _BEYOND_BOUNDS_NS]
    if doubtful:
        return (
            f"collectives of {name_ranks(doubtful)} seem to end {format_duration(max(beyond.values()))} "
            "before all ranks have arrived, which cannot be: events were paired wrongly (do the traces name their "
            "process groups?) or a clock jumped"
        )
    return None

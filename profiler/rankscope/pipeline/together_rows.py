"""What all ranks together give, as rows of the report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankscope.analyses.wait_split import split_exposed
from rankscope.correlate.sync_graph import NONE
from rankscope.model.intervals import Int64
from rankscope.model.report import (
    Clock,
    CollectiveRow,
    GroupRow,
    PointToPointRow,
    Quantiles,
    RankRow,
    Residual,
    StepRow,
    Straggler,
    StragglerEvidence,
    StragglerRank,
)
from rankscope.pipeline.together import Together
from rankscope.pipeline.window_results import WindowResults


def clock_facts(together: Together) -> Clock:
    """How the clocks were aligned."""
    clocks = together.clocks
    tied = {rank: clock for rank, clock in sorted(clocks.of_rank.items()) if clocks.is_tied(rank)}
    return Clock(
        method=clocks.method,
        offsets_ns={rank: clock.offset_ns for rank, clock in tied.items()},
        uncertainty_ns={rank: clock.uncertainty_ns for rank, clock in tied.items()},
        drift_ppm={rank: 1e6 * clock.drift for rank, clock in tied.items() if clock.drift},
        residual_ns=Residual(median=clocks.residual_median_ns, max=clocks.residual_max_ns),
        untied_ranks=[rank for rank in together.comms.ranks if not clocks.is_tied(rank)],
    )


def matched_share(together: Together) -> float | None:
    """Share of communication time that belongs to a collective or pair found on all its ranks."""
    comms = together.comms
    duration = comms.end_ns - comms.start_ns
    total = int(duration.sum())
    if total == 0:
        return None
    complete = together.matching.is_complete
    matched = np.zeros(len(comms), bool)
    found = together.matching.collective >= 0
    matched[found] = complete[together.matching.collective[found]]
    matched[together.pairs.send] = matched[together.pairs.recv] = True
    return int(duration[matched].sum()) / total


def _step(number: int) -> int | None:
    return None if number == NONE else number


def with_waits(rows: list[RankRow], together: Together, results: Sequence[WindowResults]) -> list[RankRow]:
    """Rank rows with exposed communication split into wait and transfer, where collectives are complete."""
    times, pairs, comms = together.times, together.pairs, together.comms
    wait = np.zeros(len(comms), np.int64)
    known = (times.synchronising & times.complete & (np.diff(times.first) > 1))[times.collective]
    wait[times.event[known]] = times.wait_ns[known]
    send, recv = _pair_waits(together)
    wait[pairs.send], wait[pairs.recv] = send, recv
    split: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for mine, result in zip(together.events_of_part, results, strict=True):
        of_part = np.zeros(len(result.communications), np.int64)
        of_part[comms.index[mine]] = wait[mine]
        parts = split_exposed(result.communications, of_part)
        sums = split[result.events.window.rank, str(result.events.device)]
        sums[0] += parts.exposed_wait_ns
        sums[1] += parts.exposed_transfer_ns
    if not known.any() and not len(pairs):
        return rows
    return [
        replace(
            row,
            exposed_wait_ns=split[row.rank, str(row.device)][0],
            exposed_transfer_ns=split[row.rank, str(row.device)][1],
        )
        for row in rows
    ]


def _pair_waits(together: Together) -> tuple[Int64, Int64]:
    """(wait of each send, wait of each recv): duration - the shorter of the two durations."""
    comms, pairs = together.comms, together.pairs
    send = comms.end_ns[pairs.send] - comms.start_ns[pairs.send]
    recv = comms.end_ns[pairs.recv] - comms.start_ns[pairs.recv]
    transfer = np.minimum(send, recv)
    return send - transfer, recv - transfer


def point_to_point_rows(together: Together) -> list[PointToPointRow]:
    """One row per end of a send or receive, in order of rank and start."""
    comms, pairs = together.comms, together.pairs
    send_wait, recv_wait = _pair_waits(together)
    wait_of = dict(zip(pairs.send.tolist(), send_wait.tolist(), strict=True))
    wait_of |= zip(pairs.recv.tolist(), recv_wait.tolist(), strict=True)
    rows = []
    for event in np.flatnonzero(comms.is_point_to_point).tolist():
        token = comms.tokens[int(comms.token[event])]
        wait = wait_of.get(event)
        duration = int(comms.end_ns[event] - comms.start_ns[event])
        peer = int(comms.peer[event])
        rows.append(
            PointToPointRow(
                step=_step(int(comms.step[event])),
                op=token.op,
                rank=int(comms.rank[event]),
                peer=peer if peer >= 0 else None,
                size_bytes=token.size_bytes,
                wait_ns=wait,
                transfer_ns=duration - wait if wait is not None else None,
            )
        )
    return rows


def with_transfers(rows: list[GroupRow], collectives: Sequence[CollectiveRow]) -> list[GroupRow]:
    """Group rows with counts over all ranks, transfer times and bus bandwidth of the complete collectives."""
    by_group: dict[tuple[str, str], list[CollectiveRow]] = defaultdict(list)
    for row in collectives:
        by_group[row.group, row.op].append(row)
    return [_with_transfer(row, by_group.get((row.group, row.op), [])) for row in rows]


def _with_transfer(row: GroupRow, collectives: list[CollectiveRow]) -> GroupRow:
    transfers = [c.transfer_ns for c in collectives if c.transfer_ns is not None]
    if not transfers:
        return row
    sized = [c for c in collectives if c.bus_bandwidth_gbps is not None and c.transfer_ns]
    moved = sum((c.bus_bandwidth_gbps or 0.0) * (c.transfer_ns or 0) for c in sized)
    took = sum(c.transfer_ns or 0 for c in sized)
    return replace(
        row,
        bus_bandwidth_gbps=moved / took if took else None,
        transfer_ns=Quantiles(
            p50=int(np.percentile(transfers, 50, method="lower")),
            p95=int(np.percentile(transfers, 95, method="lower")),
        ),
    )


def with_durations(rows: list[StepRow], together: Together) -> list[StepRow]:
    """Step rows with the step's duration on the device, where it can be told.

    That is the median over ranks of the time from the last collective of the step before to the equal one of
    this step; the first step of a window keeps its duration on the host.
    """
    comms, times = together.comms, together.times
    usable = times.synchronising[times.collective]
    event, number = times.event[usable], times.collective[usable]
    step = together.collective_step[number]
    keys: dict[tuple[int, int, int], tuple[int, int]] = {}
    for e, s in zip(event.tolist(), step.tolist(), strict=True):
        if s != NONE:
            key = (int(comms.part[e]), int(comms.rank[e]), s)
            end = int(comms.end_ns[e])
            if key not in keys or end > keys[key][0]:
                keys[key] = (end, int(comms.token[e]))
    lengths: dict[int, list[int]] = defaultdict(list)
    for (part, rank, s), (end, token) in keys.items():
        before = keys.get((part, rank, s - 1))
        if before is not None and before[1] == token:
            lengths[s].append(end - before[0])
    return [
        replace(row, duration_ns=int(np.median(lengths[row.step])))
        if row.step is not None and lengths.get(row.step)
        else row
        for row in rows
    ]


def straggler_section(together: Together, steady: Sequence[int]) -> Straggler:
    """The verdict and, per rank, lateness and cost."""
    result, lateness = together.straggler, together.lateness
    steps = max(len(steady), 1)
    cost_of = {c.candidate.ranks[0]: c.typical_ns for c in result.costs if len(c.candidate.ranks) == 1}
    sums: dict[int, int] = defaultdict(int)
    for (_, rank), ns in lateness.per_step.items():
        sums[rank] += ns
    culprit, cause = result.culprit, together.cause
    ranks = list(culprit.candidate.ranks) if culprit else []
    return Straggler(
        verdict=result.verdict,
        scope=culprit.candidate.scope if culprit else None,
        rank=ranks[0] if len(ranks) == 1 else None,
        ranks=ranks,
        cause=cause.kind if cause else None,
        cause_stage=cause.stage if cause else None,
        cause_name=cause.name if cause else None,
        cause_ns_per_step=cause.excess_ns if cause and cause.kind else None,
        cause_reason=cause.reason if cause else None,
        evidence=[
            StragglerEvidence(
                kind=e.kind, name=e.name, own_ns=e.own_ns, peers_ns=e.peers_ns, excess_ns=e.excess_ns
            )
            for e in (cause.evidence if cause else ())
        ],
        cost_ns_per_step=culprit.typical_ns if culprit else None,
        saved_ns_per_step=result.typical_saving_ns,
        slowdown=result.slowdown,
        confidence=result.confidence,
        reason=result.reason,
        by_rank=[
            StragglerRank(
                rank=rank,
                lateness_ns_per_step=sums.get(rank, 0) // steps,
                cost_ns_per_step=cost_of.get(rank),
                last_in=lateness.last_in.get(rank, 0),
                countable=lateness.countable.get(rank, 0),
            )
            for rank in together.comms.ranks
        ],
    )

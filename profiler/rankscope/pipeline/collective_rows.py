"""Collectives over all ranks as rows of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankscope.analyses.wait_split import hidden_ns
from rankscope.correlate.sync_graph import NONE
from rankscope.model.collective import algorithm_bandwidth_gbps, bus_factor
from rankscope.model.intervals import Int64
from rankscope.model.late_collectives import pick_late
from rankscope.model.report import CollectiveRow, WaitQuantiles
from rankscope.pipeline.together import Together
from rankscope.pipeline.window_results import WindowResults


def collective_rows(
    together: Together, results: Sequence[WindowResults], origin_ns: int, *, full: bool
) -> list[CollectiveRow]:
    """One row per collective, in order of time.

    Args:
        together: all ranks.
        results: the windows.
        origin_ns: absolute time of the report's zero.
        full: whether every row holds the arrivals and waits of its ranks; else the latest hold their arrivals.
    """
    if not len(together.comms):
        return []
    hidden = _hidden(together, results)[together.times.event]
    order = np.argsort(_first_arrivals(together), kind="stable").tolist()
    countable = set(together.lateness.collectives.tolist())
    rows = [
        _collective_row(together, k, index, hidden, countable=k in countable) for index, k in enumerate(order)
    ]
    for row in rows if full else pick_late(rows):
        rows[row.index] = _with_ranks(row, together, order[row.index], origin_ns, full=full)
    return rows


def _first_arrivals(together: Together) -> Int64:
    """Earliest arrival of each collective, by which they are listed."""
    earliest = np.full(len(together.times), np.iinfo(np.int64).max)
    np.minimum.at(earliest, together.times.collective, together.times.arrival_ns)
    return earliest


def _collective_row(
    together: Together, k: int, index: int, hidden: Int64, *, countable: bool
) -> CollectiveRow:
    times, comms, matching = together.times, together.comms, together.matching
    here = slice(int(times.first[k]), int(times.first[k + 1]))
    event = times.event[here]
    token = comms.tokens[int(comms.token[event[0]])]
    duration = int(times.duration_ns[here].sum())
    measured = _is_measured(together, k)
    transfer = int(times.transfer_ns[k]) if measured else None
    factor = bus_factor(token.op, int(matching.expected[k]))
    algorithm = None
    if transfer is not None and token.size_bytes is not None:
        algorithm = algorithm_bandwidth_gbps(token.size_bytes, transfer)
    waits = times.wait_ns[here]
    comparable = measured and bool(times.aligned[k])
    step = int(together.collective_step[k])
    return CollectiveRow(
        index=index,
        step=None if step == NONE else step,
        group=comms.groups[int(matching.group[k])].label,
        op=token.op,
        dtype=token.dtype,
        size_bytes=token.size_bytes,
        sequence=int(matching.sequence[k]),
        matched_by=matching.matched_by(k),
        coalesced=_is_coalesced(together, int(event[0])),
        ranks=len(event),
        transfer_ns=transfer,
        lateness_ns=int(times.lateness_ns[k]) if comparable else None,
        last_rank=int(times.last_rank[k]) if comparable else None,
        overlap_ratio=int(hidden[here].sum()) / duration if duration else None,
        algorithm_bandwidth_gbps=algorithm,
        bus_bandwidth_gbps=algorithm * factor if algorithm is not None and factor else None,
        wait_ns=WaitQuantiles(p50=int(np.median(waits)), max=int(waits.max())) if measured else None,
        countable=countable,
    )


def _is_measured(together: Together, k: int) -> bool:
    """Whether wait and transfer can be told apart."""
    times = together.times
    several = int(times.first[k + 1] - times.first[k]) > 1
    return bool(times.synchronising[k] and times.complete[k] and several)


def _with_ranks(
    row: CollectiveRow, together: Together, k: int, origin_ns: int, *, full: bool
) -> CollectiveRow:
    times = together.times
    here = slice(int(times.first[k]), int(times.first[k + 1]))
    ranks = together.comms.rank[times.event[here]].tolist()
    arrivals = (times.arrival_ns[here] - origin_ns).tolist()
    waits = times.wait_ns[here].tolist()
    return replace(
        row,
        arrivals_ns=dict(zip(ranks, arrivals, strict=True)),
        waits_ns=dict(zip(ranks, waits, strict=True)) if full and _is_measured(together, k) else None,
    )


def _is_coalesced(together: Together, event: int) -> bool:
    part = together.parts[int(together.comms.part[event])]
    return part.kinds[int(part.kind[together.comms.index[event]])].coalesced


def _hidden(together: Together, results: Sequence[WindowResults]) -> Int64:
    """Nanoseconds of each communication event beside which compute ran."""
    hidden = np.zeros(len(together.comms), np.int64)
    for mine, result in zip(together.events_of_part, results, strict=True):
        hidden[mine] = hidden_ns(result.communications)[together.comms.index[mine]]
    return hidden

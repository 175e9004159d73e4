"""Communication per operation and process group, over all ranks, and how much of it is understood."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankscope.correlate.communications import Communications
from rankscope.correlate.steps import OUTSIDE_STEPS
from rankscope.model.categories import UNKNOWN_OP
from rankscope.model.groups import GroupKey
from rankscope.model.intervals import Int64, covered_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTotal:
    """One operation in one process group.

    Attributes:
        group, op: which.
        count: collectives: the most that one rank took part in.
        size_bytes: sum of their sizes on that rank; None if one is unknown.
        communication_ns: sum over ranks of the union of its events.
        exposed_communication_ns: the part of that beside which no compute ran.
    """

    group: GroupKey
    op: str
    count: int
    size_bytes: int | None
    communication_ns: int
    exposed_communication_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageShares:
    """Shares of communication time, 0 to 1, None without communication: with a size, an operation, a step."""

    sized: float | None
    named: float | None
    in_steps: float | None


def total_by_group(communications: Sequence[Communications]) -> list[GroupTotal]:
    """Totals per operation and group, the longest exposed first."""
    per_rank: dict[tuple[GroupKey, str], dict[int, list[_Part]]] = defaultdict(lambda: defaultdict(list))
    for one in communications:
        for key, part in _parts(one).items():
            per_rank[key][one.events.window.rank].append(part)
    totals = [_total(group, op, parts) for (group, op), parts in per_rank.items()]
    return sorted(totals, key=lambda t: (-t.exposed_communication_ns, t.group.identity, t.group.label, t.op))


def measure_coverage(communications: Sequence[Communications], steps: Sequence[Int64]) -> CoverageShares:
    """Shares of communication time (durations added) with a size, a known operation, a step.

    Args:
        communications: of every window and device.
        steps: for each of those the step number of each event; OUTSIDE_STEPS where none.
    """
    total = sized = named = in_steps = 0
    for one, step in zip(communications, steps, strict=True):
        durations = one.events.table.duration_ns[one.rows]
        has_size = np.array([kind.size_bytes is not None for kind in one.kinds], bool)
        has_op = np.array([kind.op != UNKNOWN_OP for kind in one.kinds], bool)
        total += int(durations.sum())
        if len(durations):
            sized += int(durations[has_size[one.kind]].sum())
            named += int(durations[has_op[one.kind]].sum())
            in_steps += int(durations[step != OUTSIDE_STEPS].sum())
    if total == 0:
        return CoverageShares(sized=None, named=None, in_steps=None)
    return CoverageShares(sized=sized / total, named=named / total, in_steps=in_steps / total)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    count: int
    size_bytes: int | None
    communication_ns: int
    exposed_ns: int


def _parts(one: Communications) -> dict[tuple[GroupKey, str], _Part]:
    """Totals of one window on one device per (group, op)."""
    table, compute = one.events.table, one.events.compute
    cover = table.times_of(compute)
    kinds_of: dict[tuple[GroupKey, str], list[int]] = defaultdict(list)
    for number, kind in enumerate(one.kinds):
        kinds_of[kind.group, kind.op].append(number)
    parts = {}
    for key, numbers in kinds_of.items():
        rows = one.rows[np.isin(one.kind, numbers)]
        if len(rows) == 0:
            continue
        times = table.times_of(rows)
        covered = int(covered_ns(times.starts, times.ends, cover).sum())
        counts = np.bincount(one.kind, minlength=len(one.kinds))
        sizes = [one.kinds[n].size_bytes for n in numbers]
        parts[key] = _Part(
            count=len(rows),
            size_bytes=None
            if None in sizes
            else sum(int(counts[n]) * (one.kinds[n].size_bytes or 0) for n in numbers),
            communication_ns=times.length_ns,
            exposed_ns=times.length_ns - covered,
        )
    return parts


def _total(group: GroupKey, op: str, parts: dict[int, list[_Part]]) -> GroupTotal:
    most = max(parts.values(), key=lambda of_rank: sum(p.count for p in of_rank))
    everything = [part for of_rank in parts.values() for part in of_rank]
    sizes = [p.size_bytes for p in most]
    return GroupTotal(
        group=group,
        op=op,
        count=sum(p.count for p in most),
        size_bytes=None if None in sizes else sum(s or 0 for s in sizes),
        communication_ns=sum(p.communication_ns for p in everything),
        exposed_communication_ns=sum(p.exposed_ns for p in everything),
    )

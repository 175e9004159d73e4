"""Why a rank is late: what it did longer than its peers between the meetings with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankscope.correlate.clocks import Clocks, correction
from rankscope.correlate.communications import Communications
from rankscope.correlate.device_events import leaf_operators
from rankscope.correlate.host_stages import DATA_LOADING, OUTSIDE, HostStages, find_host_stages
from rankscope.correlate.own_work import OwnWork, middle
from rankscope.correlate.run_communications import RunCommunications
from rankscope.correlate.steps import StepSpans
from rankscope.correlate.sync_graph import SyncGraph
from rankscope.model.intervals import EMPTY, Int64, IntervalSet, covered_ns, intersect, merge, subtract, union

CauseKind = Literal["compute", "work", "host", "input", "memory", "network"]

_MAX_PEERS = 8
_MAX_STEPS = 32
_MAIN_SHARE = 0.5
_EVIDENCE_ROWS = 5
_NO_STEP = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One thing that took the rank longer than its peers, medians over the steps in ns.

    Attributes:
        kind: "compute", "memory" or "idle": what the device did meanwhile.
        name: kernel, operator or copy; for "idle" the stage in which the host was.
        own_ns, peers_ns: per step, on the rank and in the median of its peers.
        excess_ns: median over the steps of the difference.
    """

    kind: Literal["compute", "memory", "idle"]
    name: str
    own_ns: int
    peers_ns: int
    excess_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LateCause:
    """Why a rank is late.

    Attributes:
        kind: "compute" (the same kernels took longer), "work" (more kernels), "host" (the device was idle and the
            launches came late), "input" (so while the host loaded data), "memory" (copies), "network" (transfers on
            its links are slow, see `rankscope.analyses.slow_network`); None if no single thing stands out.
        stage: stage of the training step in which the host lost the time; None for device causes.
        name: annotation, operator or kernel that took longer; None if nothing names it.
        excess_ns: by how much, median over the steps.
        reason: one sentence.
        evidence: the largest differences.
    """

    kind: CauseKind | None
    stage: str | None
    name: str | None
    excess_ns: int
    reason: str
    evidence: tuple[Evidence, ...]


def explain_lateness(
    rank: int,
    parts: Sequence[Communications],
    spans: Sequence[StepSpans],
    comms: RunCommunications,
    graph: SyncGraph,
    work: OwnWork,
    clocks: Clocks,
    steady: Sequence[int] | None,
) -> LateCause:
    """What the rank did longer than its role peers, step by step.

    Args:
        rank: the late rank.
        parts: communications of every window and device.
        spans: the steps of each of them.
        comms, graph, work, clocks: of the run.
        steady: step numbers to look at; None without step markers.
    """
    mine, peers = _role(work, rank)
    if mine is None or not peers:
        return _unknown(
            "no other rank runs the same sequence of collectives, so there is nothing to compare with"
        )
    steps = list(steady)[:_MAX_STEPS] if steady is not None else [_NO_STEP]
    account = {n: _Account(n, parts, spans, comms, graph, work, clocks) for n in (mine, *peers)}
    kept = [s for s in steps if all(account[n].region(s) is not None for n in account)]
    if not kept:
        return _unknown("no step is complete on the rank and its peers")
    own = [account[mine].of_step(s) for s in kept]
    others = [[account[n].of_step(s) for n in peers] for s in kept]
    return _conclude(own, others)


def _role(work: OwnWork, rank: int) -> tuple[int | None, list[int]]:
    """(the rank's node with most events, nodes of its peers)."""
    mine = [i for i, node in enumerate(work.nodes) if node.rank == rank]
    if not mine:
        return None, []
    node = max(mine, key=lambda i: len(work.nodes[i].event))
    (role,) = [r for r in work.roles if node in r]
    peers = [i for i in role if work.nodes[i].rank != rank][:_MAX_PEERS]
    return node, peers


_Key = tuple[Literal["compute", "memory", "idle", "annotation", "count"], str]


class _Account:
    """What one node spent its own work on, by name, in each step."""

    def __init__(
        self,
        node: int,
        parts: Sequence[Communications],
        spans: Sequence[StepSpans],
        comms: RunCommunications,
        graph: SyncGraph,
        work: OwnWork,
        clocks: Clocks,
    ) -> None:
        self._node = work.nodes[node]
        number = self._node.number
        self._events = parts[number].events
        self._table = self._events.table
        self._ends = comms.end_ns[graph.event[self._node.event]]
        self._blocked = _on_own_clock(graph.node_blocked[number], clocks, self._node.rank)
        steps = spans[number]
        self._stages: HostStages = find_host_stages(self._table, (steps.starts, steps.ends))
        table = self._table
        # On the CPU a row of the autograd engine spans Python's hooks too: only what holds no other is compute.
        is_cpu = self._events.device == "cpu"
        self._compute_rows = leaf_operators(table) if is_cpu else self._events.compute
        self._compute = table.times_of(self._compute_rows)
        self._memory = table.times_of(self._events.memory)

    def region(self, step: int) -> IntervalSet | None:
        """From the last meeting of the step before to the last of this one, without what it was blocked."""
        inside = np.flatnonzero(self._node.step == step) if step != _NO_STEP else np.arange(len(self._ends))
        if len(inside) == 0:
            return None
        before = int(inside[0]) - 1
        start = int(self._ends[before]) if before >= 0 else int(self._ends[inside].min())
        end = int(self._ends[inside].max())
        if end <= start:
            return None
        return subtract(union(np.array([start]), np.array([end])), self._blocked)

    def of_step(self, step: int) -> dict[_Key, int]:
        """Nanoseconds by kind and name; ("compute", "") and ("memory", "") hold the unions.

        ("count", name) holds how often a kernel ran instead.
        """
        region = self.region(step) or EMPTY
        sums: dict[_Key, int] = {("compute", ""): intersect(region, self._compute).length_ns}
        sums["memory", ""] = subtract(intersect(region, self._memory), self._compute).length_ns
        self._add_names(sums, "compute", self._compute_rows, region)
        self._add_names(sums, "memory", self._events.memory, region)
        idle = subtract(region, merge(self._compute, self._memory))
        rest = idle
        for name, times in self._stages.stages.items():
            sums["idle", name] = intersect(idle, times).length_ns
            rest = subtract(rest, times)
        sums["idle", OUTSIDE] = rest.length_ns
        for name, times in self._stages.annotations.items():
            sums["annotation", name] = intersect(idle, times).length_ns
        return sums

    def _add_names(
        self, sums: dict[_Key, int], kind: Literal["compute", "memory"], rows: Int64, region: IntervalSet
    ) -> None:
        table = self._table
        spent = covered_ns(table.start_ns[rows], table.ends_of(rows), region)
        names, index = np.unique(table.name[rows[spent > 0]], return_inverse=True)
        totals = np.zeros(len(names), np.int64)
        np.add.at(totals, index.reshape(-1), spent[spent > 0])
        counts = np.bincount(index.reshape(-1), minlength=len(names))
        for name, total, count in zip(names.tolist(), totals.tolist(), counts.tolist(), strict=True):
            sums[kind, table.names[name]] = total
            if kind == "compute":
                sums["count", table.names[name]] = count


def _on_own_clock(times: IntervalSet, clocks: Clocks, rank: int) -> IntervalSet:
    clock = clocks.of_rank.get(rank)
    if clock is None or len(times) == 0:
        return times
    return IntervalSet(
        starts=times.starts + correction(clock, times.starts), ends=times.ends + correction(clock, times.ends)
    )


def _conclude(own: list[dict[_Key, int]], others: list[list[dict[_Key, int]]]) -> LateCause:
    keys = sorted(
        {key for sums in own for key in sums} | {key for step in others for sums in step for key in sums}
    )
    rows = {key: _compare(key, own, others) for key in keys}
    device = {kind: rows[kind, ""] for kind in ("compute", "memory")}
    idle = [row for (kind, _), row in rows.items() if kind == "idle"]
    total = sum(row.excess_ns for row in device.values()) + sum(row.excess_ns for row in idle)
    named = [row for (kind, name), row in rows.items() if name and kind not in ("annotation", "count")]
    evidence = tuple(
        sorted((r for r in named if r.excess_ns > 0), key=lambda r: -r.excess_ns)[:_EVIDENCE_ROWS]
    )
    worst_idle = max(idle, key=lambda r: r.excess_ns)
    worst_device = max(device.values(), key=lambda r: r.excess_ns)
    if total <= 0:
        return _unknown("its own work does not differ from that of its peers", evidence)
    if worst_device.excess_ns >= worst_idle.excess_ns:
        return _device_cause(worst_device, total, rows, evidence)
    return _host_cause(worst_idle, total, rows, evidence)


def _compare(key: _Key, own: list[dict[_Key, int]], others: list[list[dict[_Key, int]]]) -> Evidence:
    mine = np.array([sums.get(key, 0) for sums in own], np.int64)
    theirs = middle(np.array([[sums.get(key, 0) for sums in step] for step in others], np.int64).T)
    return Evidence(
        kind=key[0] if key[0] in ("compute", "memory") else "idle",
        name=key[1],
        own_ns=int(np.median(mine)),
        peers_ns=int(np.median(theirs)),
        excess_ns=int(np.median(mine - theirs)),
    )


def _device_cause(
    worst: Evidence, total: int, rows: dict[_Key, Evidence], evidence: tuple[Evidence, ...]
) -> LateCause:
    if worst.excess_ns < _MAIN_SHARE * total:
        return _unknown("no single kind of work makes up half of the difference", evidence)
    named = [row for (kind, name), row in rows.items() if kind == worst.kind and name]
    name = max(named, key=lambda r: r.excess_ns).name if named else None
    kind: CauseKind = "memory" if worst.kind == "memory" else "compute"
    reason = "copies and fills took longer than on its peers"
    if kind == "compute":
        more = {row.name: _time_of_more(row, rows["count", row.name]) for row in named}
        if sum(more.values()) >= _MAIN_SHARE * worst.excess_ns:
            kind, name = "work", max(more, key=lambda n: more[n])
            count = rows["count", name]
            reason = (
                f"it runs more kernels than its peers ({name}: {count.own_ns} to {count.peers_ns} in a step)"
            )
        else:
            reason = "the same kernels took longer than on its peers"
    return LateCause(
        kind=kind, stage=None, name=name, excess_ns=worst.excess_ns, reason=reason, evidence=evidence
    )


def _time_of_more(times: Evidence, counts: Evidence) -> int:
    """How much of the longer time of a kernel comes from running more often, at its peers' time for each."""
    each = times.peers_ns / counts.peers_ns if counts.peers_ns else times.own_ns / max(counts.own_ns, 1)
    return int(counts.excess_ns * each)


def _host_cause(
    worst: Evidence, total: int, rows: dict[_Key, Evidence], evidence: tuple[Evidence, ...]
) -> LateCause:
    if worst.excess_ns < _MAIN_SHARE * total:
        return _unknown("no single stage makes up half of the difference", evidence)
    annotations = [
        row
        for (kind, _), row in rows.items()
        if kind == "annotation" and row.excess_ns >= _MAIN_SHARE * worst.excess_ns
    ]
    name = max(annotations, key=lambda r: r.excess_ns).name if annotations else None
    loading = worst.name == DATA_LOADING
    return LateCause(
        kind="input" if loading else "host",
        stage=worst.name,
        name=name,
        excess_ns=worst.excess_ns,
        reason="the device was idle while its host loaded data"
        if loading
        else "the device was idle and waited for its host",
        evidence=evidence,
    )


def _unknown(reason: str, evidence: tuple[Evidence, ...] = ()) -> LateCause:
    return LateCause(kind=None, stage=None, name=None, excess_ns=0, reason=reason, evidence=evidence)

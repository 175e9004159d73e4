"""The host thread of one rank: it runs the program, writes host rows and launches device work.

`DeviceHost` is a process with a device: launches return at once and the host runs ahead of its streams.
`CpuHost` is a gloo process: compute and waits happen on the thread itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rankscope.errors import UsageError
from rankscope.testing.communication_names import annotation_of, operator_of
from rankscope.testing.device import DeviceEngine, Task
from rankscope.testing.program import (
    ACCUMULATE_NS,
    BUCKET_HOST_NS,
    BUCKET_LEAD_NS,
    COLLECTIVE_TAIL_NS,
    LAUNCH_NS,
    NESTING_NS,
    OPERATOR_LEAD_NS,
    OPERATOR_TAIL_NS,
    Collective,
    Communication,
    Compute,
    Copy,
    DeviceItem,
    DeviceSync,
    Group,
    HostWork,
    Item,
    PointToPoint,
    Program,
    Region,
    StreamWait,
    Thread,
)
from rankscope.testing.timeline import HostSpan, SpanKind

EVALUATE_ACCUMULATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
ACCUMULATE = "torch::autograd::AccumulateGrad"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Close:
    """The end of a region."""


class DeviceHost:
    """The host thread of a rank with a device."""

    _sync_kind: SpanKind | None = "sync"

    def __init__(self, rank: int, program: Program, engine: DeviceEngine, groups: dict[str, Group]) -> None:
        self.rank = rank
        self.spans: list[HostSpan] = []
        self.tasks: list[Task] = []
        self.now_ns = 0
        self.finished = False
        self._engine = engine
        self._groups = groups
        self._items: Iterator[Item | _Close] = _flatten(program)
        self._open: list[tuple[int | None, Thread, int | None]] = []
        self._thread: Thread = "main"
        self._step: int | None = None
        self._tail: dict[str, Task] = {}
        self._waits: dict[str, list[Task]] = {}
        self._sequences: Counter[tuple[str | int, ...]] = Counter()
        self._blocked = False

    def run(self) -> None:
        """Go on until the program ends or the host waits for a device."""
        while not self._blocked:
            item = next(self._items, None)
            if item is None:
                self.finished = True
                return
            self._do(item)

    def _do(self, item: Item | _Close) -> None:
        match item:
            case Region():
                self._open_region(item)
            case _Close():
                self._close_region()
            case HostWork():
                self._work(item)
            case Compute() | Copy():
                self._compute(item)
            case Collective() | PointToPoint():
                self._communicate(item)
            case StreamWait():
                self._wait(item)
            case DeviceSync():
                self._block(self._sync_kind, item, list(self._tail.values()))

    def _open_region(self, region: Region) -> None:
        place = None if region.name is None else len(self.spans)
        self._open.append((place, self._thread, self._step))
        self._thread = region.thread or self._thread
        self._step = self._step if region.step is None else region.step
        if region.name is not None:
            self._span("annotation", region.name, region, self.now_ns)

    def _close_region(self) -> None:
        place, self._thread, self._step = self._open.pop()
        if place is not None:
            self.spans[place] = replace(self.spans[place], end_ns=self.now_ns)

    def _work(self, work: HostWork) -> None:
        if work.name is not None:
            self._span("annotation", work.name, work, self.now_ns + work.duration_ns)
        self.now_ns += work.duration_ns

    def _compute(self, item: Compute | Copy) -> None:
        launch = len(self.tasks)
        launch_ns = self.now_ns + OPERATOR_LEAD_NS
        end_ns = launch_ns + LAUNCH_NS + OPERATOR_TAIL_NS
        name = item.operator if isinstance(item, Compute) else "aten::copy_"
        self._span("operator", name, item, end_ns, launch=launch)
        self._span("launch", "", item, launch_ns + LAUNCH_NS, start_ns=launch_ns, launch=launch)
        self._launch(item, launch_ns + LAUNCH_NS, after=())
        self.now_ns = end_ns

    def _communicate(self, item: Communication) -> None:
        self._require_member(item)
        is_bucket = self._accumulate(item)
        end_ns = self._call(item)
        self.now_ns = end_ns + NESTING_NS if is_bucket else end_ns

    def _accumulate(self, item: Communication) -> bool:
        """Write the AccumulateGrad rows of a bucket; True if the c10d operator stands inside the last one."""
        if not isinstance(item, Collective) or not item.parameters:
            return False
        for elements in item.parameters[:-1]:
            self._accumulate_row(item, elements, self.now_ns + ACCUMULATE_NS)
            self.now_ns += ACCUMULATE_NS
        self._accumulate_row(item, item.parameters[-1], self.now_ns + self._bucket_ns(item))
        self.now_ns += BUCKET_LEAD_NS
        return True

    def _accumulate_row(self, item: Collective, elements: int, end_ns: int) -> None:
        inner_ns = self.now_ns + NESTING_NS
        self._span("operator", EVALUATE_ACCUMULATE, item, end_ns)
        self._span("operator", ACCUMULATE, item, inner_ns + NESTING_NS, start_ns=inner_ns, shape=(elements,))

    def _bucket_ns(self, item: Collective) -> int:
        """Length of the AccumulateGrad row that holds the call of a bucket."""
        return BUCKET_HOST_NS + item.host_overhead_ns

    def _call(self, item: Communication) -> int:
        """Write the rows of the call and launch it; the end of the c10d operator."""
        launch = len(self.tasks)
        record_ns = self.now_ns + NESTING_NS
        launch_ns = record_ns + item.host_overhead_ns
        launched_ns = launch_ns + LAUNCH_NS
        end_ns = launched_ns + COLLECTIVE_TAIL_NS
        shape = (item.elements,)
        name = annotation_of("nccl", item, self.rank, self._groups[item.group].ranks)
        self._span("operator", operator_of(item), item, end_ns, shape=shape)
        self._span(
            "record", "record_param_comms", item, end_ns - NESTING_NS,
            start_ns=record_ns, launch=launch, shape=shape,
        )  # fmt: skip
        self._span("annotation", name, item, launched_ns + NESTING_NS, start_ns=record_ns + NESTING_NS)
        self._span("launch", "", item, launched_ns, start_ns=launch_ns, launch=launch)
        self._launch(item, launched_ns, after=item.after)
        return end_ns

    def _launch(self, item: DeviceItem, earliest_ns: int, *, after: tuple[str, ...]) -> None:
        stream = item.stream
        causes = [self._tail[s] for s in (stream, *after) if s in self._tail] + self._waits.pop(stream, [])
        for other in after:
            # An event recorded on a stream stands behind what that stream still waits for.
            causes += self._waits.get(other, [])
        task = Task(
            rank=self.rank,
            stream=stream,
            item=item,
            earliest_ns=earliest_ns,
            launch=len(self.tasks),
            sequence=self._next_sequence(item),
            step=self._step,
        )
        self._tail[stream] = task
        self.tasks.append(task)
        self._engine.launch(task, dict.fromkeys(causes))

    def _next_sequence(self, item: DeviceItem) -> int | None:
        if isinstance(item, (Compute, Copy)):
            return None
        if isinstance(item, Collective):
            key: tuple[str | int, ...] = (item.group,)
        else:
            ends = (self.rank, item.peer) if item.op == "send" else (item.peer, self.rank)
            key = (item.group, *ends)
        self._sequences[key] += 1
        return self._sequences[key] - 1

    def _require_member(self, item: Communication) -> None:
        group = self._groups.get(item.group)
        if group is None or self.rank not in group.ranks:
            members = "no such group" if group is None else f"it holds {list(group.ranks)}"
            raise UsageError(
                f"rank {self.rank} calls {item.op} in group {item.group!r}, of which it is not a member: {members}"
            )

    def _wait(self, wait: StreamWait) -> None:
        if wait.on in self._tail:
            self._waits.setdefault(wait.stream, []).append(self._tail[wait.on])

    def _block(self, kind: SpanKind | None, item: Item, causes: list[Task]) -> None:
        """Wait on the host thread until `causes` have ended; a kind leaves a row."""
        place = len(self.spans)
        if kind is not None:
            self._span(kind, "", item, self.now_ns)
        self._blocked = True

        def wake(end_ns: int) -> None:
            self.now_ns = end_ns
            if kind is not None:
                self.spans[place] = replace(self.spans[place], end_ns=end_ns)
            self._blocked = False
            self.run()

        task = Task(rank=self.rank, stream="host", item=None, earliest_ns=self.now_ns, wake=wake)
        self._engine.launch(task, causes)

    def _span(
        self,
        kind: SpanKind,
        name: str,
        item: Item,
        end_ns: int,
        *,
        start_ns: int | None = None,
        launch: int | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        start = self.now_ns if start_ns is None else start_ns
        span = HostSpan(
            kind=kind, name=name, thread=self._thread, start_ns=start, end_ns=end_ns, item=item,
            launch=launch, shape=shape,
        )  # fmt: skip
        self.spans.append(span)


class CpuHost(DeviceHost):
    """The host thread of a gloo process: compute runs on it, and waiting blocks it."""

    _sync_kind = None

    def _compute(self, item: Compute | Copy) -> None:
        name = item.operator if isinstance(item, Compute) else "aten::copy_"
        self._span("operator", name, item, self.now_ns + item.duration_ns)
        self.now_ns += item.duration_ns

    def _communicate(self, item: Communication) -> None:
        self._require_member(item)
        self._accumulate(item)
        self._call(item)

    def _bucket_ns(self, item: Collective) -> int:
        # The AccumulateGrad row and the c10d operator in it end together: the worker starts there, so that
        # all of the row counts as compute before the collective.
        return BUCKET_LEAD_NS + item.host_overhead_ns

    def _call(self, item: Communication) -> int:
        end_ns = self.now_ns + item.host_overhead_ns
        self._span("operator", operator_of(item), item, end_ns, shape=(item.elements,))
        self._launch(item, end_ns, after=item.after)
        self.now_ns = end_ns
        return end_ns

    def _wait(self, wait: StreamWait) -> None:
        self._block(None, wait, [self._tail[wait.on]] if wait.on in self._tail else [])


def _flatten(program: Program) -> Iterator[Item | _Close]:
    for item in program:
        yield item
        if isinstance(item, Region):
            yield from _flatten(item.items)
            yield _Close()

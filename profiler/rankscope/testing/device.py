"""The devices of a synthetic run: serial streams, waits between them, and collectives that end together.

A task starts when it is launched and all that it waits for has ended. The result does not depend on the
order in which the ranks are laid out: every time is a maximum over causes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rankscope.errors import UsageError
from rankscope.testing.program import Collective, DeviceItem, Group, PointToPoint

MeetingKey = tuple[str | int, ...]


@dataclass(slots=True, eq=False, kw_only=True)
class Task:
    """Work of one rank's device, or a wait of its host (`item` is None).

    Attributes:
        rank, stream, item, launch, sequence, step: as in `DeviceSpan`.
        earliest_ns: not before this; rises while what it waits for ends.
        pending: how many tasks it still waits for.
        start_ns, end_ns: true time; None until known.
        followers: tasks that wait for this one.
        wake: called with the end, for a wait of the host.
    """

    rank: int
    stream: str
    item: DeviceItem | None
    earliest_ns: int
    launch: int = -1
    sequence: int | None = None
    step: int | None = None
    pending: int = 0
    start_ns: int | None = None
    end_ns: int | None = None
    followers: list[Task] = field(default_factory=list)
    wake: Callable[[int], None] | None = None


class DeviceEngine:
    """Starts and ends the tasks of all ranks."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self._groups = {group.name: group for group in groups}
        self._ready: deque[Task] = deque()
        self._meetings: dict[MeetingKey, list[Task]] = {}

    def launch(self, task: Task, after: Iterable[Task]) -> None:
        """Let `task` start once everything in `after` has ended."""
        for cause in after:
            if cause.end_ns is None:
                cause.followers.append(task)
                task.pending += 1
            else:
                task.earliest_ns = max(task.earliest_ns, cause.end_ns)
        if task.pending == 0:
            self._ready.append(task)

    def settle(self) -> None:
        """Start and end every task that can, until nothing moves."""
        while self._ready:
            self._start(self._ready.popleft())

    def open_meetings(self) -> list[str]:
        """What collectives still wait for ranks, as text."""
        return [
            f"{_describe(tasks[0].item)} number {tasks[0].sequence} has ranks {sorted(t.rank for t in tasks)}"
            for tasks in self._meetings.values()
        ]

    def _start(self, task: Task) -> None:
        task.start_ns = task.earliest_ns
        item = task.item
        if isinstance(item, (Collective, PointToPoint)):
            self._meet(task, item)
        else:
            self._end(task, task.start_ns + (0 if item is None else item.duration_ns))

    def _meet(self, task: Task, item: Collective | PointToPoint) -> None:
        key, size = self._meeting_of(task, item)
        tasks = self._meetings.setdefault(key, [])
        tasks.append(task)
        _require_same_call(tasks[0], task)
        if len(tasks) < size:
            return
        del self._meetings[key]
        end_ns = max(t.start_ns or 0 for t in tasks) + item.transfer_ns
        for member in tasks:
            jitter_ns = member.item.end_jitter_ns if isinstance(member.item, Collective) else 0
            self._end(member, end_ns + jitter_ns)

    def _meeting_of(self, task: Task, item: Collective | PointToPoint) -> tuple[MeetingKey, int]:
        if isinstance(item, Collective):
            return ("collective", item.group, task.sequence or 0), len(self._groups[item.group].ranks)
        source, target = (task.rank, item.peer) if item.op == "send" else (item.peer, task.rank)
        return ("message", item.group, source, target, task.sequence or 0), 2

    def _end(self, task: Task, end_ns: int) -> None:
        task.end_ns = end_ns
        for follower in task.followers:
            follower.earliest_ns = max(follower.earliest_ns, end_ns)
            follower.pending -= 1
            if follower.pending == 0:
                self._ready.append(follower)
        if task.wake is not None:
            task.wake(end_ns)


def _require_same_call(first: Task, other: Task) -> None:
    if _signature(first.item) != _signature(other.item):
        raise UsageError(
            f"ranks {first.rank} and {other.rank} do not call the same collective at position {first.sequence}: "
            f"{_describe(first.item)} and {_describe(other.item)}. Give all ranks of a group the same order, "
            "sizes and transfer times."
        )


def _signature(item: DeviceItem | None) -> tuple[str | int, ...]:
    if isinstance(item, Collective):
        return (item.op, item.elements, item.dtype, item.transfer_ns)
    if isinstance(item, PointToPoint):
        return (item.elements, item.dtype, item.transfer_ns)
    return ()


def _describe(item: DeviceItem | None) -> str:
    if isinstance(item, Collective):
        return f"{item.op} of {item.elements} {item.dtype} in group {item.group} ({item.transfer_ns} ns)"
    if isinstance(item, PointToPoint):
        return f"{item.op} with rank {item.peer} of {item.elements} {item.dtype} ({item.transfer_ns} ns)"
    return "no collective"

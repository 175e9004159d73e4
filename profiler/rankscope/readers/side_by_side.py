"""Files read by several processes at once: whole ones, or parts of those that would keep the others waiting."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil

from rankscope.model.categories import Classifier
from rankscope.readers.byte_stream import is_packed
from rankscope.readers.discovery import TraceSource
from rankscope.readers.handover import Handover, Message, open_handover, work_through
from rankscope.readers.one_file import (
    KeptTable,
    Outcome,
    ReadOptions,
    find_kept_table,
    lost,
    outcome_of,
    read_one,
)
from rankscope.readers.text_parts import TEXT_PER_GZIP_BYTE, Part, unpacked_size
from rankscope.readers.trace_file import TraceFile, TracePart, read_part
from rankscope.readers.workers import messages_by_now, messages_of, start_workers

_SEQUENTIAL_TEXT_BYTES = 100 << 20
"""Runs whose text is smaller than this are read by one process: starting others costs more."""

_TASKS_PER_PROCESS = 8
"""Enough that all processes end at about the same time."""

_LAST_SHARE = 0.25
"""Of a process's work: files that are read then, as the last, are read in parts."""

_SMALLEST_PART_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """A file to read, or a part of one."""

    source: TraceSource
    part: Part | None = None


def number_of_processes(sources: tuple[TraceSource, ...], wanted: int) -> int:
    """How many processes are to read; `wanted` of 0 is one per core, if the text is large enough."""
    if wanted > 0:
        return wanted
    if sum(_text_bytes(source) for source in sources) < _SEQUENTIAL_TEXT_BYTES:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _text_bytes(source: TraceSource) -> int:
    """Bytes of a file's text, about."""
    return source.size_bytes * (TEXT_PER_GZIP_BYTE if source.name.lower().endswith(".gz") else 1)


def read_side_by_side(
    sources: tuple[TraceSource, ...], options: ReadOptions, processes: int
) -> Iterator[tuple[TraceSource, Outcome]]:
    """What comes of each file, in the order in which they are done.

    Other processes begin with the largest file, and this one meanwhile with the smallest.
    """
    results = _Results(options)
    tasks = [
        task
        for source, share, last in _shares(sources, processes)
        for task in results.plan(source, share, last)
    ]
    workers = min(processes, len(tasks)) - 1
    with open_handover() as handover:
        if workers == 0 or handover is None:
            yield from ((source, read_one(source, options)) for source in sources)
            return
        yield from _read_together(tuple(tasks), results, options, workers, handover)
    for source in results.unread:
        yield source, _read_alone(source, options)


def _read_together(
    tasks: tuple[_Task, ...], results: _Results, options: ReadOptions, workers: int, handover: Handover
) -> Iterator[tuple[TraceSource, Outcome]]:
    """Files as they become whole; the workers do the tasks from the first on, and this process from the last on."""
    missing = dict(enumerate(tasks))

    def take(messages: Iterable[Message]) -> Iterator[tuple[TraceSource, Outcome]]:
        for message in messages:
            result = handover.take(message)
            if message.task in missing:
                yield from results.take(missing.pop(message.task), result)

    scratch = handover.folder
    with start_workers(workers, work_through, handover, _do, tasks, options, scratch=scratch) as started:
        for number in reversed(range(len(tasks))):
            if handover.claim(number, otherwise=number in missing):
                yield from results.take(missing.pop(number), _do(tasks[number], options))
                yield from take(messages_by_now(started))
        yield from take(messages_of(started))
    for task in missing.values():  # whoever had it was killed
        yield from results.take(task, None)


def _shares(sources: tuple[TraceSource, ...], processes: int) -> Iterator[tuple[TraceSource, float, bool]]:
    """The files, the largest first; of each how many processes' work it is, and whether it is read among the last.

    Workers read from the first on, and this process from the last on, until they meet.
    """
    total = sum(_text_bytes(source) for source in sources) or 1
    meeting, end = processes - 1.0, 0.0
    for source in sorted(sources, key=_text_bytes, reverse=True):
        share = _text_bytes(source) / total * processes
        begin, end = end, end + share
        yield source, share, begin < meeting + _LAST_SHARE and end > meeting - _LAST_SHARE


def _do(task: _Task, options: ReadOptions) -> Outcome | TracePart | None:
    """What comes of a task; None for a part that cannot be read on its own."""
    if task.part is None:
        return read_one(task.source, options)
    classifier = Classifier(extra_patterns=options.communication_patterns)
    try:
        with task.source.open() as raw:
            return read_part(raw, classifier, task.part, max_unpacked_bytes=options.max_unpacked_bytes)
    except (OSError, MemoryError):  # whoever reads the whole file says what is wrong
        return None


def _read_alone(source: TraceSource, options: ReadOptions) -> Outcome:
    """A file of which nothing came back, in a process of its own: one that is killed takes no other file with it."""
    outcome = None
    with open_handover() as handover:
        if handover is None:
            return read_one(source, options)
        task, scratch = _Task(source=source), handover.folder
        with start_workers(1, work_through, handover, _do, (task,), options, scratch=scratch) as started:
            for message in messages_of(started):
                outcome = handover.take(message)
    if isinstance(outcome, Outcome):
        return outcome
    if any(worker.was_killed for worker in started):
        message = "the process that read it was killed, perhaps for want of memory; try --processes 1"
        return lost(source, None, "killed", message)
    return read_one(source, options)  # the process did not start, or failed: what is wrong shows here


class _Results:
    """What comes back of tasks, until files are whole.

    Attributes:
        unread: files of which something did not come back: to be read in one piece, on their own.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.unread: list[TraceSource] = []
        self._options = options
        self._parts: dict[str, dict[int, TracePart | None]] = {}
        self._kept: dict[str, KeptTable | None] = {}

    def plan(self, source: TraceSource, share: float, is_last: bool) -> list[_Task]:
        """The tasks of a file: more than one if the processes would wait for it in the end.

        Args:
            source: the file.
            share: of one process's work.
            is_last: whether it is among the last to be read.
        """
        if source.is_remote or (share <= 1 and not is_last):
            return [_Task(source=source)]
        try:
            with source.open() as raw:
                size = unpacked_size(raw)
                # Whoever reads a later part of a compressed file must unpack all that precedes it.
                wanted = share if is_packed(raw) else _TASKS_PER_PROCESS * share
                count = min(ceil(wanted), size // _SMALLEST_PART_BYTES)
                kept = find_kept_table(raw, source, self._options) if count > 1 else None
        except OSError:  # what is wrong with it is said when it is read
            return [_Task(source=source)]
        if count <= 1 or (kept is not None and kept.exists()):
            return [_Task(source=source)]
        self._kept[source.name] = kept
        self._parts[source.name] = {}
        return [_Task(source=source, part=Part(index=i, count=count, size_bytes=size)) for i in range(count)]

    def take(self, task: _Task, result: Outcome | TracePart | None) -> Iterator[tuple[TraceSource, Outcome]]:
        """What came of a task (None: nothing), and so of its file, if that is whole now."""
        source = task.source
        if isinstance(result, Outcome):
            yield source, result
        elif task.part is None:
            self.unread.append(source)
        else:
            parts = self._parts[source.name]
            parts[task.part.index] = result
            if len(parts) == task.part.count:
                yield from self._take_all(source, self._parts.pop(source.name))

    def _take_all(
        self, source: TraceSource, parts: dict[int, TracePart | None]
    ) -> Iterator[tuple[TraceSource, Outcome]]:
        last_first = [part for _, part in sorted(parts.items(), reverse=True) if part is not None]
        if len(last_first) < len(parts):
            self.unread.append(source)
            return
        parts.clear()
        yield source, outcome_of(source, partial(self._join, source, last_first))

    def _join(self, source: TraceSource, last_first: list[TracePart]) -> TraceFile:
        """The file from its parts, which are given up one by one."""
        whole = last_first.pop()
        while last_first:
            whole.append(last_first.pop())
        file = whole.finish(source.name)
        kept = self._kept.pop(source.name)
        if kept is not None:
            with source.open() as raw:
                kept.store(file, raw)
        return file

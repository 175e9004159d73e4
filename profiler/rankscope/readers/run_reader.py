"""A run from its files: read side by side, identified, and every fault noted instead of raised."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO

from rankscope.errors import InputError, TraceSyntaxError
from rankscope.model.categories import Classifier
from rankscope.model.run import Problem, Run
from rankscope.readers.byte_stream import DEFAULT_MAX_UNPACKED_BYTES
from rankscope.readers.cache import TableCache
from rankscope.readers.cache_folder import SMALLEST_STORED_BYTES, CacheFolder
from rankscope.readers.content_hash import content_hash, file_state
from rankscope.readers.discovery import TraceSource, find_traces
from rankscope.readers.identity import identify
from rankscope.readers.trace_file import NotATraceError, TraceFile, read_trace

_SEQUENTIAL_TEXT_BYTES = 100 << 20
"""Runs whose text is smaller than this are read in this process: starting others costs more."""
_TEXT_PER_GZIP_BYTE = 12
"""Bytes of text that a byte of a compressed trace holds, as in the real ones at hand (5 to 19)."""

_LOOK_FOR_PARENT_S = 1.0

OnFileDone = Callable[[str, int], None]
OnFound = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read.

    Attributes:
        communication_patterns: extra regular expressions of kernel names that communicate.
        max_unpacked_bytes: limit of the uncompressed text of one file.
        processes: worker processes; 0 = one per core, as far as it pays. More than one needs the usual
            `if __name__ == "__main__":` guard in a calling script.
        cache: directory that keeps the tables of large files; None keeps nothing.
    """

    communication_patterns: tuple[str, ...] = ()
    max_unpacked_bytes: int = DEFAULT_MAX_UNPACKED_BYTES
    processes: int = 1
    cache: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What came of one file: its contents, or the problem; neither if it is no trace."""

    file: TraceFile | None
    problem: Problem | None


def read_run(
    run: str | Path,
    options: ReadOptions | None = None,
    *,
    on_found: OnFound | None = None,
    on_file_done: OnFileDone | None = None,
) -> Run:
    """All windows of a run; a bad file becomes a problem and never stops the others.

    Args:
        run: a trace file, a directory of them, or an fsspec URL of either.
        options: how to read.
        on_found: called once, before any file is read, with the stored bytes of all of them.
        on_file_done: called with a file's name and stored bytes whenever one is finished.

    Raises:
        InputError: there is nothing to read, or two runs lie in one directory.
        UsageError: a communication pattern is no regular expression.
    """
    name = Path(str(run).rstrip("/")).name or str(run)
    sources = find_traces(run)
    if on_found is not None:
        on_found(sum(source.size_bytes for source in sources))
    return read_sources(sources, name, str(run), options, on_file_done=on_file_done)


def read_sources(
    sources: tuple[TraceSource, ...],
    name: str,
    where: str,
    options: ReadOptions | None = None,
    *,
    on_file_done: OnFileDone | None = None,
) -> Run:
    """All windows of a run whose files are known, as `read_run` reads them.

    Args:
        sources: the files; their names differ.
        name: short name of the run.
        where: where it comes from.
        options: how to read.
        on_file_done: called with a file's name and stored bytes whenever one is finished.

    Raises:
        InputError, UsageError: as `read_run`.
    """
    options = options or ReadOptions()
    Classifier(extra_patterns=options.communication_patterns)  # a bad pattern must not fail once per file
    outcomes = _read_all(sources, options, on_file_done or (lambda _name, _size: None))
    files = [outcome.file for outcome in outcomes if outcome.file is not None]
    problems = [outcome.problem for outcome in outcomes if outcome.problem is not None]
    if not files and not problems:
        shown = ", ".join(source.name for source in sources[:5])
        raise InputError(f"no trace in {where}: no file holds a traceEvents array (looked at {shown})")
    windows, identity_problems = identify(files)
    problems += [p for f in files for p in f.problems]
    problems += [_no_events(f) for f in files if f.events == 0]
    problems += identity_problems
    ordered = sorted(problems, key=lambda p: (p.file, p.offset if p.offset is not None else -1))
    return Run(name=name, source=where, windows=windows, problems=tuple(ordered))


def _no_events(file: TraceFile) -> Problem:
    return Problem(
        file=file.name, offset=None, kind="no-events", message="no events in the file", severity="warning"
    )


def _read_all(
    sources: tuple[TraceSource, ...], options: ReadOptions, on_file_done: OnFileDone
) -> list[_Outcome]:
    """Outcomes in the order of `sources`, whatever the order in which they were read."""
    workers = _number_of_processes(sources, options.processes) - 1
    read = _read_side_by_side(sources, options, workers) if workers > 0 else _read_in_turn(sources, options)
    outcomes: dict[str, _Outcome] = {}
    for source, outcome in read:
        outcomes[source.name] = outcome
        on_file_done(source.name, source.size_bytes)
    return [outcomes[source.name] for source in sources]


def _number_of_processes(sources: tuple[TraceSource, ...], wanted: int) -> int:
    if wanted > 0:
        return min(wanted, len(sources))
    if sum(_text_bytes(source) for source in sources) < _SEQUENTIAL_TEXT_BYTES:
        return 1
    return min(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        len(sources),
    )


def _text_bytes(source: TraceSource) -> int:
    """Bytes of a file's text, about."""
    return source.size_bytes * (_TEXT_PER_GZIP_BYTE if source.name.lower().endswith(".gz") else 1)


def _read_in_turn(
    sources: tuple[TraceSource, ...], options: ReadOptions
) -> Iterable[tuple[TraceSource, _Outcome]]:
    for source in sources:
        yield source, _read_one(source, options)


def _read_side_by_side(
    sources: tuple[TraceSource, ...], options: ReadOptions, workers: int
) -> Iterable[tuple[TraceSource, _Outcome]]:
    """What other processes read from the largest file on, and this one meanwhile from the smallest on."""
    # Not fork: a parent with threads (a dashboard, a progress bar) could deadlock its children.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    largest_first = sorted(sources, key=_text_bytes, reverse=True)
    unread: list[TraceSource] = []
    # A thread for each worker, since what waits for a thread can be taken back, and what waits for a process cannot.
    with (
        _pool(workers, context) as pool,
        ThreadPoolExecutor(workers) as queue,
        ExitStack() as unless_all_are_read,
    ):
        unless_all_are_read.callback(_stop_at_once, queue, pool, others)
        pending = {queue.submit(_read_in, pool, source, options): source for source in largest_first}
        for future in reversed(list(pending)):
            if future.cancel():
                source = pending.pop(future)
                yield source, _read_one(source, options)
        for future in as_completed(pending):
            outcome = future.result()
            if outcome is None:
                unread.append(pending[future])
            else:
                yield pending[future], outcome
        unless_all_are_read.pop_all()
    # When one process is killed the pool gives up all of its files; which one was to blame shows on its own.
    for source in unread:
        yield source, _read_alone(source, options, context)


def _pool(processes: int, context: SpawnContext) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, context, initializer=_end_with_parent, initargs=(os.getpid(),))


def _read_in(pool: ProcessPoolExecutor, source: TraceSource, options: ReadOptions) -> _Outcome | None:
    """What a worker makes of a file; None if a worker was killed, this one or another."""
    try:
        return pool.submit(_read_one, source, options).result()
    except BrokenProcessPool:
        return None


def _stop_at_once(queue: ThreadPoolExecutor, pool: ProcessPoolExecutor, others: set[BaseProcess]) -> None:
    """End the workers: whoever interrupts does not want to wait until the files at hand have been read.

    Args:
        queue: the threads that wait for them.
        pool: their pool.
        others: processes that were there before it.
    """
    queue.shutdown(wait=False, cancel_futures=True)
    pool.shutdown(wait=False, cancel_futures=True)
    for process in set(multiprocessing.active_children()) - others:
        process.terminate()


def _end_with_parent(parent: int) -> None:
    """Let a worker end without a word on Ctrl-C, and when its parent is gone.

    Ctrl-C goes to all processes of a terminal, and the parent speaks. A parent that was killed says nothing to
    its workers: they would wait for their next file for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_FOR_PARENT_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _read_alone(source: TraceSource, options: ReadOptions, context: SpawnContext) -> _Outcome:
    with _pool(1, context) as pool:
        outcome = _read_in(pool, source, options)
    message = "the process that read it was killed, perhaps for want of memory; try --processes 1"
    return outcome or _lost(source, None, "killed", message)


def _read_one(source: TraceSource, options: ReadOptions) -> _Outcome:
    """Read one file; every fault of the input becomes a problem."""
    classifier = Classifier(extra_patterns=options.communication_patterns)
    try:
        with source.open() as raw:
            file = _read_through_cache(raw, source, options, classifier)
    except NotATraceError:
        return _Outcome(file=None, problem=None)
    except TraceSyntaxError as error:
        return _lost(source, error.offset, error.slug, str(error))
    except MemoryError:
        return _lost(source, None, "memory", "out of memory while reading; try --processes 1")
    except OSError as error:
        return _lost(source, None, "unreadable", f"cannot be read: {error.strerror or error}")
    return _Outcome(file=file, problem=None)


def _read_through_cache(
    raw: IO[bytes], source: TraceSource, options: ReadOptions, classifier: Classifier
) -> TraceFile:
    if options.cache is None or source.is_remote or source.size_bytes < SMALLEST_STORED_BYTES:
        return read_trace(raw, source.name, classifier, max_unpacked_bytes=options.max_unpacked_bytes)
    cache = TableCache(options.cache)
    before = file_state(raw)
    content = content_hash(raw, CacheFolder(options.cache))
    key = cache.key(content, (options.communication_patterns, options.max_unpacked_bytes))
    found = cache.get(key, source.name)
    if found is not None:
        return found
    raw.seek(0)
    file = read_trace(raw, source.name, classifier, max_unpacked_bytes=options.max_unpacked_bytes)
    if file_state(raw) == before:  # else it was written to meanwhile: the hash may be that of another text
        cache.put(key, file)
    return file


def _lost(source: TraceSource, offset: int | None, kind: str, message: str) -> _Outcome:
    place = f" (byte offset {offset})" if offset is not None and "byte offset" not in message else ""
    problem = Problem(
        file=source.name,
        offset=offset,
        kind=kind,
        message=f"{source.name}: {message}{place}",
        severity="error",
    )
    return _Outcome(file=None, problem=problem)

"""A run from its files: read side by side, identified, and every fault noted instead of raised."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
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
from rankscope.readers.text_parts import Part, unpacked_size
from rankscope.readers.trace_file import NotATraceError, TraceFile, TracePart, read_part, read_trace
from rankscope.readers.workers import run_in, worker_pool

_SEQUENTIAL_TEXT_BYTES = 100 << 20
"""Runs whose text is smaller than this are read in this process: starting others costs more."""
_TEXT_PER_GZIP_BYTE = 12
"""Bytes of text that a byte of a compressed trace holds, as in the real ones at hand (5 to 19)."""

_Parts = Generator[TracePart | None, None, None]
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
    processes = _number_of_processes(sources, options.processes)
    if 1 < processes <= len(sources):
        read = _read_side_by_side(sources, options, processes - 1)
    else:
        read = _read_in_turn(sources, options, processes)
    outcomes: dict[str, _Outcome] = {}
    for source, outcome in read:
        outcomes[source.name] = outcome
        on_file_done(source.name, source.size_bytes)
    return [outcomes[source.name] for source in sources]


def _number_of_processes(sources: tuple[TraceSource, ...], wanted: int) -> int:
    if wanted > 0:
        return wanted
    if sum(_text_bytes(source) for source in sources) < _SEQUENTIAL_TEXT_BYTES:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _text_bytes(source: TraceSource) -> int:
    """Bytes of a file's text, about."""
    return source.size_bytes * (_TEXT_PER_GZIP_BYTE if source.name.lower().endswith(".gz") else 1)


def _read_in_turn(
    sources: tuple[TraceSource, ...], options: ReadOptions, processes: int
) -> Iterable[tuple[TraceSource, _Outcome]]:
    """Each file by all processes."""
    for source in sources:
        yield source, _read_one(source, options, processes)


def _read_side_by_side(
    sources: tuple[TraceSource, ...], options: ReadOptions, workers: int
) -> Iterable[tuple[TraceSource, _Outcome]]:
    """What other processes read from the largest file on, and this one meanwhile from the smallest on."""
    largest_first = sorted(sources, key=_text_bytes, reverse=True)
    unread: list[TraceSource] = []
    # A thread for each worker, since what waits for a thread can be taken back, and what waits for a process cannot.
    with ThreadPoolExecutor(workers) as queue, worker_pool(workers) as pool:
        pending = {queue.submit(run_in, pool, _read_one, source, options): source for source in largest_first}
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
    # When one process is killed the pool gives up all of its files; which one was to blame shows on its own.
    for source in unread:
        yield source, _read_alone(source, options)


def _read_alone(source: TraceSource, options: ReadOptions) -> _Outcome:
    with worker_pool(1) as pool:
        outcome = run_in(pool, _read_one, source, options)
    message = "the process that read it was killed, perhaps for want of memory; try --processes 1"
    return outcome or _lost(source, None, "killed", message)


def _read_one(source: TraceSource, options: ReadOptions, processes: int = 1) -> _Outcome:
    """Read one file; every fault of the input becomes a problem."""
    classifier = Classifier(extra_patterns=options.communication_patterns)
    try:
        with source.open() as raw:
            file = _read_through_cache(raw, source, options, classifier, processes)
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
    raw: IO[bytes], source: TraceSource, options: ReadOptions, classifier: Classifier, processes: int
) -> TraceFile:
    if options.cache is None or source.is_remote or source.size_bytes < SMALLEST_STORED_BYTES:
        return _read_by(processes, raw, source, options, classifier)
    cache = TableCache(options.cache)
    before = file_state(raw)
    content = content_hash(raw, CacheFolder(options.cache))
    key = cache.key(content, (options.communication_patterns, options.max_unpacked_bytes))
    found = cache.get(key, source.name)
    if found is not None:
        return found
    raw.seek(0)
    file = _read_by(processes, raw, source, options, classifier)
    if file_state(raw) == before:  # else it was written to meanwhile: the hash may be that of another text
        cache.put(key, file)
    return file


def _read_by(
    processes: int, raw: IO[bytes], source: TraceSource, options: ReadOptions, classifier: Classifier
) -> TraceFile:
    """The file, its text in as many parts as there are processes."""
    if processes > 1 and not source.is_remote:
        size = unpacked_size(raw)
        parts = [Part(index=i, count=processes, size_bytes=size) for i in range(processes)]
        file = _join(source, _read_parts(parts, source, options))
        if file is not None:
            return file
        raw.seek(0)
    return read_trace(raw, source.name, classifier, max_unpacked_bytes=options.max_unpacked_bytes)


def _read_parts(
    parts: list[Part], source: TraceSource, options: ReadOptions
) -> Generator[TracePart | None, None, None]:
    """What is read of each part, in order; None for one that cannot be read on its own.

    This process reads the first part, and workers the others.
    """
    with ThreadPoolExecutor(len(parts) - 1) as queue, worker_pool(len(parts) - 1) as pool:
        others = [queue.submit(run_in, pool, _read_part, source, options, part) for part in parts[1:]]
        yield _read_part(source, options, parts[0])
        for i in range(len(others)):
            yield others[i].result()
            others[i] = Future()  # so that no more than one is held beside what was joined


def _read_part(source: TraceSource, options: ReadOptions, part: Part) -> TracePart | None:
    classifier = Classifier(extra_patterns=options.communication_patterns)
    with source.open() as raw:
        return read_part(raw, classifier, part, max_unpacked_bytes=options.max_unpacked_bytes)


def _join(source: TraceSource, parts: _Parts) -> TraceFile | None:
    """The file from its parts, taken one by one; None as soon as one could not be read on its own."""
    with closing(parts):
        whole = next(parts)
        for part in parts:
            if whole is None or part is None:
                return None
            whole.append(part)
    return None if whole is None else whole.finish(source.name)


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

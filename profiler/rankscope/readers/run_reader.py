"""A run from its files: read, identified, and every fault noted instead of raised."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rankscope.errors import InputError
from rankscope.model.categories import Classifier
from rankscope.model.run import Problem, Run
from rankscope.readers.discovery import TraceSource, find_traces
from rankscope.readers.identity import identify
from rankscope.readers.one_file import Outcome, ReadOptions, read_one
from rankscope.readers.side_by_side import number_of_processes, read_side_by_side
from rankscope.readers.trace_file import TraceFile

__all__ = ["ReadOptions", "read_run", "read_sources"]

OnFileDone = Callable[[str, int], None]
OnFound = Callable[[int], None]


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
) -> list[Outcome]:
    """Outcomes in the order of `sources`, whatever the order in which they were read."""
    processes = number_of_processes(sources, options.processes)
    if processes > 1:
        read = read_side_by_side(sources, options, processes)
    else:
        read = ((source, read_one(source, options)) for source in sources)
    outcomes: dict[str, Outcome] = {}
    for source, outcome in read:
        outcomes[source.name] = outcome
        on_file_done(source.name, source.size_bytes)
    return [outcomes[source.name] for source in sources]

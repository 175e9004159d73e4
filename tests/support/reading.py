"""Traces read without files: text to `TraceFile`, rows to tables, windows, runs and reports."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from typing import Any
from unittest.mock import patch

from rankscope.correlate.device_events import DeviceEvents, device_events
from rankscope.errors import TraceSyntaxError
from rankscope.model.categories import Classifier
from rankscope.model.report import Report
from rankscope.model.run import Problem, Run
from rankscope.model.table import TraceTable
from rankscope.pipeline import AnalyzeOptions, analyze_run
from rankscope.readers import event_blocks, trace_file
from rankscope.readers.byte_stream import ByteWindow
from rankscope.readers.identity import identify
from rankscope.readers.trace_file import NotATraceError, TraceFile, read_trace
from support.trace_text import Row, job, trace_text


def read_text(text: str | bytes, *, name: str = "trace.json", block_bytes: int | None = None) -> TraceFile:
    """The trace in a text; read in blocks of `block_bytes` if given."""
    stored = text if isinstance(text, bytes) else text.encode()
    with blocks_of(block_bytes):
        return read_trace(io.BytesIO(stored), name, Classifier())


def try_to_read(text: str | bytes) -> TraceFile | TraceSyntaxError | NotATraceError:
    """The trace in a text, or why there is none; any other error comes through."""
    try:
        return read_text(text)
    except (TraceSyntaxError, NotATraceError) as reason:
        return reason


@contextmanager
def blocks_of(size: int | None) -> Iterator[None]:
    """Inside, files are read in blocks of `size` bytes instead of 2 MiB."""
    if size is None:
        yield
        return
    with (
        patch.object(event_blocks, "READ_BYTES", size),
        patch.object(trace_file, "ByteWindow", partial(ByteWindow, read_bytes=size)),
    ):
        yield


def table_of(events: Iterable[Row], **metadata: Any) -> TraceTable:
    """The table of one file."""
    return read_text(trace_text(events, metadata)).table


def kinds_of(problems: Iterable[Problem]) -> list[str]:
    """The kinds of problems, in their order."""
    return [problem.kind for problem in problems]


def run_of(
    events_of_rank: Mapping[int, Sequence[Row]],
    *,
    world_size: int | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Run:
    """A run of one window per rank, all of one job.

    Args:
        events_of_rank: rank -> rows.
        world_size: of the job; the number of ranks given unless said.
        metadata: top-level keys of every file beside `distributedInfo`, whose keys may be given too.
    """
    size = len(events_of_rank) if world_size is None else world_size
    return run_of_files(
        *(
            (f"rank{rank}.json", events, {**job(rank, size), **(metadata or {})})
            for rank, events in events_of_rank.items()
        )
    )


def run_of_files(*files: tuple[str, Iterable[Row], Mapping[str, Any]]) -> Run:
    """A run of files given as (name, events, metadata)."""
    read = [read_text(trace_text(events, metadata), name=name) for name, events, metadata in files]
    windows, problems = identify(read)
    return Run(
        name="made",
        source="made",
        windows=windows,
        problems=(*(p for f in read for p in f.problems), *problems),
    )


def events_of(events: Sequence[Row], **metadata: Any) -> DeviceEvents:
    """The events of the only device of one rank of one."""
    (found,) = device_events(run_of({0: events}, metadata=metadata))
    return found


def report_of(
    events_of_rank: Mapping[int, Sequence[Row]],
    *,
    world_size: int | None = None,
    options: AnalyzeOptions | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Report:
    """The report of such a run."""
    return analyze_run(run_of(events_of_rank, world_size=world_size, metadata=metadata), options)


def columns_of(table: TraceTable) -> dict[str, Any]:
    """Everything in a table as plain values that can be compared."""
    columns = {f.name: getattr(table, f.name) for f in fields(table) if f.name != "arguments"}
    columns |= {f"arguments.{f.name}": getattr(table.arguments, f.name) for f in fields(table.arguments)}
    return {key: value.tolist() if hasattr(value, "tolist") else value for key, value in columns.items()}

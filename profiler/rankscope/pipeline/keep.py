"""A run into a store: read, analysed, and kept with its report, its tables and its traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from rankscope.analyses.timeline import build_whole_timeline
from rankscope.correlate.clocks import Clocks, correction
from rankscope.model.run import Run, TraceWindow
from rankscope.model.timeline import Timeline
from rankscope.pipeline.analyze import Analysis, AnalyzeOptions, analyze_fully
from rankscope.pipeline.collective_rows import collective_rows
from rankscope.pipeline.row_limit import limit_rows
from rankscope.pipeline.undefined import explain_undefined
from rankscope.readers.discovery import TraceSource, find_traces
from rankscope.readers.run_reader import ReadOptions, read_sources
from rankscope.renderers.to_json import render_json
from rankscope.store import NewFile, NewRun, RunRecord, Store, new_run_id
from rankscope.store.parquet import to_parquet
from rankscope.store.record import describe_report
from rankscope.store.row_tables import report_tables
from rankscope.store.timeline_tables import timeline_to_tables
from rankscope.store.window_tables import problems_to_json, window_to_parquet

OnProgress = Callable[[float, str], None]
"""Called with the share done (0..1) and what is going on."""

_READ_SHARE = 0.7
_ANALYSED_SHARE = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepOptions:
    """What a run is called and what is kept of it.

    Attributes:
        name: short name; the directory's unless given.
        tags: key -> value, also the report's labels.
        run_id: made anew unless given.
        created_at: UTC, ISO 8601; now unless given.
        source: where it came from, for people; the path or URL unless given.
        keep_traces: whether the trace files are kept too.
        read: how to read.
    """

    name: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    run_id: str | None = None
    created_at: str | None = None
    source: str | None = None
    keep_traces: bool = True
    read: ReadOptions = field(default_factory=ReadOptions)


def keep_run(
    store: Store, run: str | Path, options: KeepOptions | None = None, on_progress: OnProgress | None = None
) -> RunRecord:
    """Analyse a run (as `rankscope.analyze` takes it) and put it into a store.

    Raises:
        InputError: there is nothing to analyse.
    """
    options = options or KeepOptions()
    name = options.name or Path(str(run).rstrip("/")).name or str(run)
    return keep_sources(
        store, find_traces(run), replace(options, name=name, source=options.source or str(run)), on_progress
    )


def keep_sources(
    store: Store,
    sources: Sequence[TraceSource],
    options: KeepOptions,
    on_progress: OnProgress | None = None,
) -> RunRecord:
    """Analyse the run that consists of `sources`, whose names differ, and put it into a store.

    Raises:
        InputError: there is nothing to analyse.
    """
    tell = on_progress or (lambda _share, _stage: None)
    name, source = options.name or "run", options.source or "upload"
    run = read_sources(tuple(sources), name, source, options.read, on_file_done=_tell_reading(sources, tell))
    tell(_READ_SHARE, "comparing ranks")
    analysis = analyze_fully(run, AnalyzeOptions(detail="full", labels=tuple(options.tags.items())))
    tell(_ANALYSED_SHARE, "storing")
    record = RunRecord(
        run_id=options.run_id or new_run_id(),
        name=name,
        tags=options.tags,
        created_at=options.created_at or datetime.now(timezone.utc).isoformat(timespec="seconds"),
        source=source,
        **describe_report(analysis.report),  # type: ignore[arg-type]  # typed where it is made
    )
    files = _files(run, analysis, sources if options.keep_traces else ())
    return store.put(NewRun(record=record, files=files))


def align_run(run: Run, clocks: Clocks) -> Run:
    """The run with all times on the common clock; ranks without a clock keep their own."""
    return replace(run, windows=tuple(_align_window(window, clocks) for window in run.windows))


def _align_window(window: TraceWindow, clocks: Clocks) -> TraceWindow:
    clock = clocks.of_rank.get(window.rank)
    if clock is None:
        return window
    starts = window.table.start_ns
    return window.with_table(replace(window.table, start_ns=starts - correction(clock, starts)))


def _tell_reading(sources: Sequence[TraceSource], tell: OnProgress) -> Callable[[str, int], None]:
    total, done = max(sum(source.size_bytes for source in sources), 1), 0

    def on_file_done(_name: str, size_bytes: int) -> None:
        nonlocal done
        done += size_bytes
        tell(_READ_SHARE * min(done / total, 1.0), "reading traces")

    return on_file_done


def _files(run: Run, analysis: Analysis, traces: Sequence[TraceSource]) -> Iterator[NewFile]:
    yield NewFile(role="report", name="report.json", content=_summary_text(analysis, run))
    for name, table in report_tables(analysis.report):
        yield NewFile(role="table", name=name, content=to_parquet(table))
    timeline = build_whole_timeline(align_run(run, analysis.together.clocks))
    if timeline is not None:
        events, lanes = timeline_to_tables(_from_origin(timeline, analysis.origin_ns))
        yield NewFile(role="table", name="events", content=to_parquet(events))
        yield NewFile(role="table", name="lanes", content=to_parquet(lanes))
    for number, window in enumerate(run.windows):
        events, arguments = window_to_parquet(window)
        yield NewFile(role="window", name=f"{number:05d}", content=events)
        yield NewFile(role="arguments", name=f"{number:05d}", content=arguments)
    yield NewFile(role="problems", name="problems.json", content=problems_to_json(run.problems))
    # Other JSON files that lay beside the traces are not kept.
    read = {window.file for window in run.windows} | {problem.file for problem in run.problems}
    for trace in traces:
        if trace.name not in read:
            continue
        if trace.is_remote:
            with trace.open() as file:
                yield NewFile(role="trace", name=trace.name, content=file.read())
        else:
            yield NewFile(role="trace", name=trace.name, content=Path(trace.location))


def _summary_text(analysis: Analysis, run: Run) -> bytes:
    """What `rankscope analyze --format json` prints, from an analysis with all rows."""
    rows = collective_rows(analysis.together, analysis.results, analysis.origin_ns, full=False)
    summary = limit_rows(replace(analysis.report, collectives=rows, communications=[]))
    return render_json(explain_undefined(summary, run), indent=False).encode()


def _from_origin(timeline: Timeline, origin_ns: int) -> Timeline:
    """The timeline with the report's origin as its zero."""
    later = timeline.origin_ns - origin_ns
    lanes = tuple(replace(lane, starts_ns=lane.starts_ns + later) for lane in timeline.lanes)
    return replace(
        timeline,
        origin_ns=origin_ns,
        start_ns=timeline.start_ns + later,
        end_ns=timeline.end_ns + later,
        lanes=lanes,
    )

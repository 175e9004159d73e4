"""Writes a scenario as trace files, one per rank."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rankscope.errors import UsageError
from rankscope.model.manifest import MANIFEST_KEY, ClockSample, Manifest, ManifestGroup, StepTime
from rankscope.testing.expected import Expected
from rankscope.testing.row_arguments import Naming
from rankscope.testing.scenario import Scenario
from rankscope.testing.timeline import RankTimeline, Timeline
from rankscope.testing.trace_file import Event, TraceDocument, microseconds, write_document
from rankscope.testing.trace_rows import RowSource, rank_rows, stream_numbers
from rankscope.testing.trace_style import TraceStyle

BASE_PERIOD_NS = 7_889_238 * 1_000_000_000
"""`baseTimeNanoseconds` is the start of a period of this length."""

FIRST_PID = 4_000
_NS_PER_US = 1_000
_GPU_NAMES = {"nccl": "NVIDIA H100 80GB HBM3", "rccl": "AMD Instinct MI300X"}


def write_scenario(scenario: Scenario, directory: Path, style: TraceStyle) -> Expected:
    """Write one trace file per rank into `directory`, which is made if absent.

    Args:
        scenario: the run.
        directory: where to.
        style: how the files look.

    Returns:
        The answers, as the scenario gives them.

    Raises:
        UsageError: a release that writes whole microseconds would round times of this run.
    """
    timeline = scenario.lay_out()
    if style.release.whole_us:
        _require_whole_us(scenario, timeline)
    directory.mkdir(parents=True, exist_ok=True)
    for rank, rows in timeline.ranks.items():
        if rank not in scenario.absent:
            document = _document(scenario, style, rank, rows)
            write_document(directory / file_name(scenario, style, rank), document, style.layout)
    return scenario.expected


def file_name(scenario: Scenario, style: TraceStyle, rank: int) -> str:
    """Name of a rank's file."""
    if style.file_names == "rankscope":
        name = f"rank_{rank:05d}.0.pt.trace.json"
    elif style.file_names == "kineto":
        unix_ns = scenario.origin_unix_ns + scenario.clock_of(rank).read(0)
        name = f"{scenario.host_of(rank)}_{process_of(scenario, rank)}.{unix_ns}.pt.trace.json"
    else:
        name = f"rank{rank}.json"
    return f"{name}.gz" if style.compress else name


def process_of(scenario: Scenario, rank: int) -> int:
    """Process id of a rank; hosts use the same ones, as containers do."""
    return FIRST_PID + rank % scenario.ranks_per_host


def _require_whole_us(scenario: Scenario, timeline: Timeline) -> None:
    edges = {ns for rows in timeline.ranks.values() for ns in rows.edges_ns()}
    edges |= {clock.offset_ns for clock in scenario.clocks.values()} | {scenario.origin_unix_ns}
    if any(ns % _NS_PER_US for ns in edges):
        raise UsageError(
            f"scenario {scenario.name} has times that are no whole microseconds, and torch below 2.4 writes "
            "nothing else: choose durations and offsets that are multiples of 1000 ns, or a later release"
        )


def _document(scenario: Scenario, style: TraceStyle, rank: int, rows: RankTimeline) -> TraceDocument:
    clock = scenario.clock_of(rank)
    source = RowSource(
        backend=scenario.backend,
        timeline=rows,
        naming=Naming(
            rank=rank,
            style=style,
            groups={group.name: group for group in scenario.groups},
            device=rank % scenario.ranks_per_host,
            streams=stream_numbers(scenario.backend, rows),
        ),
        pid=process_of(scenario, rank),
        read_clock=lambda true_ns: scenario.origin_unix_ns + clock.read(true_ns),
    )
    events = rank_rows(source)
    names = _metadata_rows(source, events)
    events = [*names, *events] if style.release.metadata_first else [*events, *names]
    base_ns = _base_ns(scenario, style, rank)
    for event in [*events, *(window := _window_rows(source))]:
        _write_times(event, base_ns, whole=style.release.whole_us)
    before, after = _top_level(scenario, style, rank, base_ns)
    if style.has_manifest:
        after[MANIFEST_KEY] = _manifest(scenario, style, rank, rows)
    return TraceDocument(before=before, events=[*events, *window], after=after)


def _base_ns(scenario: Scenario, style: TraceStyle, rank: int) -> int:
    if style.release.base is None:
        return 0
    period_ns = scenario.origin_unix_ns - scenario.origin_unix_ns % BASE_PERIOD_NS
    return period_ns + style.base_shift_ns.get(rank, 0)


def _write_times(event: Event, base_ns: int, *, whole: bool) -> None:
    start_ns = event["ts"] - base_ns
    if "dur" in event:
        end_ns = start_ns + event["dur"]
        # Whole microseconds round both ends down, so that rows that touch still touch.
        unit_ns = _NS_PER_US if whole else 1
        duration_ns = end_ns // unit_ns * unit_ns - start_ns // unit_ns * unit_ns
        event["dur"] = microseconds(duration_ns, whole=whole)
    event["ts"] = microseconds(start_ns, whole=whole)


def _metadata_rows(source: RowSource, events: list[Event]) -> list[Event]:
    start = source.read_clock(0)
    rows = [_metadata("process_name", source.pid, 0, start, name="python")]
    rows.append(_metadata("process_labels", source.pid, 0, start, labels="CPU"))
    if source.backend != "gloo":
        device = source.naming.device
        rows.append(_metadata("process_name", device, 0, start, name="python"))
        rows.append(_metadata("process_labels", device, 0, start, labels=f"GPU {device}"))
    lanes = dict.fromkeys((event["pid"], event["tid"]) for event in events)
    for pid, tid in lanes:
        text = f"thread {tid} (python)" if pid == source.pid else f"stream {tid} "
        rows.append(_metadata("thread_name", pid, tid, start, name=text))
    return rows


def _metadata(what: str, pid: int, tid: int, start: int, **args: str) -> Event:
    return {"name": what, "ph": "M", "ts": start, "pid": pid, "tid": tid, "args": args}


def _window_rows(source: RowSource) -> list[Event]:
    start, end = source.read_clock(0), source.read_clock(max(source.timeline.edges_ns(), default=0))
    trace = {"ph": "X", "cat": "Trace", "ts": start, "dur": end - start, "pid": "Spans"}
    return [
        trace | {"tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)", "args": {"Op count": 0}},
        {
            "name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g",
            "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": start,
        },
        {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": end},
    ]  # fmt: skip


def _top_level(
    scenario: Scenario, style: TraceStyle, rank: int, base_ns: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    before: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": _devices(scenario, rank)}
    after: dict[str, Any] = {}
    if style.distributed_info != "none":
        place = before if style.distributed_info_place == "before" else after
        place["distributedInfo"] = _distributed_info(scenario, style, rank)
    if style.record_shapes:
        before["record_shapes"] = 1
    if style.release.host_name:
        before["host_name"] = scenario.host_of(rank)
    after["traceName"] = f"./{file_name(scenario, style, rank)}"
    if style.release.base is not None:
        place = before if style.release.base == "before" else after
        place |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": base_ns}
    return before, after


def _devices(scenario: Scenario, rank: int) -> list[dict[str, Any]]:
    if scenario.backend == "gloo":
        return []
    name = _GPU_NAMES[scenario.backend]
    return [{"id": rank % scenario.ranks_per_host, "name": name, "warpSize": 32, "numSms": 132}]


def _distributed_info(scenario: Scenario, style: TraceStyle, rank: int) -> dict[str, Any]:
    backend = "gloo" if scenario.backend == "gloo" else "nccl"
    info: dict[str, Any] = {"backend": backend}
    if style.distributed_info == "full":
        info["rank"] = rank
    info["world_size"] = scenario.world_size
    if not style.release.groups:
        return info
    names = style.group_names.get(rank, {})
    groups = [
        {
            "pg_name": names.get(group.name, group.name),
            "pg_desc": group.description,
            "backend_config": "cpu:gloo,cuda:gloo" if backend == "gloo" else "cuda:nccl",
            "pg_size": len(group.ranks),
            "ranks": list(group.ranks),
        }
        for group in scenario.groups
        if rank in group.ranks
    ]
    info |= {"pg_count": len(groups), "pg_config": groups}
    return info if backend == "gloo" else info | {"nccl_version": "2.21.5"}


def _manifest(scenario: Scenario, style: TraceStyle, rank: int, rows: RankTimeline) -> dict[str, Any]:
    clock = scenario.clock_of(rank)
    steps = [
        StepTime(
            step=number,
            started_unix_ns=scenario.origin_unix_ns + clock.read(marker.start_ns),
            duration_ns=marker.end_ns - marker.start_ns,
            recorded=True,
        )
        for number, marker in rows.steps().items()
    ]
    names = style.group_names.get(rank, {})
    start_ns = scenario.origin_unix_ns + clock.read(0)
    manifest = Manifest(
        rank=rank,
        world_size=scenario.world_size,
        local_rank=rank % scenario.ranks_per_host,
        host=scenario.host_of(rank),
        backend="gloo" if scenario.backend == "gloo" else "nccl",
        versions={"torch": f"{style.torch}.0"},
        groups=[
            ManifestGroup(name=names.get(g.name, g.name), description=g.description, ranks=list(g.ranks))
            for g in scenario.groups
            if rank in g.ranks
        ],
        steps=steps,
        ddp=[] if scenario.ddp is None else [scenario.ddp],
        clock_samples=[ClockSample(unix_ns=start_ns, monotonic_ns=0)],
    )
    return asdict(manifest)

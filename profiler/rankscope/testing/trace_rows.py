"""The rows of one rank's trace file, as events whose times are still int nanoseconds of the rank's clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rankscope.testing.communication_names import RCCL_KERNEL, annotation_of, kernel_of
from rankscope.testing.program import COMPUTE, Collective, Compute, Copy, PointToPoint, Thread
from rankscope.testing.row_arguments import (
    Naming,
    copy_name,
    gloo_arguments,
    kernel_arguments,
    operator_arguments,
    record_arguments,
)
from rankscope.testing.timeline import DeviceSpan, HostSpan, RankTimeline
from rankscope.testing.trace_file import Event

FIRST_CORRELATION = 100_000
"""Correlation ids begin above every External id of an operator, so that the two never meet by chance."""

_FIRST_STREAM = {"nccl": (7, 20), "rccl": (0, 4), "gloo": (0, 0)}
_STREAM_STRIDE = 4
_BACKWARD_THREAD = 1
_FIRST_WORKER_THREAD = 10
_LAUNCH_NAMES = {
    "nccl": {"kernel": "cudaLaunchKernel", "collective": "cudaLaunchKernelExC", "copy": "cudaMemcpyAsync"},
    "rccl": {"kernel": "hipLaunchKernel", "collective": "hipExtLaunchKernel", "copy": "hipMemcpyAsync"},
}
_SYNC_NAMES = {"nccl": "cudaDeviceSynchronize", "rccl": "hipDeviceSynchronize"}
_LAUNCH_IDS = {"kernel": 211, "collective": 430, "copy": 41, "sync": 165}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """What the rows of one rank are made from.

    Attributes:
        backend: "nccl", "rccl" or "gloo".
        timeline: what the rank did.
        naming: names and style.
        pid: its process.
        read_clock: true ns -> absolute ns of the rank's clock.
    """

    backend: str
    timeline: RankTimeline
    naming: Naming
    pid: int
    read_clock: Callable[[int], int]

    def thread(self, thread: Thread) -> int:
        """Number of a host thread."""
        return self.pid if thread == "main" else self.pid + _BACKWARD_THREAD


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ids:
    """Ids that join rows.

    Attributes:
        external: place of a host row -> its External id.
        joined: launch number -> External id that its launch and device rows carry.
        correlation: launch number -> correlation id.
        sync: place of a sync row -> correlation id.
    """

    external: dict[int, int]
    joined: dict[int, int]
    correlation: dict[int, int]
    sync: dict[int, int]


def stream_numbers(backend: str, timeline: RankTimeline) -> dict[str, int]:
    """Stream -> number, as the vendor's runtime gives them: compute, then the others by first use."""
    compute, first = _FIRST_STREAM[backend]
    others = [s for s in dict.fromkeys(span.stream for span in timeline.device) if s != COMPUTE]
    return {COMPUTE: compute} | {s: first + _STREAM_STRIDE * i for i, s in enumerate(others)}


def rank_rows(source: RowSource) -> list[Event]:
    """All complete events and flows of a rank in Kineto's order, times in absolute ns."""
    ids = _assign_ids(source)
    sequences = {span.launch: span.sequence for span in source.timeline.device}
    rows: list[Event] = []
    for place, span in enumerate(source.timeline.host):
        rows.append(_host_row(source, ids, sequences, place, span))
        if span.kind == "launch" and span.launch is not None and source.naming.style.flows:
            rows.append(_flow(source, "s", ids.correlation[span.launch], rows[-1]))
    for place, work in enumerate(sorted(source.timeline.device, key=lambda w: (w.start_ns, w.launch))):
        if source.backend == "gloo":
            rows.append(_worker_row(source, work, len(ids.external) + place + 1))
        else:
            rows += _device_rows(source, ids, work)
    if source.backend != "gloo" and source.naming.style.release.gpu_annotations:
        rows += _step_copies(source)
    return rows


def _assign_ids(source: RowSource) -> _Ids:
    ids = _Ids(external={}, joined={}, correlation={}, sync={})
    correlation = FIRST_CORRELATION
    for place, span in enumerate(source.timeline.host):
        if span.kind in ("launch", "sync"):
            correlation += 1
            target, key = (ids.sync, place) if span.launch is None else (ids.correlation, span.launch)
            target[key] = correlation
            continue
        ids.external[place] = len(ids.external) + 1
        if span.launch is not None:
            ids.joined[span.launch] = ids.external[place]
    if not source.naming.style.release.joined:
        ids.joined.update(ids.correlation)
    return ids


def _host_row(
    source: RowSource, ids: _Ids, sequences: dict[int, int | None], place: int, span: HostSpan
) -> Event:
    if span.kind in ("launch", "sync"):
        return _runtime_row(source, ids, place, span)
    if isinstance(span.item, (Collective, PointToPoint)) and span.kind == "record":
        sequence = None if span.launch is None else sequences[span.launch]
        args = record_arguments(source.naming, span, span.item, sequence, ids.external[place], place)
    else:
        args = operator_arguments(source.naming, span, ids.external[place], place)
    category = "user_annotation" if span.kind == "annotation" else "cpu_op"
    return _row(source, category, span.name, source.pid, source.thread(span.thread), span, args)


def _runtime_row(source: RowSource, ids: _Ids, place: int, span: HostSpan) -> Event:
    if span.launch is None:
        what, name, correlation = "sync", _SYNC_NAMES[source.backend], ids.sync[place]
        external = correlation
    else:
        what = _kind_of_launch(span)
        name = _LAUNCH_NAMES[source.backend][what]
        external, correlation = ids.joined[span.launch], ids.correlation[span.launch]
    args = {"External id": external, "cbid": _LAUNCH_IDS[what], "correlation": correlation}
    return _row(source, "cuda_runtime", name, source.pid, source.thread(span.thread), span, args)


def _kind_of_launch(span: HostSpan) -> str:
    if isinstance(span.item, Copy):
        return "copy"
    return "kernel" if isinstance(span.item, Compute) else "collective"


def _device_rows(source: RowSource, ids: _Ids, work: DeviceSpan) -> list[Event]:
    naming, correlation = source.naming, ids.correlation[work.launch]
    args = kernel_arguments(naming, work, ids.joined[work.launch], correlation)
    category = "gpu_memcpy" if isinstance(work.item, Copy) else "kernel"
    stream = naming.streams[work.stream]
    row = _row(source, category, _device_name(source, work), naming.device, stream, work, args)
    rows = [row]
    if naming.style.flows:
        rows.append(_flow(source, "f", correlation, row))
    if isinstance(work.item, (Collective, PointToPoint)) and naming.style.release.gpu_annotations:
        name = annotation_of("nccl", work.item, naming.rank, naming.groups[work.item.group].ranks)
        rows.append(_gpu_copy(source, name, work.stream, work.start_ns, work.end_ns, ids.joined[work.launch]))
    return rows


def _device_name(source: RowSource, work: DeviceSpan) -> str:
    if isinstance(work.item, Copy):
        return copy_name(work.item)
    if isinstance(work.item, Compute):
        return work.item.name
    if source.backend == "rccl":
        return RCCL_KERNEL
    return kernel_of(work.item, before_nccl_2_19=source.naming.style.release.old_kernel_names)


def _worker_row(source: RowSource, work: DeviceSpan, external_id: int) -> Event:
    if not isinstance(work.item, (Collective, PointToPoint)):
        raise TypeError(f"a gloo worker runs communications only, not {work.item}")
    workers = [s for s in source.naming.streams if s != COMPUTE]
    tid = source.pid + _FIRST_WORKER_THREAD + workers.index(work.stream)
    args = gloo_arguments(source.naming, work.item, external_id, external_id)
    naming = source.naming
    name = annotation_of("gloo", work.item, naming.rank, naming.groups[work.item.group].ranks)
    return _row(source, "user_annotation", name, source.pid, tid, work, args)


def _step_copies(source: RowSource) -> list[Event]:
    """The `ProfilerStep#` annotations as Kineto copies them to the compute stream."""
    rows = []
    for number, marker in source.timeline.steps().items():
        own = [w for w in source.timeline.device if w.step == number and w.stream == COMPUTE]
        if own:
            start_ns, end_ns = min(w.start_ns for w in own), max(w.end_ns for w in own)
            rows.append(_gpu_copy(source, marker.name, COMPUTE, start_ns, end_ns, 0))
    return rows


def _gpu_copy(
    source: RowSource, name: str, stream: str, start_ns: int, end_ns: int, external_id: int
) -> Event:
    number = source.naming.streams[stream]
    # Kineto makes the copy 1 ns wider on each side.
    start, end = source.read_clock(start_ns) - 1, source.read_clock(end_ns) + 1
    return {
        "ph": "X",
        "cat": "gpu_user_annotation",
        "name": name,
        "pid": source.naming.device,
        "tid": number,
        "ts": start,
        "dur": end - start,
        "args": {"External id": external_id},
    }


def _row(
    source: RowSource,
    category: str,
    name: str,
    pid: int,
    tid: int,
    span: HostSpan | DeviceSpan,
    args: dict[str, Any],
) -> Event:
    start, end = source.read_clock(span.start_ns), source.read_clock(span.end_ns)
    return {
        "ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid,
        "ts": start, "dur": end - start, "args": args,
    }  # fmt: skip


def _flow(source: RowSource, phase: str, correlation: int, row: Event) -> Event:
    flow: Event = {
        "ph": phase, "id": correlation, "pid": row["pid"], "tid": row["tid"], "ts": row["ts"],
        "cat": "ac2g", "name": "ac2g",
    }  # fmt: skip
    return flow | {"bp": "e"} if phase == "f" else flow

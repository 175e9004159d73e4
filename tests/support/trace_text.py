"""Text of Kineto traces from rows written as literals: what a test puts in is what a reader would find.

Times are microseconds, as in the files. A value that JSON cannot say, or that must keep its digits, is given as
`Bare("1767225600000000.130")` and lands in the text as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
HOST_PID = 100
MAIN_THREAD = 100
BACKWARD_THREAD = 200

_BARE = re.compile('"@bare@(.*?)@bare@"')


class Bare(str):
    """Text that stands in the JSON without quotes, as it is."""

    __slots__ = ()


def row(cat: str | None, name: str, ts: Any, dur: Any, *, pid: Any, tid: Any, args: Mapping[str, Any]) -> Row:
    """A complete event."""
    made: Row = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    if cat is None:
        del made["cat"]
    if args:
        made["args"] = dict(args)
    return made


def kernel(
    name: str,
    ts: Any,
    dur: Any,
    *,
    stream: int = 7,
    device: int = 0,
    correlation: int | None = None,
    args: Mapping[str, Any] | None = None,
) -> Row:
    """A kernel; `correlation` joins it to its launch."""
    return _on_device("kernel", name, ts, dur, stream, device, correlation, args)


def nccl(
    ts: Any,
    dur: Any,
    *,
    name: str = ALL_REDUCE,
    stream: int = 20,
    device: int = 0,
    correlation: int | None = None,
    args: Mapping[str, Any] | None = None,
) -> Row:
    """A communication kernel, by default an all-reduce of whose arguments nothing is known."""
    return _on_device("kernel", name, ts, dur, stream, device, correlation, args)


def memcpy(
    ts: Any,
    dur: Any,
    *,
    stream: int = 30,
    device: int = 0,
    correlation: int | None = None,
    cat: str = "gpu_memcpy",
) -> Row:
    """A copy on the device."""
    return _on_device(cat, "Memcpy DtoD (Device -> Device)", ts, dur, stream, device, correlation, None)


def memset(ts: Any, dur: Any, *, stream: int = 30, device: int = 0) -> Row:
    """A fill on the device."""
    return _on_device("gpu_memset", "Memset (Device)", ts, dur, stream, device, None, None)


def launch(
    correlation: int, ts: Any, dur: Any = 1, *, thread: int = MAIN_THREAD, name: str = "cudaLaunchKernel"
) -> Row:
    """The host row that launched a device row."""
    args = {"correlation": correlation}
    return row("cuda_runtime", name, ts, dur, pid=HOST_PID, tid=thread, args=args)


def annotation(
    name: str, ts: Any, dur: Any, *, thread: int = MAIN_THREAD, args: Mapping[str, Any] | None = None
) -> Row:
    """A host annotation (record_function)."""
    return row("user_annotation", name, ts, dur, pid=HOST_PID, tid=thread, args=args or {})


def step(number: int, ts: Any, dur: Any) -> Row:
    """The annotation of a profiler step."""
    return annotation(f"ProfilerStep#{number}", ts, dur)


def cpu_op(
    name: str, ts: Any, dur: Any, *, thread: int = MAIN_THREAD, args: Mapping[str, Any] | None = None
) -> Row:
    """A host operator."""
    return row("cpu_op", name, ts, dur, pid=HOST_PID, tid=thread, args=args or {})


def param_comms(
    ts: Any, dur: Any, args: Mapping[str, Any], *, thread: int = MAIN_THREAD, external_id: int | None = None
) -> Row:
    """The host row that asks for a collective, with its arguments."""
    joined = dict(args) if external_id is None else {"External id": external_id, **args}
    return cpu_op("record_param_comms", ts, dur, thread=thread, args=joined)


def gloo(
    op: str, ts: Any, dur: Any, *, dims: list[Any] | None = None, dtype: str = "float", thread: int = 300
) -> Row:
    """A gloo operation as an annotation on a worker thread; its size is in `Input Dims`."""
    args = {} if dims is None else {"Input Dims": dims, "Input type": [dtype]}
    return annotation(f"gloo:{op}", ts, dur, thread=thread, args=args)


def collective(
    name: str,
    n_in: int | None = None,
    n_out: int | None = None,
    *,
    dtype: str | None = "Float",
    group: str | None = None,
    description: str | None = None,
    ranks: Any = None,
    size: int | None = None,
    seq: int | None = None,
) -> dict[str, Any]:
    """The arguments of a collective as torch >= 2.4 writes them on kernels and on record_param_comms."""
    said = {
        "Collective name": name,
        "In msg nelems": n_in,
        "Out msg nelems": n_out,
        "dtype": dtype,
        "Process Group Name": group,
        "Process Group Description": description,
        "Process Group Ranks": ranks,
        "Group size": size,
        "Seq": seq,
    }
    return {key: value for key, value in said.items() if value is not None}


def trace_text(
    events: Iterable[Row | Bare],
    metadata: Mapping[str, Any] | None = None,
    *,
    pretty: bool = False,
    metadata_first: bool = False,
) -> str:
    """A trace in object form.

    Args:
        events: rows.
        metadata: the other top-level keys; after the events as up to torch 2.7, unless `metadata_first`.
        pretty: laid out line by line as Kineto does, instead of without any space.
        metadata_first: metadata before the events, as from torch 2.8.
    """
    pieces = [f'"{key}":{to_json(value)}' for key, value in (metadata or {}).items()]
    rows = [to_json(event) for event in events]
    if pretty:
        rows = [_like_kineto(text) for text in rows]
    array = '"traceEvents":[' + (",\n  " if pretty else ",").join(rows) + "]"
    ordered = [*pieces, array] if metadata_first else [array, *pieces]
    return "{" + (",\n" if pretty else ",").join(ordered) + "}"


def array_text(events: Iterable[Row | Bare]) -> str:
    """A trace in array form: nothing but the events."""
    return "[" + ",".join(map(to_json, events)) + "]"


def job(rank: int, world_size: int, **more: Any) -> dict[str, Any]:
    """The `distributedInfo` metadata of one rank."""
    return {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world_size, **more}}


def write_ranks(folder: Path, events_of_rank: Mapping[int, Iterable[Row]], **metadata: Any) -> Path:
    """Write one trace per rank, `rank0.json` and so on, all of one job; returns the folder."""
    for rank, events in events_of_rank.items():
        info = job(rank, len(events_of_rank))
        (folder / f"rank{rank}.json").write_text(trace_text(events, {**info, **metadata}))
    return folder


def to_json(value: Any) -> str:
    """Compact JSON text, `Bare` values as they are."""
    text = json.dumps(_mark(value), separators=(",", ":"), ensure_ascii=False)
    return _BARE.sub(lambda match: json.loads(f'"{match.group(1)}"'), text)


def _mark(value: Any) -> Any:
    if isinstance(value, Bare):
        return f"@bare@{value}@bare@"
    if isinstance(value, dict):
        return {key: _mark(inner) for key, inner in value.items()}
    return [_mark(inner) for inner in value] if isinstance(value, list) else value


def _like_kineto(text: str) -> str:
    """A row over several lines, cut where Kineto cuts it."""
    head, arguments, tail = text.partition(',"args":{')
    head = head.replace("{", "{\n    ", 1).replace(',"ts"', ',\n    "ts"')
    return f'{head},\n    "args": {{\n      {tail[:-2]}\n    }}\n  }}' if arguments else head


def _on_device(
    cat: str,
    name: str,
    ts: Any,
    dur: Any,
    stream: int,
    device: int,
    correlation: int | None,
    args: Mapping[str, Any] | None,
) -> Row:
    joined = {"device": device, "stream": stream}
    if correlation is not None:
        joined["correlation"] = correlation
    return row(cat, name, ts, dur, pid=device, tid=stream, args={**joined, **(args or {})})

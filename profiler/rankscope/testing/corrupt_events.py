"""Events of one rank that are lost, renamed, out of order or hold what JSON forbids."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from rankscope.errors import UsageError
from rankscope.testing.corrupt_clocks import time_ns
from rankscope.testing.run_copy import copy_run, edit_file, edit_rank, trace_files
from rankscope.testing.trace_file import Event, RawJson, TraceDocument

Place = Literal["head", "middle", "tail"]

_COMMUNICATION_KERNEL = re.compile(r"^[nr]ccl", re.IGNORECASE)
_COMMUNICATION_ROW = re.compile(r"^(?:nccl:|c10d::|record_param_comms$)")
_STEP = re.compile(r"^ProfilerStep#(\d+)$")
_DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
_SEQUENCE_PLACE = 1
_GROUP_NAME = "Process Group Name"


def drop_collective(source: Path, destination: Path, *, rank: int, place: Place | int) -> None:
    """Lose one communication of a rank: its kernel, launch, flows, operator rows and annotations.

    Args:
        source, destination: directories of the run and of the damaged copy.
        rank: who loses it.
        place: the first, middle or last by start, or its number from 0.

    Raises:
        UsageError: the rank has no such communication.
    """

    def edit(document: TraceDocument) -> None:
        found = _communications(document)
        number = {"head": 0, "middle": len(found) // 2, "tail": len(found) - 1}.get(str(place), place)
        if not isinstance(number, int) or not 0 <= number < len(found):
            raise UsageError(f"rank {rank} has {len(found)} communications, no number {place}")
        lost = _rows_of(document, found[number], number)
        document.events = [event for event in document.events if id(event) not in lost]

    edit_rank(source, destination, rank, edit)


def rename_groups(source: Path, destination: Path, *, rank: int, names: Mapping[str, str]) -> None:
    """Let one rank call process groups by other names (old name -> new name)."""

    def edit(document: TraceDocument) -> None:
        for event in document.events:
            name = _arguments(event).get(_GROUP_NAME)
            if isinstance(name, str) and name in names:
                event["args"][_GROUP_NAME] = names[name]
        for group in (document.key_value("distributedInfo") or {}).get("pg_config", []):
            group["pg_name"] = names.get(group["pg_name"], group["pg_name"])

    edit_rank(source, destination, rank, edit)


def keep_steps(source: Path, destination: Path, *, rank: int, steps: Collection[int]) -> None:
    """Let one rank have recorded only some steps: what others launched is gone."""

    def edit(document: TraceDocument) -> None:
        windows = [
            (start, start + time_ns(event["dur"]))
            for event in document.events
            if (marker := _STEP.match(str(event.get("name")))) and int(marker.group(1)) in steps
            if event.get("cat") == "user_annotation"
            for start in [time_ns(event["ts"])]
        ]
        hosts = [e for e in document.events if _is_host_row(e) and _is_inside(e, windows)]
        launched = {_arguments(event).get("correlation") for event in hosts} - {None}
        devices = [
            e
            for e in document.events
            if e.get("cat") in _DEVICE_CATEGORIES and _arguments(e).get("correlation") in launched
        ]
        kept = {id(event) for event in (*hosts, *devices)}
        document.events = [e for e in document.events if id(e) in kept or _goes_with(e, devices, launched)]

    edit_rank(source, destination, rank, edit)


def remove_sequence_numbers(source: Path, destination: Path) -> None:
    """Take `Seq`, and the sequence number in `Concrete Inputs`, from the rows of all ranks."""

    def edit(document: TraceDocument) -> None:
        for event in document.events:
            args = _arguments(event)
            args.pop("Seq", None)
            inputs = args.get("Concrete Inputs")
            if event.get("name") == "record_param_comms" and inputs and len(inputs) > _SEQUENCE_PLACE:
                inputs[_SEQUENCE_PLACE] = ""

    for path in trace_files(copy_run(source, destination)):
        edit_file(path, edit)


def shuffle_events(source: Path, destination: Path, *, seed: int = 0) -> None:
    """Put the events of all ranks into another order; the same seed gives the same one."""

    def edit(document: TraceDocument) -> None:
        random.Random(seed).shuffle(document.events)

    for path in trace_files(copy_run(source, destination)):
        edit_file(path, edit)


def put_bad_numbers(source: Path, destination: Path, *, rank: int, token: str = "NaN") -> None:  # noqa: S107
    """Put a bare `token` (NaN, Infinity, inf, -nan ...) into the arguments of a copy of 0 ns.

    The copy is added at the start of the first event and changes no time.
    """

    def edit(document: TraceDocument) -> None:
        first = next(event for event in document.events if event.get("ph") == "X")
        bandwidth = {"bytes": 0, "memory bandwidth (GB/s)": RawJson(token)}
        bad: Event = {
            "ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0, "tid": 7,
            "ts": first["ts"], "dur": 0, "args": {"device": 0, "stream": 7, **bandwidth},
        }  # fmt: skip
        document.events.insert(len(document.events) // 2, bad)

    edit_rank(source, destination, rank, edit)


def put_control_characters(source: Path, destination: Path, *, rank: int) -> None:
    """Add a host row whose name holds a newline and a tab as they are, which JSON forbids."""

    def edit(document: TraceDocument) -> None:
        first = next(event for event in document.events if event.get("ph") == "X")
        bad: Event = {
            "ph": "X", "cat": "python_function", "name": RawJson('"train.py(7): <lambda>\n\tforward"'),
            "pid": first["pid"], "tid": first["tid"], "ts": first["ts"], "dur": 0, "args": {},
        }  # fmt: skip
        document.events.insert(len(document.events) // 2, bad)

    edit_rank(source, destination, rank, edit)


def _communications(document: TraceDocument) -> list[Event]:
    """Communication kernels, or gloo annotations where there are none, by start."""
    kernels = [
        e
        for e in document.events
        if str(e.get("cat")).lower() == "kernel" and _COMMUNICATION_KERNEL.match(str(e.get("name")))
    ]
    gloo = [e for e in document.events if str(e.get("name")).startswith("gloo:")]
    return sorted(kernels or gloo, key=lambda e: time_ns(e["ts"]))


def _rows_of(document: TraceDocument, lost: Event, number: int) -> set[int]:
    """Identities of all rows of one communication."""
    correlation = _arguments(lost).get("correlation")
    if correlation is None:
        calls = [e for e in document.events if str(e.get("name")).startswith("c10d::")]
        calls.sort(key=lambda e: time_ns(e["ts"]))
        return {id(lost), *(id(call) for call in calls[number : number + 1])}
    same = [e for e in document.events if _arguments(e).get("correlation") == correlation]
    launches = [e for e in same if _is_host_row(e)]
    return {
        id(e)
        for e in document.events
        if e in same
        or e.get("id") == correlation
        or (_COMMUNICATION_ROW.match(str(e.get("name"))) and any(_holds(e, x) for x in (*launches, lost)))
    }


def _goes_with(event: Event, devices: list[Event], launched: set[Any]) -> bool:
    """Whether a row that is neither host nor device work stays with what was launched."""
    if event.get("cat") == "gpu_user_annotation":
        return any(_holds(event, device) for device in devices)
    if event.get("cat") == "ac2g":
        return event.get("id") in launched
    return event.get("ph") != "X" or event.get("cat") == "Trace"


def _is_host_row(event: Event) -> bool:
    category = str(event.get("cat")).lower()
    is_device = category in _DEVICE_CATEGORIES or category in ("gpu_user_annotation", "trace")
    return event.get("ph") == "X" and not is_device


def _is_inside(event: Event, windows: list[tuple[int, int]]) -> bool:
    start_ns = time_ns(event["ts"])
    return any(first <= start_ns < last for first, last in windows)


def _holds(outer: Event, inner: Event) -> bool:
    """Whether a row stands on the same lane as another and covers it."""
    if outer is inner or "dur" not in outer or "dur" not in inner:
        return False
    if (outer["pid"], outer["tid"]) != (inner["pid"], inner["tid"]):
        return False
    first, last = time_ns(outer["ts"]), time_ns(outer["ts"]) + time_ns(outer["dur"])
    return first <= time_ns(inner["ts"]) and time_ns(inner["ts"]) + time_ns(inner["dur"]) <= last


def _arguments(event: Event) -> dict[str, Any]:
    args = event.get("args")
    return args if isinstance(args, dict) else {}

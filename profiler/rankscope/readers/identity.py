"""Whose file it is: the rank, the recording window and the process groups of each trace file."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any

import msgspec
import numpy as np

from rankscope.errors import InputError
from rankscope.model.categories import Category
from rankscope.model.intervals import Int64
from rankscope.model.manifest import MANIFEST_KEY, MANIFEST_NAME, MANIFEST_VERSION, Manifest
from rankscope.model.run import Problem, ProcessGroup, RankSource, TraceWindow
from rankscope.model.table import TraceTable
from rankscope.readers.trace_file import TraceFile
from rankscope.units import format_duration, s_to_ns

_RANK_IN_NAME = (
    re.compile(r"(?:^|[^a-z])rank[-_.]?(\d+)", re.IGNORECASE),
    re.compile(r"(?:^|[^a-z])worker[-_.]?(\d+)", re.IGNORECASE),
)
_HOST_IN_NAME = re.compile(r"^(.+)_\d+\.\d{13,19}\.pt\.trace\.json")
"""What torch's `tensorboard_trace_handler` writes: host, process, time."""

_APART_NS = s_to_ns(600)
_MAX_RANKS = 1 << 20
"""No job has more: a larger rank or world size is a fault, and would make lists of missing ranks endless."""
_VERSION_KEYS = {
    "cuda_runtime_version": "cuda runtime",
    "cuda_driver_version": "cuda driver",
    "hip_runtime_version": "hip runtime",
    "hip_driver_version": "hip driver",
}


def identify(files: list[TraceFile]) -> tuple[tuple[TraceWindow, ...], tuple[Problem, ...]]:
    """The windows of the files, sorted by rank and window, and what is doubtful about them.

    Raises:
        InputError: files of two runs lie in one directory, named.
    """
    problems: list[Problem] = []
    windows = [_window_of(file, problems) for file in files]
    windows = _number_the_rest(windows, problems)
    _refuse_two_world_sizes(windows)
    problems += _ranks_outside(windows)
    by_rank: dict[int, list[TraceWindow]] = defaultdict(list)
    for window in windows:
        by_rank[window.rank].append(window)
    ordered = [w for rank in sorted(by_rank) for w in _in_time_order(by_rank[rank])]
    problems += _ranks_apart(ordered)
    return tuple(ordered), tuple(problems)


def _window_of(file: TraceFile, problems: list[Problem]) -> TraceWindow:
    metadata = file.metadata
    info = metadata.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    manifest = _manifest(metadata, file.name, problems)
    rank, source = _rank_of(file.name, info, manifest)
    if source == "file name":
        problems.append(
            _note(
                file.name, "rank-from-name", f"no usable rank inside the file; rank {rank} is from its name"
            )
        )
    world_size = _integer(info.get("world_size", manifest.world_size if manifest else None))
    if world_size is not None and not 0 < world_size <= _MAX_RANKS:
        problems.append(
            _note(file.name, "world-size", f"the world size {world_size} cannot be and is left out")
        )
        world_size = None
    backend = info.get("backend") or (manifest.backend if manifest else None)
    return TraceWindow(
        rank=rank,
        rank_source=source,
        window=manifest.window if manifest else 0,
        file=file.name,
        table=file.table,
        world_size=world_size,
        backend=backend if isinstance(backend, str) and backend not in ("", "undefined") else None,
        groups=_groups(info, manifest),
        host=_host(metadata, manifest, file.name),
        device_names=_device_names(metadata),
        versions=_versions(metadata, info, manifest),
        manifest=manifest,
    )


def _rank_of(name: str, info: dict[str, Any], manifest: Manifest | None) -> tuple[int, RankSource]:
    rank = _integer(info.get("rank"))
    if rank is not None and 0 <= rank < _MAX_RANKS:
        return rank, "distributedInfo"
    if manifest is not None and 0 <= manifest.rank < _MAX_RANKS:
        return manifest.rank, "manifest"
    for pattern in _RANK_IN_NAME:
        match = pattern.search(name)
        if match and int(match.group(1)) < _MAX_RANKS:
            return int(match.group(1)), "file name"
    return -1, "numbered"


def _ranks_outside(windows: list[TraceWindow]) -> list[Problem]:
    """A warning for ranks that the job does not have."""
    return [
        Problem(
            file=w.file,
            offset=None,
            kind="rank-outside",
            message=f"rank {w.rank} cannot be in a job of world size {w.world_size}; the file may be of another run",
        )
        for w in windows
        if w.world_size is not None and w.rank >= w.world_size
    ]


def _number_the_rest(windows: list[TraceWindow], problems: list[Problem]) -> list[TraceWindow]:
    """Give the files without a rank the smallest free numbers, in order of name, and say so."""
    taken = {w.rank for w in windows if w.rank_source != "numbered"}
    free = (n for n in range(len(windows) + len(taken)) if n not in taken)
    numbered = []
    for window in windows:
        if window.rank_source == "numbered":
            window = replace(window, rank=next(free))
            text = f"no usable rank inside the file nor in its name; numbered {window.rank} by order of name"
            problems.append(
                Problem(file=window.file, offset=None, kind="rank-numbered", message=text, severity="warning")
            )
        numbered.append(window)
    return numbered


def _refuse_two_world_sizes(windows: list[TraceWindow]) -> None:
    first_with: dict[int, str] = {}
    for window in windows:
        if window.world_size is not None:
            first_with.setdefault(window.world_size, window.file)
    if len(first_with) > 1:
        sizes = ", ".join(f"{file} says {size}" for size, file in sorted(first_with.items()))
        raise InputError(
            f"two runs lie in one directory: the files disagree about the world size ({sizes}). "
            "Put each run into a directory of its own"
        )


def _in_time_order(windows: list[TraceWindow]) -> list[TraceWindow]:
    """Windows of one rank, numbered by start time.

    Raises:
        InputError: two of them cannot be of one process of one run.
    """
    windows = sorted(windows, key=lambda w: (_start(w.table), w.file))
    extents = [_extent(window) for window in windows if len(window.table)]
    for earlier, later in combinations(extents, 2):
        reason = _why_two_runs(earlier, later)
        if reason is not None:
            raise InputError(
                f"rank {windows[0].rank} is in two files that cannot be one run: {earlier.file} and {later.file} "
                f"({reason}). Put each run into a directory of its own, and remove copies"
            )
    return [replace(window, window=i) for i, window in enumerate(windows)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extent:
    """When a window was: its steps, or all rows where there are none (device rows may leak out of steps)."""

    file: str
    start_ns: int
    end_ns: int
    steps: frozenset[str]


def _extent(window: TraceWindow) -> _Extent:
    table = window.table
    steps = _step_rows(table)
    return _Extent(
        file=window.file,
        start_ns=int(table.start_ns[steps[0] if len(steps) else 0]),
        end_ns=int((table.ends_of(steps) if len(steps) else table.end_ns).max()),
        steps=frozenset(table.names[i] for i in np.unique(table.name[steps])),
    )


def _why_two_runs(earlier: _Extent, later: _Extent) -> str | None:
    if earlier.end_ns > later.start_ns and later.end_ns > earlier.start_ns:
        return "they cover the same time"
    shared = earlier.steps & later.steps
    return f"both hold {min(shared)}" if shared else None


def _step_rows(table: TraceTable) -> Int64:
    is_step = [name.startswith("ProfilerStep#") for name in table.names]
    return table.rows_of_category(Category.USER_ANNOTATION, is_step)


def _start(table: TraceTable) -> int:
    return int(table.start_ns[0]) if len(table) else 0


def _ranks_apart(windows: list[TraceWindow]) -> list[Problem]:
    """A warning for ranks whose first windows lie far apart in time: files of an older run, perhaps."""
    firsts = [w for w in windows if w.window == 0 and len(w.table)]
    if len(firsts) < 2:
        return []
    starts = np.array([_start(w.table) for w in firsts])
    middle = int(np.median(starts))
    return [
        Problem(
            file=w.file,
            offset=None,
            kind="time-apart",
            message=f"rank {w.rank} begins {format_duration(abs(_start(w.table) - middle))} away from the other "
            "ranks; the file may be of another run",
        )
        for w in firsts
        if abs(_start(w.table) - middle) > _APART_NS
    ]


def _manifest(metadata: dict[str, Any], file: str, problems: list[Problem]) -> Manifest | None:
    raw = metadata.get(MANIFEST_KEY)
    if raw is None:
        return None
    manifest, fault = _read_manifest(raw)
    if fault is not None:
        problems.append(_note(file, "manifest", f"the collector's facts {fault}; they are left out"))
    return manifest


def _read_manifest(raw: Any) -> tuple[Manifest | None, str | None]:
    """The manifest, or why it cannot be used."""
    try:
        if isinstance(raw, str):  # add_metadata writes text, add_metadata_json a value
            raw = msgspec.json.decode(raw)
        head = raw.get("format") if isinstance(raw, dict) else None
        if not isinstance(head, dict) or head.get("name") != MANIFEST_NAME:
            return None, f"are not there: the key {MANIFEST_KEY!r} holds something else"
        version = str(head.get("version"))
        if version.split(".")[0] != MANIFEST_VERSION.split(".")[0]:
            return None, f"have format {version[:20]}, and this rankscope reads {MANIFEST_VERSION}"
        return msgspec.convert(raw, Manifest, strict=False), None
    except (msgspec.MsgspecError, RecursionError) as error:
        return None, f"cannot be read ({error})"


def _groups(info: dict[str, Any], manifest: Manifest | None) -> tuple[ProcessGroup, ...]:
    config = info.get("pg_config")
    if isinstance(config, list) and config:
        return tuple(
            ProcessGroup(
                name=str(entry.get("pg_name", "")),
                description=str(entry.get("pg_desc", "")),
                ranks=_rank_list(entry.get("ranks")),
                backend=str(entry.get("backend_config", "")),
            )
            for entry in config
            if isinstance(entry, dict)
        )
    if manifest is None:
        return ()
    return tuple(
        ProcessGroup(name=g.name, description=g.description, ranks=tuple(g.ranks), backend=g.backend)
        for g in manifest.groups
    )


def _rank_list(value: Any) -> tuple[int, ...]:
    return tuple(r for r in value if _integer(r) is not None) if isinstance(value, list) else ()


def _host(metadata: dict[str, Any], manifest: Manifest | None, file: str) -> str | None:
    if manifest is not None:
        return manifest.host or None
    host = metadata.get("host_name")
    if isinstance(host, str) and host:
        return host
    in_name = _HOST_IN_NAME.match(PurePosixPath(file).name)
    if in_name is None or any(pattern.search(in_name.group(1)) for pattern in _RANK_IN_NAME):
        return None  # "worker1_step_12.1694128201556": a name of the user's own
    return in_name.group(1)


def _device_names(metadata: dict[str, Any]) -> dict[int, str]:
    devices = metadata.get("deviceProperties")
    if not isinstance(devices, list):
        return {}
    return {
        d["id"]: d["name"]
        for d in devices
        if isinstance(d, dict) and isinstance(d.get("id"), int) and isinstance(d.get("name"), str)
    }


def _versions(metadata: dict[str, Any], info: dict[str, Any], manifest: Manifest | None) -> dict[str, str]:
    versions = dict(manifest.versions) if manifest else {}
    if isinstance(info.get("nccl_version"), str):
        versions.setdefault("nccl", info["nccl_version"])
    for key, name in _VERSION_KEYS.items():
        if isinstance(metadata.get(key), int):
            versions.setdefault(name, str(metadata[key]))
    return dict(sorted(versions.items()))


def _note(file: str, kind: str, message: str) -> Problem:
    return Problem(file=file, offset=None, kind=kind, message=message, severity="note")


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

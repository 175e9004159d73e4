"""Whose file it is: the rank, the recording window and the process groups of each trace file."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from rankscope.errors import InputError
from rankscope.model.categories import Category
from rankscope.model.manifest import MANIFEST_KEY, MANIFEST_VERSION, Manifest
from rankscope.model.run import Problem, ProcessGroup, RankSource, TraceWindow
from rankscope.model.table import TraceTable
from rankscope.readers.trace_file import TraceFile
from rankscope.units import format_duration, s_to_ns

_RANK_IN_NAME = (
    re.compile(r"(?:^|[^a-z])rank[-_.]?(\d+)", re.IGNORECASE),
    re.compile(r"(?:^|[^a-z])worker[-_.]?(\d+)", re.IGNORECASE),
)
_APART_NS = s_to_ns(600)
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
            _note(file.name, "rank-from-name", f"no rank inside the file; rank {rank} is from its name")
        )
    world_size = info.get("world_size", manifest.world_size if manifest else None)
    backend = info.get("backend") or (manifest.backend if manifest else None)
    return TraceWindow(
        rank=rank,
        rank_source=source,
        window=manifest.window if manifest else 0,
        file=file.name,
        table=file.table,
        world_size=world_size if isinstance(world_size, int) and world_size > 0 else None,
        backend=backend if isinstance(backend, str) and backend not in ("", "undefined") else None,
        groups=_groups(info, manifest),
        host=_host(metadata, manifest),
        device_names=_device_names(metadata),
        versions=_versions(metadata, info, manifest),
        manifest=manifest,
    )


def _rank_of(name: str, info: dict[str, Any], manifest: Manifest | None) -> tuple[int, RankSource]:
    rank = info.get("rank")
    if isinstance(rank, int) and rank >= 0:
        return rank, "distributedInfo"
    if manifest is not None:
        return manifest.rank, "manifest"
    for pattern in _RANK_IN_NAME:
        match = pattern.search(name)
        if match:
            return int(match.group(1)), "file name"
    return -1, "numbered"


def _number_the_rest(windows: list[TraceWindow], problems: list[Problem]) -> list[TraceWindow]:
    """Give the files without a rank the smallest free numbers, in order of name, and say so."""
    taken = {w.rank for w in windows if w.rank_source != "numbered"}
    free = (n for n in range(len(windows) + len(taken)) if n not in taken)
    numbered = []
    for window in windows:
        if window.rank_source == "numbered":
            window = replace(window, rank=next(free))
            text = f"no rank inside the file nor in its name; numbered {window.rank} by order of name"
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
    for earlier, later in pairwise(windows):
        reason = _why_two_runs(earlier.table, later.table)
        if reason is not None:
            raise InputError(
                f"rank {earlier.rank} is in two files that cannot be one run: {earlier.file} and {later.file} "
                f"({reason}). Put each run into a directory of its own, and remove copies"
            )
    return [replace(window, window=i) for i, window in enumerate(windows)]


def _why_two_runs(earlier: TraceTable, later: TraceTable) -> str | None:
    if len(earlier) == 0 or len(later) == 0:
        return None
    if int(earlier.end_ns.max()) > int(later.start_ns.min()) and _host_overlap(earlier, later):
        return "they cover the same time"
    shared = _step_names(earlier) & _step_names(later)
    if shared:
        return f"both hold {sorted(shared)[0]}"
    return None


def _host_overlap(earlier: TraceTable, later: TraceTable) -> bool:
    """Whether the steps, or all rows where there are none, overlap in time (device rows may leak in)."""
    spans = []
    for table in (earlier, later):
        steps = _step_rows(table)
        rows = steps if len(steps) else np.arange(len(table))
        spans.append((int(table.start_ns[rows].min()), int(table.end_ns[rows].max())))
    return spans[0][1] > spans[1][0]


def _step_rows(table: TraceTable) -> Any:
    steps = np.array([name.startswith("ProfilerStep#") for name in table.names], bool)
    if not steps.any():
        return np.empty(0, np.int64)
    return np.flatnonzero(steps[table.name] & (table.category == Category.USER_ANNOTATION))


def _step_names(table: TraceTable) -> set[str]:
    return {table.names[i] for i in np.unique(table.name[_step_rows(table)])}


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
    if isinstance(raw, str):  # add_metadata writes text, add_metadata_json a value
        raw = msgspec.json.decode(raw) if raw.startswith("{") else None
    try:
        manifest = msgspec.convert(raw, Manifest, strict=False)
    except msgspec.ValidationError as error:
        problems.append(
            _note(file, "manifest", f"the collector's facts cannot be read ({error}) and are left out")
        )
        return None
    if manifest.format.version.split(".")[0] != MANIFEST_VERSION.split(".")[0]:
        text = (
            f"the collector's facts have format {manifest.format.version}, this rankscope reads "
            f"{MANIFEST_VERSION}; they are left out"
        )
        problems.append(_note(file, "manifest", text))
        return None
    return manifest


def _groups(info: dict[str, Any], manifest: Manifest | None) -> tuple[ProcessGroup, ...]:
    config = info.get("pg_config")
    if isinstance(config, list) and config:
        return tuple(
            ProcessGroup(
                name=str(entry.get("pg_name", "")),
                description=str(entry.get("pg_desc", "")),
                ranks=tuple(r for r in entry.get("ranks") or () if isinstance(r, int)),
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


def _host(metadata: dict[str, Any], manifest: Manifest | None) -> str | None:
    if manifest is not None:
        return manifest.host or None
    host = metadata.get("host_name")
    return host if isinstance(host, str) and host else None


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

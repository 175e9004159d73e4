"""Which files a run consists of: a file, a directory or a URL to the list of its trace files."""

from __future__ import annotations

import stat
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rankscope.errors import InputError

_TRACE_SUFFIXES = (".json", ".json.gz", ".pt.trace.json", ".pt.trace.json.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSource:
    """One candidate file.

    Attributes:
        name: its name relative to the run, for messages.
        location: path or URL.
        size_bytes: as stored; 0 if unknown.
        is_remote: whether it is opened through fsspec.
    """

    name: str
    location: str
    size_bytes: int
    is_remote: bool = False

    def open(self) -> AbstractContextManager[IO[bytes]]:
        """The file, opened for reading in binary mode."""
        if self.is_remote:
            import fsspec

            opened: AbstractContextManager[IO[bytes]] = fsspec.open(self.location, "rb")
            return opened
        return Path(self.location).open("rb")


def find_traces(run: str | Path) -> tuple[TraceSource, ...]:
    """The candidate trace files of a run, sorted by name.

    Args:
        run: a trace file, a directory of them (not searched deeper), or an fsspec URL of either.

    Raises:
        InputError: it does not exist, cannot be read, or holds no candidate.
    """
    text = str(run)
    sources = _find_remote(text) if "://" in text else _find_local(Path(text))
    if not sources:
        raise InputError(_nothing_found(text))
    return tuple(sorted(sources, key=lambda source: source.name))


def _find_local(path: Path) -> list[TraceSource]:
    try:
        if path.is_dir():
            return [_local(p) for p in path.iterdir() if _is_candidate(p.name) and _may_be_file(p)]
        if path.is_file():
            return [_local(path)]
        if path.exists():
            raise InputError(
                f"{path} is neither a file nor a directory; give a trace file or a directory of them"
            )
    except OSError as error:
        raise InputError(f"cannot look into {path}: {error.strerror or error}") from error
    raise InputError(f"{path} does not exist; give a trace file, a directory of them, or a URL")


def _may_be_file(path: Path) -> bool:
    """False for directories, pipes and the like; True for what cannot be looked at, a dangling link for one.

    Opening it will say why, so that a file that is lost does not go unnoticed.
    """
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def _local(path: Path) -> TraceSource:
    try:
        size_bytes = path.stat().st_size
    except OSError:
        size_bytes = 0
    return TraceSource(name=path.name, location=str(path), size_bytes=size_bytes)


def _find_remote(url: str) -> list[TraceSource]:
    import fsspec

    try:
        filesystem, root = fsspec.core.url_to_fs(url)
        entries: list[dict[str, Any]] = filesystem.ls(root, detail=True)
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"cannot look into {url}: {error}") from error
    files = [e for e in entries if e["type"] == "file" and (e["name"] == root or _is_candidate(e["name"]))]
    return [
        TraceSource(
            name=entry["name"].rsplit("/", 1)[-1],
            location=filesystem.unstrip_protocol(entry["name"]),
            size_bytes=entry.get("size") or 0,
            is_remote=True,
        )
        for entry in files
    ]


def _is_candidate(name: str) -> bool:
    return name.lower().endswith(_TRACE_SUFFIXES) and not name.rsplit("/", 1)[-1].startswith(".")


def _nothing_found(run: str) -> str:
    message = f"no trace file in {run}: expected files that end in .json or .json.gz"
    path = Path(run)
    if "://" in run or not path.is_dir():
        return message
    inner = sorted(p.name for p in path.iterdir() if _holds_candidates(p))
    if inner:
        message += f". These directories inside it hold some, give one of them: {', '.join(inner[:8])}"
    return message


def _holds_candidates(path: Path) -> bool:
    try:
        return path.is_dir() and any(_is_candidate(inner.name) for inner in path.iterdir())
    except OSError:
        return False

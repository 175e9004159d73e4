"""One file of a run: read, or taken from the cache, and every fault of it noted instead of raised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rankscope.errors import TraceSyntaxError
from rankscope.model.categories import Classifier
from rankscope.model.run import Problem
from rankscope.readers.byte_stream import DEFAULT_MAX_UNPACKED_BYTES
from rankscope.readers.cache import TableCache
from rankscope.readers.cache_folder import SMALLEST_STORED_BYTES, CacheFolder
from rankscope.readers.content_hash import content_hash, file_state
from rankscope.readers.discovery import TraceSource
from rankscope.readers.trace_file import NotATraceError, TraceFile, read_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read.

    Attributes:
        communication_patterns: extra regular expressions of kernel names that communicate.
        max_unpacked_bytes: limit of the uncompressed text of one file.
        processes: worker processes; 0 = one per core, as far as it pays. More than one needs the usual
            `if __name__ == "__main__":` guard in a calling script.
        cache: directory that keeps the tables of large files; None keeps nothing.
    """

    communication_patterns: tuple[str, ...] = ()
    max_unpacked_bytes: int = DEFAULT_MAX_UNPACKED_BYTES
    processes: int = 1
    cache: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one file: its contents, or the problem; neither if it is no trace."""

    file: TraceFile | None
    problem: Problem | None


def read_one(source: TraceSource, options: ReadOptions) -> Outcome:
    """Read one file."""

    def read() -> TraceFile:
        with source.open() as raw:
            kept = find_kept_table(raw, source, options)
            found = kept.load() if kept is not None else None
            if found is not None:
                return found
            classifier = Classifier(extra_patterns=options.communication_patterns)
            limit = options.max_unpacked_bytes
            file = read_trace(raw, source.name, classifier, max_unpacked_bytes=limit)
            if kept is not None:
                kept.store(file, raw)
            return file

    return outcome_of(source, read)


def outcome_of(source: TraceSource, read: Callable[[], TraceFile]) -> Outcome:
    """What comes of reading a file; every fault of the input becomes a problem."""
    try:
        return Outcome(file=read(), problem=None)
    except NotATraceError:
        return Outcome(file=None, problem=None)
    except TraceSyntaxError as error:
        return lost(source, error.offset, error.slug, str(error))
    except MemoryError:
        return lost(source, None, "memory", "out of memory while reading; try --processes 1")
    except OSError as error:
        return lost(source, None, "unreadable", f"cannot be read: {error.strerror or error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTable:
    """The place of one file's table in the cache; `state` is what the file looked like before it was hashed."""

    cache: TableCache
    key: str
    name: str
    state: tuple[int, ...]

    def exists(self) -> bool:
        """Whether the file was read before; whether its table is whole only `load` tells."""
        return self.cache.has(self.key)

    def load(self) -> TraceFile | None:
        """The file as it was read before, if it is there and whole."""
        return self.cache.get(self.key, self.name)

    def store(self, file: TraceFile, raw: IO[bytes]) -> None:
        """Keep what was read from `raw`, unless it was written to meanwhile: the hash may be that of another text."""
        if file_state(raw) == self.state:
            self.cache.put(self.key, file)


def find_kept_table(raw: IO[bytes], source: TraceSource, options: ReadOptions) -> KeptTable | None:
    """The place of a file's table; None where keeping one does not pay, or the cache is turned off.

    Args:
        raw: the file, open for reading; left at its beginning.
        source: where it comes from.
        options: how it is read.
    """
    if options.cache is None or source.is_remote or source.size_bytes < SMALLEST_STORED_BYTES:
        return None
    cache, state = TableCache(options.cache), file_state(raw)
    content = content_hash(raw, CacheFolder(options.cache))
    raw.seek(0)
    key = cache.key(content, (options.communication_patterns, options.max_unpacked_bytes))
    return KeptTable(cache=cache, key=key, name=source.name, state=state)


def lost(source: TraceSource, offset: int | None, kind: str, message: str) -> Outcome:
    """A file that could not be read, and why; `offset` is the place in it, if there is one."""
    place = f" (byte offset {offset})" if offset is not None and "byte offset" not in message else ""
    problem = Problem(
        file=source.name,
        offset=offset,
        kind=kind,
        message=f"{source.name}: {message}{place}",
        severity="error",
    )
    return Outcome(file=None, problem=problem)

"""Tables of trace files that were read before, kept on disk under the content of the file.

An entry is found by a hash of the file's stored bytes, of what was asked of the reader, and of the reader's own
code, so that it can be old but never stale. It is one file: a magic, the hash of all that follows, then two
Arrow streams, the events and their arguments. An entry that does not fit its hash is read again and replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from rankscope.model.run import Problem
from rankscope.model.table import Arguments, Lane, TraceTable
from rankscope.readers.trace_file import TraceFile

CACHE_VARIABLE = "RANKSCOPE_CACHE"
"""Environment variable: a directory for the cache, or "off"."""

DEFAULT_MAX_BYTES = 4 << 30
SMALLEST_STORED_BYTES = 1 << 20
"""Files smaller than this are read faster than their entry would be looked up."""

_MAGIC = b"rankscope-table\n"
_SUFFIX = ".table"
_HASH_BYTES = hashlib.sha256().digest_size
_READ_BYTES = 4 << 20
_TEXTS = ("names", "texts")
_OFF = frozenset({"off", "0", "no", "none", "false"})


def default_cache_directory(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where the cache lies: `RANKSCOPE_CACHE`, else the user's cache directory; None if it is turned off.

    >>> default_cache_directory({"RANKSCOPE_CACHE": "off"}) is None
    True
    >>> default_cache_directory({"XDG_CACHE_HOME": "/c"}).as_posix()
    '/c/rankscope'
    """
    chosen = environment.get(CACHE_VARIABLE, "").strip()
    if chosen:
        return None if chosen.lower() in _OFF else Path(chosen)
    home = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "rankscope"


def hash_file(file: IO[bytes]) -> bytes:
    """Hash of a file from its beginning; the file is left at its end."""
    # SHA-256: with the instructions that processors have for it, 2.5 times as fast as BLAKE2.
    digest = hashlib.sha256()
    while block := file.read(_READ_BYTES):
        digest.update(block)
    return digest.digest()


@cache
def code_hash(*packages: str) -> bytes:
    """Hash of the source of some of rankscope's packages ("" for all): another version shares no entry."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted({p for package in packages for p in (root / package).rglob("*.py")}):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()


class TableCache:
    """A directory of tables, bounded in size; safe for several processes at once.

    Attributes:
        directory: where the entries lie; made when the first is written.
        max_bytes: above this the entries that were not used for longest are removed.
    """

    def __init__(self, directory: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.directory = directory
        self.max_bytes = max_bytes

    def key(self, content: bytes, options: Iterable[object]) -> str:
        """The name of an entry.

        Args:
            content: hash of the file's stored bytes.
            options: whatever else decides what the reader makes of them.
        """
        parts = (content, code_hash("readers", "model"), repr(tuple(options)).encode())
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()

    def get(self, key: str, name: str) -> TraceFile | None:
        """The entry, as if read from a file called `name`; None if there is none that is whole."""
        path = self._path(key)
        try:
            stored = path.read_bytes()
        except OSError:
            return None
        head, payload = stored[: len(_MAGIC) + _HASH_BYTES], memoryview(stored)[len(_MAGIC) + _HASH_BYTES :]
        if head != _MAGIC + hashlib.sha256(payload).digest():
            return None
        with suppress(OSError):
            os.utime(path)
        return _unpack(payload, name)

    def put(self, key: str, file: TraceFile) -> None:
        """Keep a file's table; a disk that is full or may not be written to keeps nothing, silently."""
        payload = _pack(file)
        if len(payload) > self.max_bytes:
            return
        with suppress(OSError):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.directory, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(_MAGIC + hashlib.sha256(payload).digest())
                    out.write(payload)
                Path(temporary).replace(self._path(key))
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            self._evict()

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}{_SUFFIX}"

    def _evict(self) -> None:
        """Remove the entries that were not used for longest, until the rest fits."""
        entries = []
        for path in self.directory.glob(f"*{_SUFFIX}"):
            with suppress(OSError):  # another process may have removed it meanwhile
                entries.append((path.stat().st_mtime_ns, path.stat().st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.max_bytes:
                return
            path.unlink(missing_ok=True)
            total -= size


def _pack(file: TraceFile) -> bytes:
    import pyarrow as pa

    table, arguments = file.table, file.table.arguments
    facts = {
        "events": file.events,
        "metadata": file.metadata,
        "problems": [[p.offset, p.kind, p.message, p.severity] for p in file.problems],
        "names": table.names,
        "texts": arguments.texts,
        "lanes": [[lane.pid, lane.tid, lane.device, lane.stream] for lane in table.lanes],
    }
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    for columns, notes in ((_columns(table), facts), (_columns(arguments), {})):
        schema = pa.schema(
            [(name, pa.from_numpy_dtype(column.dtype)) for name, column in columns.items()],
            metadata={"facts": json.dumps(notes)},
        )
        batch = pa.record_batch([pa.array(column) for column in columns.values()], schema=schema)
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            writer.write_batch(batch)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


def _unpack(payload: memoryview, name: str) -> TraceFile:
    import pyarrow as pa

    source = pa.BufferReader(payload)
    events, facts = _read_stream(source)
    arguments, _ = _read_stream(source)
    table = TraceTable(
        **events,
        names=tuple(facts["names"]),
        lanes=tuple(Lane(pid=p, tid=t, device=d, stream=s) for p, t, d, s in facts["lanes"]),
        arguments=Arguments(**arguments, texts=tuple(facts["texts"])),
    )
    return TraceFile(
        name=name,
        table=table,
        events=facts["events"],
        metadata=facts["metadata"],
        problems=tuple(
            Problem(file=name, offset=offset, kind=kind, message=message, severity=severity)
            for offset, kind, message, severity in facts["problems"]
        ),
    )


def _read_stream(source: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    import pyarrow as pa

    with pa.ipc.open_stream(source) as reader:
        batch = reader.read_next_batch()
        facts = json.loads(reader.schema.metadata[b"facts"])
        while True:  # up to the end of this stream, where the next one begins
            try:
                reader.read_next_batch()
            except StopIteration:
                break
    # Copies, since Arrow's memory cannot be written to.
    return {n: np.array(c) for n, c in zip(batch.schema.names, batch.columns, strict=True)}, facts


def _columns(table: TraceTable | Arguments) -> dict[str, Any]:
    return {f.name: v for f in fields(table) if isinstance(v := getattr(table, f.name), np.ndarray)}

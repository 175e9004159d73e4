"""Tables of trace files that were read before, kept on disk under the content of the file.

An entry holds two Arrow streams: the events and their arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankscope.model.parts import parts
from rankscope.model.run import Problem
from rankscope.model.table import Arguments, Lane, TraceTable
from rankscope.readers.cache_folder import DEFAULT_MAX_BYTES, CacheFolder, HashedFile, code_hash, entry_key
from rankscope.readers.trace_file import TraceFile


class TableCache:
    """The tables in a cache folder."""

    def __init__(self, directory: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._folder = CacheFolder(directory, max_bytes=max_bytes)

    @property
    def directory(self) -> Path:
        """Where the entries lie."""
        return self._folder.directory

    def key(self, content: bytes, options: Iterable[object]) -> str:
        """The name of an entry.

        Args:
            content: hash of the file's stored bytes.
            options: whatever else decides what the reader makes of them.
        """
        return entry_key(content, code_hash("readers", "model"), repr(tuple(options)))

    def has(self, key: str) -> bool:
        """Whether there is an entry, whole or not."""
        return self._folder.has(f"{key}.table")

    def get(self, key: str, name: str) -> TraceFile | None:
        """The entry, as if read from a file called `name`; None if there is none that is whole."""
        content = self._folder.read(f"{key}.table")
        return None if content is None else _unpack(content, name)

    def put(self, key: str, file: TraceFile) -> None:
        """Keep a file's table, if it can be kept."""
        self._folder.write_by(f"{key}.table", partial(_pack, file))


def _pack(file: TraceFile, out: HashedFile) -> None:
    table, arguments = file.table, file.table.arguments
    facts = {
        "events": file.events,
        "metadata": file.metadata,
        "problems": [[p.offset, p.kind, p.message, p.severity] for p in file.problems],
        "names": table.names,
        "texts": arguments.texts,
        "lanes": [[lane.pid, lane.tid, lane.device, lane.stream] for lane in table.lanes],
    }
    _write_stream(out, _columns(table), facts)
    _write_stream(out, _columns(arguments), {})


def _write_stream(out: HashedFile, columns: dict[str, Any], facts: dict[str, Any]) -> None:
    """One Arrow stream, a part of the rows at a time: beside the table there is no room for another."""
    import pyarrow as pa

    schema = pa.schema(
        [(name, pa.from_numpy_dtype(column.dtype)) for name, column in columns.items()],
        metadata={"facts": json.dumps(facts)},
    )
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(out, schema, options=options) as writer:
        for part in parts(len(next(iter(columns.values())))):
            arrays = [pa.array(column[part]) for column in columns.values()]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


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
        schema = reader.schema
        batches = list(reader)
    # Copies, since Arrow's memory cannot be written to.
    columns = {
        field.name: np.concatenate(
            [np.empty(0, field.type.to_pandas_dtype()), *(batch.column(i).to_numpy() for batch in batches)]
        )
        for i, field in enumerate(schema)
    }
    return columns, json.loads(schema.metadata[b"facts"])


def _columns(table: TraceTable | Arguments) -> dict[str, Any]:
    return {f.name: v for f in fields(table) if isinstance(v := getattr(table, f.name), np.ndarray)}

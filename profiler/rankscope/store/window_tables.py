"""A run as Parquet: two tables per recorded window, from which the very same `Run` comes back.

So everything can be worked out again (with a newer rankscope, or by another tool) without the traces.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from rankscope.errors import InputError
from rankscope.model.manifest import Manifest
from rankscope.model.run import Problem, ProcessGroup, TraceWindow
from rankscope.model.table import Arguments, Lane, TraceTable
from rankscope.store.parquet import from_parquet, to_parquet

_FACTS_KEY = b"rankscope"
_EVENT_COLUMNS = tuple(f.name for f in fields(TraceTable) if f.name not in ("names", "lanes", "arguments"))
_ARGUMENT_COLUMNS = tuple(f.name for f in fields(Arguments) if f.name != "texts")
_DTYPES = {
    "category": np.uint8,
    "event_class": np.uint8,
    "name": np.int32,
    "lane": np.int32,
    "device": np.int16,
}
_TEXT_ARGUMENTS = frozenset(
    {"collective", "dtype", "group_name", "group_description", "group_ranks", "inputs"}
)
_PLAIN_FACTS = ("rank", "rank_source", "window", "file", "world_size", "backend", "host", "versions")


def window_to_parquet(window: TraceWindow) -> tuple[bytes, bytes]:
    """The events of a window with its facts, and the arguments of its communication, as two Parquet files."""
    table = window.table
    facts = {name: getattr(window, name) for name in _PLAIN_FACTS}
    facts |= {
        "groups": [asdict(group) for group in window.groups],
        "device_names": list(window.device_names.items()),
        "manifest": None if window.manifest is None else asdict(window.manifest),
        "names": table.names,
        "lanes": [asdict(lane) for lane in table.lanes],
        "texts": table.arguments.texts,
    }
    events = pa.table({name: getattr(table, name) for name in _EVENT_COLUMNS})
    events = events.replace_schema_metadata({_FACTS_KEY: json.dumps(facts, separators=(",", ":")).encode()})
    arguments = pa.table({name: getattr(table.arguments, name) for name in _ARGUMENT_COLUMNS})
    return to_parquet(events), to_parquet(arguments)


def window_from_parquet(events: bytes, arguments: bytes) -> TraceWindow:
    """The window that `window_to_parquet` wrote.

    Raises:
        InputError: the events carry no facts of a window.
    """
    found = from_parquet(events)
    try:
        facts: dict[str, Any] = json.loads((found.schema.metadata or {})[_FACTS_KEY])
        return TraceWindow(
            **{name: facts[name] for name in _PLAIN_FACTS},
            groups=tuple(
                ProcessGroup(**{**group, "ranks": tuple(group["ranks"])}) for group in facts["groups"]
            ),
            device_names=dict(facts["device_names"]),
            manifest=None if facts["manifest"] is None else msgspec.convert(facts["manifest"], Manifest),
            table=_trace_table(found, from_parquet(arguments), facts),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"a stored window cannot be read ({type(error).__name__}: {error}); upload the traces again"
        ) from error


def problems_to_json(problems: tuple[Problem, ...]) -> bytes:
    """The problems of a run as JSON."""
    return json.dumps([asdict(problem) for problem in problems]).encode()


def problems_from_json(content: bytes) -> tuple[Problem, ...]:
    """The problems that `problems_to_json` wrote."""
    return tuple(Problem(**fields_) for fields_ in json.loads(content))


def _trace_table(events: Any, arguments: Any, facts: dict[str, Any]) -> TraceTable:  # noqa: ANN401
    return TraceTable(
        **{name: _column(events, name, _DTYPES.get(name, np.int64)) for name in _EVENT_COLUMNS},
        names=tuple(facts["names"]),
        lanes=tuple(Lane(**lane) for lane in facts["lanes"]),
        arguments=Arguments(
            **{
                name: _column(arguments, name, np.int32 if name in _TEXT_ARGUMENTS else np.int64)
                for name in _ARGUMENT_COLUMNS
            },
            texts=tuple(facts["texts"]),
        ),
    )


def _column(table: Any, name: str, dtype: Any) -> Any:  # noqa: ANN401
    return np.ascontiguousarray(table.column(name).to_numpy(), dtype=dtype)

"""Trace files as Kineto writes them: the text of an event, of a file, and reading one back to damage it.

Text is made by hand where it matters: microseconds come from int nanoseconds without a float, and the line
breaks are those of Kineto, in which readers look for places to cut.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

Event: TypeAlias = "dict[str, Any]"
Layout = Literal["kineto", "kineto long", "compact"]
"""Kineto's layout up to torch 2.8; the one since, with a line for each key; one line for everything."""

_ENCODER = json.JSONEncoder(ensure_ascii=False)
_GZIP_LEVEL = 9
_EVENTS_PER_CHUNK = 500
_NS_PER_US = 1_000


@dataclass(frozen=True, slots=True)
class RawJson:
    """Text that goes into a file as it is, valid JSON or not."""

    text: str


@dataclass(slots=True, kw_only=True)
class TraceDocument:
    """One trace file: what stands before traceEvents, the events, and what stands after them."""

    before: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    after: dict[str, Any] = field(default_factory=dict)

    def key_value(self, key: str) -> Any:  # noqa: ANN401 - a JSON value
        """The value of a top-level key, or None."""
        return self.before.get(key, self.after.get(key))

    def replace_value(self, key: str, value: object) -> None:
        """Give a top-level key that exists another value."""
        (self.before if key in self.before else self.after)[key] = value


def microseconds(ns: int, *, whole: bool = False) -> RawJson:
    """Microseconds of `ns` nanoseconds with three decimals, or as a whole number, rounded down.

    >>> microseconds(1_500).text, microseconds(1_500, whole=True).text
    ('1.500', '1')
    """
    us, rest = divmod(ns, _NS_PER_US)
    return RawJson(str(us) if whole else f"{us}.{rest:03d}")


def value_text(value: object) -> str:
    """JSON text of a value in Kineto's spacing; raw parts go in as they are.

    >>> value_text({"a": [1, RawJson("NaN")], "b": "x"})
    '{"a": [1, NaN], "b": "x"}'
    """
    kind = type(value)
    if kind is str:
        return _string_text(value)
    if kind is int:
        return str(value)
    if isinstance(value, RawJson):
        return value.text
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key_text(k)}: {value_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(value_text(v) for v in value) + "]"
    if isinstance(value, Decimal):
        return str(value)
    return _ENCODER.encode(value)


@lru_cache(maxsize=4096)
def _key_text(key: str) -> str:
    return json.dumps(key)


@lru_cache(maxsize=4096)
def _string_text(text: str) -> str:
    return _ENCODER.encode(text)


def event_text(event: Event, layout: Layout) -> str:
    """The text of one event, without a comma."""
    if layout == "compact":
        return value_text(event)
    if layout == "kineto long":
        return _long_event_text(event)
    lines = [
        _members({k: v for k, v in event.items() if k not in ("ts", "dur", "args")}),
        _members({k: event[k] for k in ("ts", "dur") if k in event}),
    ]
    text = ",\n    ".join(line for line in lines if line)
    if "args" in event:
        text += f',\n    "args": {{\n      {_members(event["args"])}\n    }}'
    return f"  {{\n    {text}\n  }}"


def trace_chunks(document: TraceDocument, layout: Layout) -> Iterator[str]:
    """The text of a file, in pieces."""
    line, indent = ("", "") if layout == "compact" else ("\n", "  ")
    yield line + "{" + line
    for key, value in document.before.items():
        yield f"{indent}{json.dumps(key)}: {value_text(value)},{line}"
    yield f'{indent}"traceEvents": [{line}'
    for first in range(0, len(document.events), _EVENTS_PER_CHUNK):
        texts = (event_text(e, layout) for e in document.events[first : first + _EVENTS_PER_CHUNK])
        yield (f",{line}" if first else "") + f",{line}".join(texts)
    yield f"{line}{indent}]"
    for key, value in document.after.items():
        yield f",{line}{indent}{json.dumps(key)}: {value_text(value)}"
    yield line + "}"


def write_document(path: Path, document: TraceDocument, layout: Layout) -> None:
    """Write a file, compressed if its name ends in .gz; the same document gives the same bytes."""
    write_bytes(path, "".join(trace_chunks(document, layout)).encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, compressed if its name ends in .gz, without a time or name in the gzip header."""
    if path.suffix == ".gz":
        data = gzip.compress(data, _GZIP_LEVEL, mtime=0)
    path.write_bytes(data)


def read_text_bytes(path: Path) -> bytes:
    """The uncompressed bytes of a file."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def read_document(path: Path) -> TraceDocument:
    """A valid trace file, with the order of its top-level keys and every decimal place of its numbers."""
    whole = json.loads(read_text_bytes(path), parse_float=Decimal)
    keys = list(whole)
    place = keys.index("traceEvents")
    return TraceDocument(
        before={k: whole[k] for k in keys[:place]},
        events=whole["traceEvents"],
        after={k: whole[k] for k in keys[place + 1 :]},
    )


def layout_of(data: bytes) -> Layout:
    """The line breaks of a file's text.

    >>> layout_of(b'{"traceEvents": [{"ph": "X"}]}')
    'compact'
    """
    if b"\n" not in data.strip():
        return "compact"
    return "kineto long" if b'"ph": "X",\n' in data else "kineto"


def _members(members: dict[str, Any]) -> str:
    return ", ".join(f"{_key_text(k)}: {value_text(v)}" for k, v in members.items())


def _long_event_text(event: Event) -> str:
    lines = [f"    {_key_text(k)}: {value_text(v)}" for k, v in event.items() if k != "args"]
    if "args" in event:
        args = ",\n".join(f"      {_key_text(k)}: {value_text(v)}" for k, v in event["args"].items())
        lines.append(f'    "args": {{\n{args}\n    }}')
    return "  {\n" + ",\n".join(lines) + "\n  }"

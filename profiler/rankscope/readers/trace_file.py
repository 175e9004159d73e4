"""One trace file: its events as a table, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

import msgspec

from rankscope.errors import TraceSyntaxError
from rankscope.model.categories import Classifier
from rankscope.model.manifest import MANIFEST_KEY
from rankscope.model.run import Problem
from rankscope.model.table import TraceTable
from rankscope.readers.byte_stream import DEFAULT_MAX_UNPACKED_BYTES, ByteWindow, unpack
from rankscope.readers.cleaning import clean_table
from rankscope.readers.columns import BadEvents, TableBuilder
from rankscope.readers.event_blocks import EventBlocks
from rankscope.readers.json_scan import expect, skip_whitespace, take_value
from rankscope.readers.repair import repair_json

_KEPT_KEYS = frozenset(
    {
        "schemaVersion",
        "deviceProperties",
        "distributedInfo",
        "baseTimeNanoseconds",
        "host_name",
        "cuda_runtime_version",
        "cuda_driver_version",
        "cupti_version",
        "hip_runtime_version",
        "hip_driver_version",
        "roctracer_version",
        "traceName",
        MANIFEST_KEY,
    }
)
_MAX_BASE_NS = 1 << 62


class NotATraceError(Exception):
    """The file is valid, but holds no events array: some other JSON file lies in the directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """What one file holds.

    Attributes:
        name: the file, relative to the run.
        table: its complete events.
        events: rows in the file, kept or not.
        metadata: the decoded top-level keys that rankscope knows.
        problems: what was repaired or left out.
    """

    name: str
    table: TraceTable
    events: int
    metadata: dict[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def read_trace(
    raw: IO[bytes],
    name: str,
    classifier: Classifier,
    *,
    max_unpacked_bytes: int = DEFAULT_MAX_UNPACKED_BYTES,
    on_read: Callable[[int], None] | None = None,
) -> TraceFile:
    """The trace in a file that is open for reading in binary mode, gzip or plain.

    Args:
        raw: the file.
        name: its name for messages.
        classifier: decides what communicates.
        max_unpacked_bytes: stop with an error when the uncompressed text is larger.
        on_read: called with the number of uncompressed bytes of each block read.

    Raises:
        TraceSyntaxError: the text is no trace; its `offset` is the place.
        NotATraceError: it is JSON without events.
    """
    with unpack(raw) as source:
        window = ByteWindow(source, max_bytes=max_unpacked_bytes, on_read=on_read)
        parser = _TraceParser(window, TableBuilder(classifier))
        parser.parse()
    return parser.finish(name)


class _TraceParser:
    """Reads the top level of a trace; the events array goes through `EventBlocks`."""

    def __init__(self, window: ByteWindow, builder: TableBuilder) -> None:
        self._window = window
        self._builder = builder
        self._metadata: dict[str, Any] = {}
        self._repairs: list[tuple[str, int, str]] = []
        self._has_events = False

    def parse(self) -> None:
        window = self._window
        first = skip_whitespace(window)
        if first is None:
            size = window.offset_of(len(window.buffer))
            text = "the file is empty" if size == 0 else f"the file is empty: {size} bytes of whitespace"
            raise TraceSyntaxError(text, offset=0, slug="empty")
        window.position += 1
        if first == ord("["):
            self._read_events(may_end_open=True)
        elif first == ord("{"):
            self._read_object()
        else:
            raise TraceSyntaxError(
                f"expected a JSON object or array, found {_shown(first)}",
                offset=window.offset_of(window.position - 1),
            )
        self._expect_end()

    def _read_object(self) -> None:
        window = self._window
        if skip_whitespace(window) == ord("}"):
            window.position += 1
            return
        while True:
            key = self._take_key()
            expect(window, ord(":"), "after a key")
            if key == "traceEvents" and skip_whitespace(window) == ord("["):
                if self._has_events:
                    raise TraceSyntaxError(
                        "a second traceEvents array in one file", offset=window.offset_of(window.position)
                    )
                window.position += 1
                self._read_events(may_end_open=False)
            else:
                self._take_metadata(key)
            if skip_whitespace(window) == ord("}"):
                window.position += 1
                return
            expect(window, ord(","), "or '}' after a value")

    def _take_key(self) -> str:
        window = self._window
        skip_whitespace(window)
        offset = window.offset_of(window.position)
        text = take_value(window)
        try:
            return msgspec.json.decode(text, type=str)
        except msgspec.MsgspecError as error:
            raise TraceSyntaxError(f"expected a key, found {text[:20]!r}", offset=offset) from error

    def _take_metadata(self, key: str) -> None:
        window = self._window
        offset = window.offset_of(window.position)
        text = take_value(window)
        try:
            value = _decode_metadata(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise TraceSyntaxError(f"the value of {key!r} is not JSON ({error})", offset=offset) from error
        if key in _KEPT_KEYS:
            self._metadata[key] = value

    def _read_events(self, *, may_end_open: bool) -> None:
        self._has_events = True
        blocks = EventBlocks(self._window, self._builder.add_block, may_end_open=may_end_open)
        blocks.read()
        self._repairs += [(note.kind, note.offset, note.message) for note in blocks.repairs.values()]

    def _expect_end(self) -> None:
        window = self._window
        extra = skip_whitespace(window)
        if extra is not None:
            raise TraceSyntaxError(
                f"more text after the end of the trace ({_shown(extra)}): two files may have been joined",
                offset=window.offset_of(window.position),
            )

    def finish(self, name: str) -> TraceFile:
        """The file's contents, after `parse`.

        Raises:
            NotATraceError: there was no events array.
        """
        if not self._has_events:
            raise NotATraceError
        base = self._metadata.get("baseTimeNanoseconds")
        base_ns = base if isinstance(base, int) and abs(base) < _MAX_BASE_NS else 0
        problems = [
            Problem(file=name, offset=offset, kind=kind, message=message)
            for kind, offset, message in self._repairs
        ]
        if base is not None and base_ns != base:
            problems.append(
                Problem(
                    file=name,
                    offset=None,
                    kind="base-time",
                    message=f"baseTimeNanoseconds is {base!r}, not a number of ns; taken as 0",
                )
            )
        problems += _bad_event_problems(name, self._builder.bad)
        table, cleaning_problems = clean_table(self._builder.build(base_ns), name)
        return TraceFile(
            name=name,
            table=table,
            events=self._builder.events,
            metadata=self._metadata,
            problems=(*problems, *cleaning_problems),
        )


def _decode_metadata(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return msgspec.json.decode(repair_json(text).text)


def _bad_event_problems(name: str, bad: BadEvents) -> list[Problem]:
    problems = []
    if bad.without_times:
        problems.append(
            Problem(
                file=name,
                offset=None,
                kind="bad-event",
                message=f"{bad.without_times} event(s) left out whose time is not a number; the first is "
                f"{bad.first_without_times}",
            )
        )
    if bad.negative:
        problems.append(
            Problem(
                file=name,
                offset=None,
                kind="negative-duration",
                message=f"{bad.negative} event(s) left out with a negative duration (still running when "
                f"recording stopped); the first is {bad.first_negative}",
            )
        )
    return problems


def _shown(byte: int) -> str:
    return repr(chr(byte)) if 32 <= byte < 127 else f"byte 0x{byte:02x}"

"""One trace file: its events as a table, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

import msgspec

from rankscope.errors import TraceSyntaxError
from rankscope.model.categories import Classifier
from rankscope.model.manifest import MANIFEST_KEY
from rankscope.model.memory import give_memory_back
from rankscope.model.run import Problem
from rankscope.model.table import TraceTable
from rankscope.readers.byte_stream import DEFAULT_MAX_UNPACKED_BYTES, ByteWindow, unpack
from rankscope.readers.cleaning import clean_table
from rankscope.readers.columns import MAX_TIME_NS, BadEvents, TableBuilder
from rankscope.readers.event_blocks import EventBlocks, RepairNote, note_repairs
from rankscope.readers.event_decoding import syntax_error
from rankscope.readers.json_scan import expect, skip_byte_order_mark, skip_whitespace, take_value
from rankscope.readers.repair import Repair, repair_json
from rankscope.readers.text_parts import Part, PartOfText

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePart:
    """What a part of a file's text holds."""

    builder: TableBuilder
    metadata: dict[str, Any]

    def append(self, part: TracePart) -> None:
        """Take over what the part that follows holds."""
        self.builder.append(part.builder)
        self.metadata.update(part.metadata)

    def finish(self, name: str) -> TraceFile:
        """The file's contents, once all parts were appended to the first."""
        return _finish(name, self.builder, self.metadata, [])


def read_part(
    raw: IO[bytes],
    classifier: Classifier,
    part: Part,
    *,
    max_unpacked_bytes: int = DEFAULT_MAX_UNPACKED_BYTES,
) -> TracePart | None:
    """What a part of a file's text holds; None where the file must be read in one piece.

    That is where the part is no trace by itself, or something in it had to be repaired: only who reads the whole
    text can say where.

    Args:
        raw: the file, open for reading in binary mode, gzip or plain.
        classifier: decides what communicates.
        part: the part to read.
        max_unpacked_bytes: limit of the uncompressed text of the whole file.
    """
    with unpack(raw) as source:
        # A compressed file can be unpacked from its beginning only.
        first_offset = raw.seek(part.first_byte) if source is raw and part.index > 0 else 0
        text = PartOfText(source, part, max_bytes=max_unpacked_bytes, first_offset=first_offset)
        parser = _TraceParser(ByteWindow(text), TableBuilder(classifier))
        try:
            parser.parse()
        except TraceSyntaxError:
            return None
    if part.index < part.count - 1 and not parser.ends_with_events:
        return None  # the cut is not between events, but in what follows them
    return parser.part()


class _TraceParser:
    """Reads the top level of a trace; the events array goes through `EventBlocks`.

    Attributes:
        ends_with_events: whether the events are the last thing in the text.
    """

    def __init__(self, window: ByteWindow, builder: TableBuilder) -> None:
        self._window = window
        self._builder = builder
        self._metadata: dict[str, Any] = {}
        self._repairs: dict[str, RepairNote] = {}
        self._has_events = False
        self.ends_with_events = False

    def parse(self) -> None:
        window = self._window
        skip_byte_order_mark(window)
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
            if key == "traceEvents":
                self._enter_events()
                self._read_events(may_end_open=False)
            else:
                self._take_metadata(key)
            if skip_whitespace(window) == ord("}"):
                window.position += 1
                return
            expect(window, ord(","), "or '}' after a value")

    def _enter_events(self) -> None:
        """Move past the bracket of traceEvents."""
        window = self._window
        fault = None
        if skip_whitespace(window) != ord("["):
            fault = "traceEvents is not an array"
        elif self._has_events:
            fault = "a second traceEvents array in one file"
        if fault is not None:
            raise TraceSyntaxError(fault, offset=window.offset_of(window.position))
        window.position += 1

    def _take_key(self) -> str:
        window = self._window
        skip_whitespace(window)
        offset = window.offset_of(window.position)
        text = take_value(window)
        try:
            return msgspec.json.decode(text, type=str)
        except msgspec.MsgspecError as error:
            place = offset + (syntax_error(error, len(text)).index or 0)
            raise TraceSyntaxError(f"expected a key, found {text[:20]!r}", offset=place) from error

    def _take_metadata(self, key: str) -> None:
        self.ends_with_events = False
        window = self._window
        skip_whitespace(window)
        offset = window.offset_of(window.position)
        text = take_value(window)
        try:
            value, repair = _decode_metadata(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            fault = syntax_error(error, len(text))
            raise TraceSyntaxError(
                f"the value of {key!r} is not JSON: {fault.message}", offset=offset + (fault.index or 0)
            ) from error
        if key in _KEPT_KEYS:
            self._metadata[key] = value
            if repair is not None:
                note_repairs(self._repairs, repair, offset)

    def _read_events(self, *, may_end_open: bool) -> None:
        self._has_events = self.ends_with_events = True
        EventBlocks(self._window, self._builder.add_block, self._repairs, may_end_open=may_end_open).read()

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
        return _finish(name, self._builder, self._metadata, list(self._repairs.values()))

    def part(self) -> TracePart | None:
        """The same, of a part; None without events, or with repairs."""
        if not self._has_events or self._repairs:
            return None
        return TracePart(builder=self._builder, metadata=self._metadata)


def _finish(
    name: str, builder: TableBuilder, metadata: dict[str, Any], repairs: list[RepairNote]
) -> TraceFile:
    base = metadata.get("baseTimeNanoseconds", 0)
    is_time = isinstance(base, int) and not isinstance(base, bool) and abs(base) < MAX_TIME_NS
    problems = [
        Problem(file=name, offset=note.offset, kind=note.kind, message=note.message) for note in repairs
    ]
    if not is_time:
        problems.append(
            Problem(
                file=name,
                offset=None,
                kind="base-time",
                message=f"baseTimeNanoseconds is {base!r}, not a number of ns; taken as 0",
            )
        )
    problems += _bad_event_problems(name, builder.bad)
    give_memory_back()
    table, cleaning_problems = clean_table(builder.build(base if is_time else 0), name)
    give_memory_back()
    return TraceFile(
        name=name,
        table=table,
        events=builder.events,
        metadata=metadata,
        problems=(*problems, *cleaning_problems),
    )


def _decode_metadata(text: bytes) -> tuple[Any, Repair | None]:
    """The value of a text, and its repair if it needed one."""
    try:
        return msgspec.json.decode(text), None
    except msgspec.DecodeError:
        repair = repair_json(text)
        return msgspec.json.decode(repair.text), repair


def _bad_event_problems(name: str, bad: BadEvents) -> list[Problem]:
    problems = []
    if bad.without_times:
        problems.append(
            Problem(
                file=name,
                offset=None,
                kind="bad-event",
                message=f"{bad.without_times} event(s) left out whose time is not a number, or far out of range; "
                f"the first is {bad.first_without_times}",
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

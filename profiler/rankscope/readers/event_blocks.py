"""The events array of a trace, block by block: cut at event boundaries, decoded, repaired where it must be."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from rankscope.errors import TraceSyntaxError
from rankscope.readers.byte_stream import READ_BYTES, ByteWindow
from rankscope.readers.event_decoding import BlockSyntaxError, Event, Number, decode_events, exact_times
from rankscope.readers.json_scan import BOUNDARY, SPACE, end_of_value, skip_whitespace, truncated
from rankscope.readers.repair import Repair, repair_json

_CLOSE, _COMMA = ord("]"), ord(",")
_END_OF_ARRAY = re.compile(rb'\}[ \t\r\n]*(\])[ \t\r\n]*(?:,[ \t\r\n]*"|\}|\Z)')
_BACKWARD_BYTES = 1 << 16
_MAX_BLOCK_BYTES = 256 << 20
_MAX_END_CANDIDATES = 64
_LONGEST_CUT_TOKEN = 16

_REPAIR_TEXT = {
    "control-character": "control characters inside strings",
    "escape": "backslashes that escape nothing",
    "not-a-number": "NaN or Infinity, read as null",
    "surrogate": "escapes that are half of a character, shown as U+FFFD",
    "encoding": "bytes that are not UTF-8, shown as U+FFFD",
}

BlockSink = Callable[[list[Event], Callable[[], list[tuple[Number, Number]]]], None]


@dataclass(slots=True, kw_only=True)
class RepairNote:
    """One kind of repair: byte offset of the first place, and how many places."""

    kind: str
    offset: int
    count: int

    @property
    def message(self) -> str:
        """What was repaired, for a person."""
        return f"repaired {self.count} place(s): {_REPAIR_TEXT[self.kind]}"


def note_repairs(notes: dict[str, RepairNote], repair: Repair, offset: int) -> None:
    """Add to `notes`, kind -> note, what was repaired in a text that starts at a byte offset."""
    for kind, index in repair.faults.items():
        note = notes.setdefault(kind, RepairNote(kind=kind, offset=offset + index, count=0))
        note.count += repair.counts[kind]


class EventBlocks:
    """Reads the events array that starts at the window's position (after its bracket)."""

    def __init__(
        self, window: ByteWindow, sink: BlockSink, repairs: dict[str, RepairNote], *, may_end_open: bool
    ) -> None:
        self._repairs = repairs
        self._window = window
        self._sink = sink
        self._may_end_open = may_end_open

    def read(self) -> None:
        """Decode all events and move past the closing bracket.

        Raises:
            TraceSyntaxError: the text is not an array of events, or ends within it.
        """
        window = self._window
        while True:
            byte = skip_whitespace(window)
            if byte is None:
                if self._may_end_open:
                    return
                raise truncated(window)
            if byte == _CLOSE:
                window.position += 1
                return
            while len(window.buffer) - window.position < READ_BYTES and window.read_more():
                pass
            if self._read_block():
                return

    def _read_block(self) -> bool:
        """Decode up to the last boundary at hand; True if the array ended there."""
        window = self._window
        wanted = READ_BYTES
        while True:
            cut = _last_boundary(window.buffer, window.position)
            if cut is not None and self._try(cut):
                window.position = cut + 1
                return False
            if self._read_to_end_of_array():
                return True
            ended = self._read_exactly() if cut is not None or window.at_end else None
            if ended is not None:
                return ended
            wanted *= 2
            if wanted > _MAX_BLOCK_BYTES:
                raise TraceSyntaxError(
                    "no end of an event within 256 MiB", offset=window.offset_of(window.position)
                )
            while len(window.buffer) - window.position < wanted and window.read_more():
                pass

    def _read_to_end_of_array(self) -> bool:
        """Decode the block if the array ends in it; False, with nothing taken, if not."""
        window = self._window
        # All at once: an iterator that is still alive would keep the buffer from growing.
        candidates = islice(_END_OF_ARRAY.finditer(window.buffer, window.position), _MAX_END_CANDIDATES)
        for end in [match.start(1) for match in candidates]:
            if self._try(end):
                window.position = end + 1
                return True
        return False

    def _try(self, end: int) -> bool:
        """Decode the events before index `end`, repaired if need be; False if that is no array of events."""
        try:
            self._decode(end)
        except BlockSyntaxError:
            return False
        return True

    def _decode(self, end: int) -> None:
        window = self._window
        block = _bracketed(window.buffer, window.position, end)
        try:
            events = decode_events(block)
        except BlockSyntaxError:
            repaired = self._decode_repaired(block)
            if repaired is None:
                raise
            events, block = repaired
        self._sink(events, lambda: exact_times(block))

    def _decode_repaired(self, block: bytes) -> tuple[list[Event], bytes] | None:
        """The events and the repaired text; None if that is not enough to decode it."""
        repair = repair_json(block)
        if not repair.faults:
            return None
        try:
            events = decode_events(repair.text)
        except BlockSyntaxError:
            return None
        note_repairs(self._repairs, repair, self._window.offset_of(self._window.position - 1))
        return events, repair.text

    def _read_exactly(self) -> bool | None:
        """Find the boundaries with the exact scanner; True if the array ended, None if more text is needed.

        The fast way fails where `},{` also stands inside events, at the end of a cut file, and where the
        text is broken; only the last is an error, and its place is what the decoder says.
        """
        window = self._window
        last, ended, position = None, False, window.position
        while position < len(window.buffer):
            end = end_of_value(window.buffer, position, complete=window.at_end)
            if end is None:
                break
            after = _skip(window.buffer, end)
            if after < len(window.buffer) and window.buffer[after] in (_COMMA, _CLOSE):
                last, ended = after, window.buffer[after] == _CLOSE
                position = _skip(window.buffer, after + 1)
                if not ended:
                    continue
            elif after == len(window.buffer) and window.at_end and self._may_end_open:
                return self._read_open_end(after)
            break
        if last is None:
            if self._goes_on():
                return None
            raise self._error()
        self._decode_or_raise(last)
        window.position = last + 1
        return ended

    def _goes_on(self) -> bool:
        """Whether all text at hand is right, the beginning of an event that does not end in it."""
        window = self._window
        if window.at_end:
            return False
        begun = _bracketed(window.buffer, window.position, len(window.buffer))[:-1]
        # The second closes a string that may be open, behind a backslash too: the repair can only then see it.
        return any(_is_right_until_end(begun + closing) for closing in (b"]", b' "]'))

    def _read_open_end(self, end: int) -> bool:
        """The format allows a bare array without its closing bracket."""
        self._decode_or_raise(end)
        self._window.position = end
        return True

    def _decode_or_raise(self, end: int) -> None:
        try:
            self._decode(end)
        except BlockSyntaxError as error:
            raise self._located(error) from error

    def _error(self) -> TraceSyntaxError:
        """Why the rest of the text is no array of events."""
        window = self._window
        try:
            decode_events(_bracketed(window.buffer, window.position, len(window.buffer)))
        except BlockSyntaxError as error:
            if error.index is None or error.index < len(window.buffer) - window.position + 1:
                return self._located(error)
        return truncated(window)

    def _located(self, error: BlockSyntaxError) -> TraceSyntaxError:
        window = self._window
        index = self._start_of_fault() if error.index is None else window.position - 1 + error.index
        offset = window.offset_of(index)
        text = error.message.removeprefix("JSON is malformed: ")
        return TraceSyntaxError(
            f"not JSON at byte offset {offset}: {text}. If several ranks wrote to this path at once, give "
            "each rank a path of its own (rankscope's collector does)",
            offset=offset,
        )

    def _start_of_fault(self) -> int:
        """Index of the first event that cannot be decoded, where the decoder does not name the place."""
        buffer = self._window.buffer
        position = _skip(buffer, self._window.position)
        while position < len(buffer):
            end = end_of_value(buffer, position, complete=self._window.at_end)
            if end is None:
                break
            try:
                decode_events(_bracketed(buffer, position, end))
            except BlockSyntaxError:
                break
            after = _skip(buffer, end)
            if after == len(buffer) or buffer[after] != _COMMA:
                break
            position = _skip(buffer, after + 1)
        return position


def _bracketed(buffer: bytearray, start: int, end: int) -> bytes:
    """Copy of `buffer[start:end]` between brackets: the text of an array, one byte longer at its head."""
    with memoryview(buffer) as view, view[start:end] as part:
        return b"".join((b"[", part, b"]"))


def _is_right_until_end(text: bytes) -> bool:
    """Whether the decoder, after repairs, finds nothing wrong before the last token, which may be cut."""
    repaired = repair_json(text).text
    try:
        decode_events(repaired)
    except BlockSyntaxError as error:
        return error.index is not None and error.index >= len(repaired) - _LONGEST_CUT_TOKEN
    return True


def _skip(buffer: bytearray, position: int) -> int:
    while position < len(buffer) and buffer[position] in SPACE:
        position += 1
    return position


def _last_boundary(buffer: bytearray, start: int) -> int | None:
    """Index of the comma of the last `}, {` from `start` on, or None."""
    end = len(buffer)
    while end > start:
        begin = max(start, end - _BACKWARD_BYTES)
        found = None
        for match in BOUNDARY.finditer(buffer, begin, min(end + 64, len(buffer))):
            found = match
        if found is not None:
            return buffer.index(b",", found.start())
        end = begin
    return None

"""An exact scanner for JSON text that may still be arriving: it finds where values end, and decodes nothing.

It is used for the few kilobytes before and after the events, and to find event boundaries where the fast
way fails; strings are honoured, so a bracket inside a name never counts.
"""

from __future__ import annotations

import re

from rankscope.errors import TraceSyntaxError
from rankscope.readers.byte_stream import ByteWindow

SPACE = b" \t\r\n"
"""What JSON allows between values."""

BOUNDARY = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")
"""Where one event ends and the next begins, mostly: it may stand inside a string or an event too."""

_WHITESPACE = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NEXT_STRUCTURE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("|\\?\Z)|[{}\[\]]', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\]}\[{\":]+")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OPENING = frozenset(b"{[")
_MAX_HEADER_BYTES = 256 << 20


def skip_byte_order_mark(window: ByteWindow) -> None:
    """Move past the mark that some editors and tools put at the head of UTF-8 text.

    Raises:
        TraceSyntaxError: the mark is that of UTF-16 or UTF-32.
    """
    while len(window.buffer) < len(_BYTE_ORDER_MARK) and window.read_more():
        pass
    if window.buffer.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TraceSyntaxError("the text is UTF-16 or UTF-32; JSON is UTF-8: convert the file", offset=0)
    if window.buffer.startswith(_BYTE_ORDER_MARK):
        window.position = len(_BYTE_ORDER_MARK)


def skip_whitespace(window: ByteWindow) -> int | None:
    """Move to the next byte that is not whitespace and return it; None at the end of the text."""
    while True:
        match = _WHITESPACE.match(window.buffer, window.position)
        assert match is not None  # noqa: S101 - the pattern matches the empty text
        window.position = match.end()
        if window.position < len(window.buffer):
            return window.buffer[window.position]
        if not window.read_more():
            return None


def expect(window: ByteWindow, byte: int, what: str) -> None:
    """Move past `byte`, the next one that is not whitespace.

    Raises:
        TraceSyntaxError: another byte stands there, or the text ends.
    """
    found = skip_whitespace(window)
    if found is None:
        raise truncated(window)
    if found != byte:
        raise TraceSyntaxError(
            f"expected {chr(byte)!r} {what}, found {chr(found)!r}", offset=window.offset_of(window.position)
        )
    window.position += 1


def take_value(window: ByteWindow) -> bytes:
    """Move past the JSON value that starts at the next byte and return its text.

    Raises:
        TraceSyntaxError: no value starts there, or the text ends within it.
    """
    if skip_whitespace(window) is None:
        raise truncated(window)
    while True:
        end = end_of_value(window.buffer, window.position, complete=window.at_end)
        if end is not None:
            text = bytes(window.buffer[window.position : end])
            window.position = end
            return text
        if len(window.buffer) - window.position > _MAX_HEADER_BYTES or not window.read_more():
            raise truncated(window)


def end_of_value(buffer: bytes | bytearray, start: int, *, complete: bool) -> int | None:
    """Index after the JSON value that starts at `start`, or None if it does not end in `buffer`.

    Args:
        buffer: the text.
        start: index of the value's first byte.
        complete: whether the text ends with `buffer` (a number could otherwise go on).

    >>> end_of_value(b'{"a": "}"}, 1', 0, complete=True)
    10
    """
    first = buffer[start]
    if first == ord('"'):
        string = _STRING.match(buffer, start)
        return string.end() if string else None
    if first not in _OPENING:
        scalar = _SCALAR.match(buffer, start)
        if scalar is None:
            return start + 1  # a stray byte: the decoder will name it
        return scalar.end() if scalar.end() < len(buffer) or complete else None
    depth = 0
    for token in _NEXT_STRUCTURE.finditer(buffer, start):
        byte = buffer[token.start()]
        if byte == ord('"'):
            if token.group(1) != b'"':
                return None
        elif byte in _OPENING:
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def truncated(window: ByteWindow) -> TraceSyntaxError:
    """The error of a text that ends before it is complete, with the place where it ends."""
    return TraceSyntaxError(
        "the text ends in the middle of the trace: the process was killed or the disk was full while the "
        "file was written",
        offset=window.offset_of(len(window.buffer)),
        slug="truncated",
    )

"""The text of one trace in parts that are traces of their own, so that several processes can decode one file.

Cuts are made between events, by the same rule in every process: no process needs to hear from another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from rankscope.errors import TraceSyntaxError
from rankscope.readers.byte_stream import READ_BYTES, ReadsBytes, is_packed
from rankscope.readers.json_scan import BOUNDARY, SPACE

_OPENING, _CLOSING = b'{"traceEvents":[', b"]}"
_GZIP_SIZE_BYTES = 4

TEXT_PER_GZIP_BYTE = 12
"""Bytes of text that a byte of a compressed trace holds, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of `count` parts of a text of about `size_bytes`."""

    index: int
    count: int
    size_bytes: int

    @property
    def first_byte(self) -> int:
        """Offset from which on it begins, at the next boundary of events."""
        return self.index * self.size_bytes // self.count

    @property
    def next_first_byte(self) -> int:
        """Offset from which on the next part begins."""
        return (self.index + 1) * self.size_bytes // self.count


class PartOfText:
    """Reads one part of a trace as a whole trace: the first has what precedes the events, the last what follows.

    A cut is the first `},{` at or after a part's first byte. In a text that is cut elsewhere by it, inside a
    string or an argument for one, brackets or quotes do not match: reading the part fails, and the text has to be
    read in one piece.

    Args:
        source: the text.
        part: the part.
        max_bytes: limit of the whole text.
        first_offset: offset in the text at which the source stands, not beyond the first byte of the part.
    """

    def __init__(self, source: ReadsBytes, part: Part, *, max_bytes: int, first_offset: int = 0) -> None:
        self._pieces = _part_of_text(_CutText(source, max_bytes, first_offset), part)

    def read(self, _size: int = -1, /) -> bytes:
        """The next bytes, b"" at the end.

        Raises:
            TraceSyntaxError: the whole text is larger than allowed.
        """
        return next((piece for piece in self._pieces if piece), b"")


def unpacked_size(raw: IO[bytes]) -> int:
    """Bytes of a local file's text, about: what gzip keeps at the end of a file is the size modulo 4 GiB.

    Args:
        raw: the file, at its beginning, where it is left.
    """
    stored = os.fstat(raw.fileno()).st_size
    if not is_packed(raw):
        return stored
    raw.seek(max(stored - _GZIP_SIZE_BYTES, 0))
    modulo = int.from_bytes(raw.read(_GZIP_SIZE_BYTES), "little")
    raw.seek(0)
    wraps = max(round((stored * TEXT_PER_GZIP_BYTE - modulo) / (1 << 32)), 0)
    return modulo + (wraps << 32)


def _part_of_text(text: _CutText, part: Part) -> Iterator[bytes]:
    if part.index > 0:
        for _ in text.up_to_cut(part.first_byte):
            pass
        yield _OPENING
        if not text.is_at_cut:  # the text is shorter than was thought: the part before had all of it
            yield _CLOSING
            return
    if part.index == part.count - 1:
        yield from text.rest()
        return
    if text.cut_offset < part.next_first_byte:
        yield from text.up_to_cut(part.next_first_byte)
    # Else an event fills the whole part, and the next part begins where this one does.
    if text.is_at_cut:
        yield _CLOSING


class _CutText:
    """A text that is given out up to a cut, and on from there.

    Attributes:
        is_at_cut: whether the last `up_to_cut` found one, and did not come to the end of the text.
        cut_offset: offset of the last cut; -1 before any.
    """

    def __init__(self, source: ReadsBytes, max_bytes: int, offset: int) -> None:
        self.is_at_cut = False
        self.cut_offset = -1
        self._source = source
        self._max_bytes = max_bytes
        self._held = b""
        self._offset = offset  # of what is held

    def up_to_cut(self, target: int) -> Iterator[bytes]:
        """The text up to the first boundary at or after an offset; the comma is left out."""
        while True:
            boundary = BOUNDARY.search(self._held, max(target - self._offset, 0))
            if boundary is not None:
                comma = self._held.index(b",", boundary.start())
                self.cut_offset = self._offset + boundary.start()
                yield self._take(comma)
                self._take(1)
                self.is_at_cut = True
                return
            yield self._take(_before_half_boundary(self._held))
            if not self._read():
                self.is_at_cut = False
                yield self._take(len(self._held))
                return

    def rest(self) -> Iterator[bytes]:
        """All that is left."""
        yield self._take(len(self._held))
        while self._read():
            yield self._take(len(self._held))

    def _take(self, length: int) -> bytes:
        taken, self._held = self._held[:length], self._held[length:]
        self._offset += length
        return taken

    def _read(self) -> bool:
        block = self._source.read(READ_BYTES)
        self._held += block
        size = self._offset + len(self._held)
        if size > self._max_bytes:
            raise TraceSyntaxError("the size limit is passed", offset=size, slug="size-limit")
        return bool(block)


def _before_half_boundary(text: bytes) -> int:
    """Index before a `}` or `},` that ends the text: the boundary may go on in what is read next."""
    end = text.rstrip(SPACE)
    end = end.removesuffix(b",").rstrip(SPACE)
    return len(end) - 1 if end.endswith(b"}") else len(text)

"""Trace files as a stream of uncompressed bytes, with limits, and a sliding window over it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Protocol

from isal import igzip, isal_zlib

from rankscope.errors import TraceSyntaxError
from rankscope.units import format_size

READ_BYTES = 2 << 20
"""Bytes read at a time: large enough that the cost per block vanishes, small against the memory budget."""

DEFAULT_MAX_UNPACKED_BYTES = 64 << 30

_GZIP_MAGIC = b"\x1f\x8b"
_TRUNCATED_GZIP_ERRORS = (EOFError,)
_BROKEN_GZIP_ERRORS: tuple[Any, ...] = (igzip.BadGzipFile, zlib.error, isal_zlib.error)


class ReadsBytes(Protocol):
    """Anything with `read(size)`, a file opened for reading in binary mode for one."""

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes, b"" at the end."""
        ...


def is_packed(raw: IO[bytes]) -> bool:
    """Whether a file is gzip, told by its first bytes and not by its name; it is left at its beginning."""
    magic = raw.read(1) + raw.read(1)  # a pipe or a remote file may give fewer bytes than asked for
    raw.seek(0)
    return magic == _GZIP_MAGIC


@contextmanager
def unpack(raw: IO[bytes]) -> Iterator[ReadsBytes]:
    """Uncompressed bytes of a file that stands at its beginning, gzip or not."""
    if not is_packed(raw):
        yield raw
        return
    opener: Any = igzip.IGzipFile  # isal ships no types for it
    unpacked: IO[bytes] = opener(fileobj=raw, mode="rb")
    try:
        yield unpacked
    finally:
        unpacked.close()


class ByteWindow:
    """A window that slides over a byte stream; positions inside are indices into `buffer`.

    Attributes:
        buffer: the bytes at hand; consumed ones are dropped when more are read.
        position: index of the next byte to look at.
        at_end: True once the stream has ended.
    """

    def __init__(
        self,
        source: ReadsBytes,
        *,
        max_bytes: int = DEFAULT_MAX_UNPACKED_BYTES,
        on_read: Callable[[int], None] | None = None,
        read_bytes: int = READ_BYTES,
    ) -> None:
        self.buffer = bytearray()
        self.position = 0
        self.at_end = False
        self._source = source
        self._dropped = 0
        self._max_bytes = max_bytes
        self._on_read = on_read
        self._read_bytes = read_bytes

    def offset_of(self, position: int) -> int:
        """Byte offset in the whole uncompressed text of an index into the buffer."""
        return self._dropped + position

    def read_more(self) -> bool:
        """Append one block; False at the end of the stream.

        Raises:
            TraceSyntaxError: the compressed data is broken or ends early, or the text is larger than
                allowed.
        """
        if self.at_end:
            return False
        if self.position:
            del self.buffer[: self.position]
            self._dropped += self.position
            self.position = 0
        block = self._read_block()
        if not block:
            self.at_end = True
            return False
        self.buffer += block
        if self.offset_of(len(self.buffer)) > self._max_bytes:
            raise TraceSyntaxError(
                f"the size limit of {format_size(self._max_bytes)} of unpacked text is passed; raise it with "
                "--max-unpacked if the file is to be trusted",
                offset=self.offset_of(len(self.buffer)),
                slug="size-limit",
            )
        if self._on_read is not None:
            self._on_read(len(block))
        return True

    def _read_block(self) -> bytes:
        try:
            return self._source.read(self._read_bytes)
        except _TRUNCATED_GZIP_ERRORS as error:
            raise TraceSyntaxError(
                "the gzip data ends early: the file was cut while it was written or copied",
                offset=self.offset_of(len(self.buffer)),
                slug="truncated",
            ) from error
        except _BROKEN_GZIP_ERRORS as error:
            raise TraceSyntaxError(
                f"the gzip data is damaged ({error})",
                offset=self.offset_of(len(self.buffer)),
                slug="damaged-gzip",
            ) from error

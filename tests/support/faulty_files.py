"""Files that fail while they are read: a fault injector for whatever opens trace sources."""

from __future__ import annotations

import errno
import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

from rankscope.readers.discovery import TraceSource


class FaultyFile(io.RawIOBase):
    """A file that gives at most `piece` bytes at a time, waits before each, and fails at byte `fails_at`."""

    def __init__(
        self, data: bytes, *, piece: int = 1 << 30, wait_s: float = 0.0, fails_at: int | None = None
    ) -> None:
        self._data = io.BytesIO(data)
        self._piece, self._wait_s, self._fails_at = piece, wait_s, fails_at

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        time.sleep(self._wait_s)
        if self._fails_at is not None and self._data.tell() + self._piece > self._fails_at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        piece = self._data.read(min(len(buffer), self._piece))
        buffer[: len(piece)] = piece
        return len(piece)

    def cut(self, size: int) -> None:
        """Lose all bytes beyond `size`, as if another process had cut the file."""
        self._data.truncate(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._data.seek(offset, whence)

    def tell(self) -> int:
        return self._data.tell()


@contextmanager
def opened_as(make: Callable[[Path], IO[bytes]], *, only: str) -> Iterator[None]:
    """Inside, the source named `only` is opened by `make`, the others as ever."""
    honest = TraceSource.open

    def open_source(self: TraceSource) -> object:
        return make(Path(self.location)) if self.name == only else honest(self)

    with patch.object(TraceSource, "open", open_source):
        yield

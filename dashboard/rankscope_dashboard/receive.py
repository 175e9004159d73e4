"""Request bodies onto the disk: in blocks, within limits, never in memory as a whole."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
from anyio import to_thread
from starlette.requests import ClientDisconnect, Request

from rankscope.units import format_size
from rankscope_dashboard.limits import Limits
from rankscope_dashboard.refusal import RefusalError

BLOCK_BYTES = 1 << 18


def check_length(request: Request, limit: int) -> None:
    """Refuse a request by its declared length, before a byte of its body is read.

    Raises:
        RefusalError: it is longer than `limit`, or its length is no number.
    """
    text = request.headers.get("content-length")
    if text is None:
        return
    if not (text.isascii() and text.isdigit()):
        raise RefusalError(400, "bad-length", "Content-Length is no number of bytes")
    if int(text) > limit:
        raise too_large(int(text), limit)


def too_large(size_bytes: int, limit: int) -> RefusalError:
    """The refusal of a body of at least so many bytes."""
    return RefusalError(
        413,
        "too-large",
        f"{format_size(size_bytes)} is more than the {format_size(limit)} that this server takes; upload fewer "
        "steps or ranks, or raise the server's limit",
        limit_bytes=limit,
    )


async def body_blocks(request: Request, limits: Limits, limit: int) -> AsyncIterator[bytes]:
    """The body in blocks of about 256 KiB.

    Raises:
        RefusalError: it is longer than `limit` or arrives too slowly; what came before has been yielded.
        ClientDisconnect: the client went away.
    """
    stream = request.stream()
    total, is_open = 0, True
    while is_open:
        block, fault = bytearray(), None
        try:
            with anyio.fail_after(limits.block_seconds):
                while is_open and len(block) < BLOCK_BYTES:
                    chunk = await anext(stream, None)
                    is_open = chunk is not None
                    block += chunk or b""
        except (TimeoutError, ClientDisconnect) as error:
            fault = error
        total += len(block)
        if total > limit:
            raise too_large(total, limit)
        if block:
            yield bytes(block)
        if isinstance(fault, ClientDisconnect):
            raise fault
        if fault is not None:
            raise RefusalError(
                408,
                "too-slow",
                f"fewer than {format_size(BLOCK_BYTES)} arrived in {limits.block_seconds:.0f} s; what arrived is kept, "
                "go on from there",
            )


class SpoolFile:
    """A file that grows by blocks."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path = path
        self.size_bytes = offset

    async def __aenter__(self) -> SpoolFile:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        self._handle = await to_thread.run_sync(lambda: os.open(self._path, flags, 0o600))
        os.ftruncate(self._handle, self.size_bytes)
        os.lseek(self._handle, self.size_bytes, os.SEEK_SET)
        return self

    async def __aexit__(self, *_error: object) -> None:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._close)

    async def write(self, block: bytes) -> None:
        """Append a block."""
        await to_thread.run_sync(self.write_now, block)

    def write_now(self, block: bytes) -> None:
        """Append a block, from a thread."""
        rest = memoryview(block)
        while rest:
            rest = rest[os.write(self._handle, rest) :]
        self.size_bytes += len(block)

    def _close(self) -> None:
        os.fsync(self._handle)
        os.close(self._handle)

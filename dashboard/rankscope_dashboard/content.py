"""What a file is, by its first bytes and never by its name."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Literal

Kind = Literal["json", "tar", "zip", "empty", "unknown"]

_HEAD_BYTES = 4096
_TAR_MAGIC = slice(257, 262)


def kind_of(path: Path) -> Kind:
    """What the file holds once any gzip round it is taken off; "empty" for nothing at all."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        return "empty"
    if is_gzip(head):
        # A damaged one counts as a trace: the reader says what is wrong with it, and where.
        head = _unpack_head(head)
        if not head:
            return "json"
    return _kind_of_plain(head)


def is_gzip(head: bytes) -> bool:
    """Whether these are the first bytes of gzip data."""
    return head.startswith(b"\x1f\x8b")


def _unpack_head(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, _HEAD_BYTES)
    except zlib.error:
        return b""


def _kind_of_plain(head: bytes) -> Kind:
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head[_TAR_MAGIC] == b"ustar":
        return "tar"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "json" if text[:1] in (b"{", b"[", b"") else "unknown"

"""Makes a large trace file by repeating the events of a real one in time.

Text is streamed: a chunk of the source is read, its times and ids are rewritten, and it is written out.
Nothing is parsed, so that the result keeps the line breaks and oddities of the source.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from rankscope.errors import InputError

_CHUNK_BYTES = 1 << 20
_TAIL_BYTES = 1 << 20
_ARRAY_START = re.compile(rb'"traceEvents"\s*:\s*\[')
_EVENTS_END = re.compile(rb"[}\[]\s*\](?=\s*[,}])")
_NUMBER = re.compile(
    rb'("ts": ?|"dur": ?|"External id": ?|"correlation": ?|"id": ?|"Ev Idx": ?|"Sequence number": ?|"Seq": ?'
    rb"|ProfilerStep#)(\d+)"
)
_TIME, _DURATION = b'"ts":', b'"dur":'
_US_PER_MS = 1_000
_NS_PER_US = 1_000


def repeat_in_time(source: Path, destination: Path, *, times: int) -> int:
    """Write a trace whose events are those of `source`, `times` over, each time later.

    Times move by a whole period, and so do ids (External id, correlation, flow id, Ev Idx, sequence numbers)
    and step numbers, so that no id occurs in two repeats. Everything outside traceEvents stays as it is.

    Args:
        source: a trace file, .gz or not.
        destination: the file to write; compressed if its name ends in .gz.
        times: number of repeats, at least 1; 1 copies.

    Returns:
        The period in ns: repeat k holds every event k periods later.

    Raises:
        InputError: the file holds no traceEvents array, or its end is not found.
    """
    head, tail, size = _frame(source)
    largest, earliest_us = _scan(source, len(head), size)
    period_us = largest.get(_TIME, 0) - earliest_us + largest.get(_DURATION, 0) + _US_PER_MS
    period_us -= period_us % -_US_PER_MS
    with _open(destination, "wb") as out:
        out.write(head)
        for repeat in range(times):
            out.write(b"," if repeat else b"")
            for chunk in _event_chunks(source, len(head), size):
                out.write(chunk if repeat == 0 else _moved(chunk, repeat, largest, period_us))
        out.write(tail)
    return period_us * _NS_PER_US


def _moved(chunk: bytes, repeat: int, largest: dict[bytes, int], period_us: int) -> bytes:
    shifts = {key: repeat * (most + 1) for key, most in largest.items()}
    shifts[_TIME], shifts[_DURATION] = repeat * period_us, 0

    def rewrite(found: re.Match[bytes]) -> bytes:
        prefix = found[1]
        shift = shifts[prefix.rstrip()]
        return b"%b%d" % (prefix, int(found[2]) + shift) if shift else found[0]

    return _NUMBER.sub(rewrite, chunk)


def _scan(source: Path, first: int, size: int) -> tuple[dict[bytes, int], int]:
    """Largest number after each key, and the earliest time, in us."""
    largest: dict[bytes, int] = {}
    earliest: int | None = None
    for chunk in _event_chunks(source, first, size):
        for found in _NUMBER.finditer(chunk):
            key, number = found[1].rstrip(), int(found[2])
            if number > largest.get(key, -1):
                largest[key] = number
            # Metadata rows of some releases stand at 0, which is no time of the run.
            if key == _TIME and number and (earliest is None or number < earliest):
                earliest = number
    return largest, earliest or 0


def _frame(source: Path) -> tuple[bytes, bytes, int]:
    """What stands before the events, what stands after them, and how many bytes the events take."""
    with _open(source, "rb") as stream:
        head = stream.read(_TAIL_BYTES)
        start = _ARRAY_START.search(head)
        if start is None:
            raise InputError(f"{source}: no traceEvents array in the first {_TAIL_BYTES} bytes")
        last, total = head[start.end() :], len(head)
        while chunk := stream.read(_CHUNK_BYTES):
            total += len(chunk)
            last = (last + chunk)[-_TAIL_BYTES:]
    tail = _tail(source, last)
    return head[: start.end()], tail, total - start.end() - len(tail)


def _tail(source: Path, last: bytes) -> bytes:
    """From the bracket that closes traceEvents: the first after which only top-level keys follow."""
    for bracket in _EVENTS_END.finditer(last):
        if _are_members(last[bracket.end() :].lstrip()):
            return last[bracket.end() - 1 :]
    raise InputError(f"{source}: the end of traceEvents is not in the last {_TAIL_BYTES} bytes")


def _are_members(rest: bytes) -> bool:
    try:
        json.loads(b"{" + rest.removeprefix(b","))
    except ValueError:
        return False
    return True


def _event_chunks(source: Path, first: int, size: int) -> Iterator[bytes]:
    """The text of the events, cut after commas, so that no number and no key is torn apart."""
    with _open(source, "rb") as stream:
        stream.read(first)
        left, held = size, b""
        while left > 0:
            read = stream.read(min(_CHUNK_BYTES, left))
            if not read:
                break
            left -= len(read)
            chunk = held + read
            cut = chunk.rfind(b",") + 1 if left else len(chunk)
            held = chunk[cut:]
            yield chunk[:cut]


def _open(path: Path, mode: str) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, mode))
    return cast("IO[bytes]", path.open(mode))

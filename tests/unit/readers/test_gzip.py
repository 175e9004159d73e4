"""Compressed files: told apart by their bytes, and every way in which they are broken."""

from __future__ import annotations

import gzip
import io

import pytest

from rankscope.errors import TraceSyntaxError
from rankscope.model.categories import Classifier
from rankscope.readers.trace_file import read_trace
from support.reading import columns_of, read_text
from support.trace_text import kernel, trace_text

TEXT = trace_text([kernel(f"k{i}", i, 1) for i in range(40)])
PACKED = gzip.compress(TEXT.encode(), mtime=0)


def fault_of(stored: bytes, *, block_bytes: int | None = None) -> TraceSyntaxError:
    with pytest.raises(TraceSyntaxError) as caught:
        read_text(stored, block_bytes=block_bytes)
    assert caught.value.offset is not None
    return caught.value


@pytest.mark.parametrize("block_bytes", [None, 1, 17, 96])
def test_gzip_is_read_as_what_it_holds(block_bytes: int | None) -> None:
    """Whatever the file is called."""
    packed = read_text(PACKED, name="trace.json", block_bytes=block_bytes)
    plain = read_text(TEXT, name="trace.json.gz")
    assert columns_of(packed.table) == columns_of(plain.table)


def test_members_one_after_another_are_one_text() -> None:
    middle = len(TEXT) // 2
    stored = (
        gzip.compress(TEXT[:middle].encode()) + gzip.compress(b"") + gzip.compress(TEXT[middle:].encode())
    )
    assert columns_of(read_text(stored).table) == columns_of(read_text(TEXT).table)


def test_two_whole_traces_in_two_members_are_refused() -> None:
    assert fault_of(PACKED + PACKED).offset == len(TEXT)


@pytest.mark.parametrize(
    "stored", [b"", gzip.compress(b""), gzip.compress(b" \n")], ids=["no byte", "no text", "only space"]
)
def test_nothing_inside(stored: bytes) -> None:
    fault = fault_of(stored)
    assert (fault.slug, fault.offset) == ("empty", 0)


@pytest.mark.parametrize("block_bytes", [None, 50])
def test_cut_anywhere(block_bytes: int | None) -> None:
    """Down to the last byte of the checksum; a gzip that is cut is never taken for a whole one."""
    for length in range(2, len(PACKED)):
        assert fault_of(PACKED[:length], block_bytes=block_bytes).slug == "truncated", length


def test_offset_of_a_cut_counts_in_the_unpacked_text() -> None:
    """At or before the place where the text ends: what a library had unpacked but not handed out is not counted."""
    fault = fault_of(PACKED[:-9], block_bytes=16)
    assert fault.offset is not None
    assert 0 <= fault.offset <= len(TEXT)


def test_damaged_anywhere() -> None:
    """One byte wrong: a problem, or the right rows (some bytes of the header mean nothing), never others."""
    right = columns_of(read_text(TEXT).table)
    kept = 0
    for index in range(2, len(PACKED)):
        damaged = bytearray(PACKED)
        damaged[index] ^= 0x55
        try:
            file = read_text(bytes(damaged))
        except TraceSyntaxError:
            continue
        assert columns_of(file.table) == right, index
        kept += 1
    assert kept <= 8  # time, flags and system in the header


def test_damage_is_called_damage() -> None:
    damaged = bytearray(PACKED)
    damaged[-8] ^= 0xFF  # the checksum
    assert fault_of(bytes(damaged)).slug == "damaged-gzip"


def test_garbage_behind_the_last_member() -> None:
    assert fault_of(PACKED + b"garbage, not gzip").slug in ("damaged-gzip", "syntax")


def test_size_limit_stops_a_bomb() -> None:
    """50 MB of blanks pack into 50 kB; with a limit of 1 MB reading ends there, and says how to go on."""
    bomb = gzip.compress(b" " * 50_000_000, compresslevel=1)
    read: list[int] = []
    with pytest.raises(TraceSyntaxError) as caught:
        read_trace(
            io.BytesIO(bomb), "bomb.json.gz", Classifier(), max_unpacked_bytes=1_000_000, on_read=read.append
        )
    assert caught.value.slug == "size-limit"
    assert "--max-unpacked" in str(caught.value)
    assert sum(read) < 5_000_000


def test_size_limit_lets_pass_what_fits() -> None:
    stored = TEXT.encode()
    file = read_trace(io.BytesIO(stored), "t", Classifier(), max_unpacked_bytes=len(stored))
    assert len(file.table) == 40
    with pytest.raises(TraceSyntaxError):
        read_trace(io.BytesIO(stored), "t", Classifier(), max_unpacked_bytes=len(stored) - 1)

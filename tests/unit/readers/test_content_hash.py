"""A file's hash is worked out once, and anew after anything that may have changed the file."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from rankscope.readers import content_hash as module
from rankscope.readers.cache_folder import CacheFolder
from rankscope.readers.content_hash import content_hash

CLOCK_TICK_SECONDS = 0.02
"""More than file systems' clocks stand still: 4 ms where the kernel ticks at 250 Hz."""


@pytest.fixture
def folder(tmp_path: Path) -> CacheFolder:
    return CacheFolder(tmp_path / "cache")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "rank0.json"
    path.write_bytes(b"old text")
    return path


def hash_of(path: Path, folder: CacheFolder, seconds_later: float = 60.0) -> tuple[str, bool]:
    """The hash, and whether the file was read for it, as if looked at some seconds from now."""
    with (
        path.open("rb") as file,
        patch.object(module, "_hash_all", wraps=module._hash_all) as read,
        patch.object(time, "time_ns", return_value=time.time_ns() + int(seconds_later * 1e9)),
    ):
        return content_hash(file, folder).hex(), read.called


def sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def test_the_file_is_read_once(trace: Path, folder: CacheFolder) -> None:
    assert hash_of(trace, folder) == (sha256(b"old text"), True)
    assert hash_of(trace, folder) == (sha256(b"old text"), False)


def test_a_file_that_was_just_written_is_read_again(trace: Path, folder: CacheFolder) -> None:
    assert hash_of(trace, folder, seconds_later=0) == (sha256(b"old text"), True)
    assert hash_of(trace, folder, seconds_later=0) == (sha256(b"old text"), True)


def write_in_place(trace: Path) -> None:
    trace.write_bytes(b"new text")


def write_and_set_the_time_back(trace: Path) -> None:
    before = trace.stat()
    trace.write_bytes(b"new text")
    os.utime(trace, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_by_another(trace: Path) -> None:
    other = trace.with_suffix(".new")
    other.write_bytes(b"new text")
    before = trace.stat()
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(trace)


@pytest.mark.parametrize("change", [write_in_place, write_and_set_the_time_back, replace_by_another])
def test_what_was_changed_is_read_again(
    trace: Path, folder: CacheFolder, change: Callable[[Path], None]
) -> None:
    """Of the same size, and with the same times where a program can set them."""
    hash_of(trace, folder)
    time.sleep(CLOCK_TICK_SECONDS)
    change(trace)
    assert hash_of(trace, folder) == (sha256(b"new text"), True)


def test_a_file_that_is_written_to_meanwhile_is_read_again(trace: Path, folder: CacheFolder) -> None:
    def hash_and_write(file: object) -> bytes:
        time.sleep(CLOCK_TICK_SECONDS)
        trace.write_bytes(b"new text")
        return b"of neither"

    with patch.object(module, "_hash_all", side_effect=hash_and_write), trace.open("rb") as file:
        content_hash(file, folder)
    assert hash_of(trace, folder) == (sha256(b"new text"), True)

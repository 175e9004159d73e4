"""What several processes are given to do, and what comes of files that are read in parts."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from unittest.mock import Mock, patch

import pytest

from rankscope.pipeline import ReadOptions, read_run
from rankscope.readers import one_file, side_by_side
from rankscope.readers.discovery import find_traces
from rankscope.readers.side_by_side import _Results, _shares
from support.killing import fail_in_workers
from support.reading import columns_of
from support.trace_text import kernel, trace_text

PART_BYTES = 1_000
TEXT = trace_text([kernel("gemm", i, 1) for i in range(160)]).encode()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "_SMALLEST_PART_BYTES", PART_BYTES)
    monkeypatch.setattr(one_file, "SMALLEST_STORED_BYTES", 0)


def planned(folder: Path, processes: int, options: ReadOptions | None = None) -> dict[str, int]:
    """Number of tasks of each file, the largest file first."""
    results, sources = _Results(options or ReadOptions()), find_traces(folder)
    return {
        source.name: len(results.plan(source, share, last))
        for source, share, last in _shares(sources, processes)
    }


def write(folder: Path, **sizes: int) -> None:
    for name, size in sizes.items():
        (folder / f"{name}.json").write_bytes(TEXT[:size])


def test_those_that_are_read_last_are_split(tmp_path: Path) -> None:
    """Eight alike for two: a quarter of a process's work each, so the fourth ends and the fifth begins at half.

    A process's work is eight tasks: two to a file.
    """
    write(tmp_path, **{f"rank{i}": 8_000 for i in range(8)})
    assert planned(tmp_path, 2) == {f"rank{i}.json": 2 if i in (3, 4) else 1 for i in range(8)}


def test_one_that_is_more_than_a_process_can_take_is_split(tmp_path: Path) -> None:
    """10,000 of 12,000 bytes for four: 3.3 processes' work, in 27 tasks, but not smaller than 1,000 bytes each."""
    write(tmp_path, rank0=10_000, rank1=1_000, rank2=1_000)
    assert planned(tmp_path, 4) == {"rank0.json": 10, "rank1.json": 1, "rank2.json": 1}


def test_a_compressed_file_has_as_many_parts_as_processes(tmp_path: Path) -> None:
    """Each must unpack what precedes its part."""
    (tmp_path / "rank0.json.gz").write_bytes(gzip.compress(TEXT))
    assert planned(tmp_path, 3) == {"rank0.json.gz": 3}


def test_small_files_are_not_split(tmp_path: Path) -> None:
    write(tmp_path, rank0=1_900)
    assert planned(tmp_path, 4) == {"rank0.json": 1}


def test_what_is_in_the_cache_is_not_split(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rank0.json").write_bytes(TEXT)
    options = ReadOptions(cache=tmp_path / "cache")
    assert planned(tmp_path / "run", 2, options) == {"rank0.json": 16}
    read_run(tmp_path / "run", options)
    assert planned(tmp_path / "run", 2, options) == {"rank0.json": 1}


def test_a_file_that_was_read_in_parts_is_kept(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rank0.json").write_bytes(TEXT)
    in_parts = read_run(tmp_path / "run", ReadOptions(cache=tmp_path / "cache", processes=2))
    with patch.object(one_file, "read_trace", side_effect=AssertionError("read again")):
        kept = read_run(tmp_path / "run", ReadOptions(cache=tmp_path / "cache"))
    assert columns_of(kept.windows[0].table) == columns_of(in_parts.windows[0].table)
    assert len(kept.windows[0].table) == 160


def test_without_a_place_for_temporary_files_one_process_reads_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, rank0=len(TEXT), rank1=len(TEXT))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert [len(window.table) for window in read_run(tmp_path, ReadOptions(processes=2)).windows] == [
        160,
        160,
    ]


def test_a_fault_of_ours_in_a_worker_is_raised_here_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, rank0=len(TEXT), rank1=100)
    monkeypatch.setattr(side_by_side, "_do", fail_in_workers)
    monkeypatch.setattr(side_by_side, "read_one", Mock(side_effect=ZeroDivisionError))
    with pytest.raises(ZeroDivisionError):
        read_run(tmp_path, ReadOptions(processes=2))
    assert (
        capfd.readouterr().err.count("ZeroDivisionError") == 2
    )  # in the first worker, and in the one that tries again

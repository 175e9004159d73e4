"""Tables kept on disk: the same as read, never stale, never in the way."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from unittest.mock import patch

import pytest

from rankscope.readers import one_file
from rankscope.readers.cache import TableCache
from rankscope.readers.cache_folder import code_hash, default_cache_directory
from rankscope.readers.run_reader import ReadOptions, read_run
from rankscope.readers.trace_file import TraceFile, read_trace
from support.reading import columns_of, read_text
from support.trace_text import Bare, collective, job, kernel, launch, nccl, trace_text, write_ranks

EVENTS = [
    launch(1, 0),
    kernel("größe ▲", 1, 5, correlation=1),
    nccl(2, 9, args=collective("allreduce", 8, 8, group="0", ranks="[0, 1]", size=2, seq=3)),
    kernel("a", 7, Bare("NaN")),
]


def trace() -> TraceFile:
    return read_text(trace_text(EVENTS, {**job(0, 2), "traceName": "x"}), name="a.json")


@pytest.fixture
def cache(tmp_path: Path) -> TableCache:
    return TableCache(tmp_path / "cache")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of two ranks, whose files count as large ones."""
    monkeypatch.setattr(one_file, "SMALLEST_STORED_BYTES", 0)
    folder = tmp_path / "run"
    folder.mkdir()
    return write_ranks(folder, {0: EVENTS, 1: EVENTS})


def entries(cache: TableCache) -> list[Path]:
    return sorted(cache.directory.iterdir())


def test_an_entry_is_the_table_that_was_read(cache: TableCache) -> None:
    cache.put("k", trace())
    found = cache.get("k", "b.json")
    assert found is not None
    assert columns_of(found.table) == columns_of(trace().table)
    assert (found.name, found.events, found.metadata) == ("b.json", 4, trace().metadata)
    assert [(p.file, p.kind, p.offset) for p in found.problems] == [
        ("b.json", p.kind, p.offset) for p in trace().problems
    ]


def test_a_file_without_events(cache: TableCache) -> None:
    cache.put("k", read_text(trace_text([])))
    found = cache.get("k", "b.json")
    assert found is not None
    assert len(found.table) == 0


def test_columns_can_be_written_to(cache: TableCache) -> None:
    cache.put("k", trace())
    found = cache.get("k", "b.json")
    assert found is not None
    found.table.device[:] = 3


def test_a_second_reading_parses_nothing_and_gives_the_same_run(cache: TableCache, run: Path) -> None:
    options = ReadOptions(cache=cache.directory)
    first = read_run(run, options)
    with patch.object(one_file, "read_trace", side_effect=AssertionError("read again")):
        second = read_run(run, options)
    assert second.problems == first.problems
    assert [w.file for w in second.windows] == ["rank0.json", "rank1.json"]
    assert [columns_of(w.table) for w in second.windows] == [columns_of(w.table) for w in first.windows]


def test_a_changed_file_is_read_again_even_where_its_time_and_size_stay(cache: TableCache, run: Path) -> None:
    options = ReadOptions(cache=cache.directory)
    read_run(run, options)
    path = run / "rank0.json"
    times = path.stat()
    path.write_text(path.read_text().replace('"dur":5', '"dur":6'))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    durations = [w.table.duration_ns.max() for w in read_run(run, options).windows]
    assert durations == [9_000, 9_000]
    assert 6_000 in read_run(run, options).windows[0].table.duration_ns
    assert 5_000 in read_run(run, options).windows[1].table.duration_ns


def test_what_decides_the_table_is_part_of_the_key(cache: TableCache, run: Path) -> None:
    read_run(run, ReadOptions(cache=cache.directory))
    found = read_run(run, ReadOptions(cache=cache.directory, communication_patterns=("gr.ße",)))
    assert len(found.windows[0].table.rows_of_class(1, 0)) == 2  # type: ignore[arg-type]
    small = read_run(run, ReadOptions(cache=cache.directory, max_unpacked_bytes=10))
    assert {p.kind for p in small.problems} == {"size-limit"}


def test_another_version_of_the_reader_shares_no_entry(cache: TableCache) -> None:
    here = cache.key(b"content", ())
    with patch("rankscope.readers.cache.code_hash", lambda *_: b"another"):
        assert cache.key(b"content", ()) != here
    assert code_hash("readers", "model") != code_hash("readers")


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other"])
def test_a_damaged_entry_is_read_again_and_replaced(cache: TableCache, run: Path, damage: str) -> None:
    options = ReadOptions(cache=cache.directory)
    first = read_run(run, options)
    (entry, _) = whole = entries(cache)
    stored = entry.read_bytes()
    flipped = bytearray(stored)
    flipped[len(flipped) // 2] ^= 4
    broken = {"cut": stored[:-7], "flipped": bytes(flipped), "empty": b"", "other": b"something else"}
    entry.write_bytes(broken[damage])
    second = read_run(run, options)
    assert [columns_of(w.table) for w in second.windows] == [columns_of(w.table) for w in first.windows]
    assert entries(cache) == whole
    assert entry.read_bytes() == stored


def test_the_entries_that_were_not_used_for_longest_go_first(cache: TableCache) -> None:
    for key in ("a", "b", "c"):
        cache.put(key, trace())
    sizes = [path.stat().st_size for path in entries(cache)]
    for age, key in enumerate(("b", "c", "a")):
        os.utime(cache.directory / f"{key}.table", ns=(age, age))
    assert cache.get("b", "x") is not None  # now the one used last
    TableCache(cache.directory, max_bytes=3 * sizes[0]).put("d", trace())
    assert [path.stem for path in entries(cache)] == ["a", "b", "d"]


def test_what_cannot_be_kept_is_read_all_the_same(tmp_path: Path, run: Path) -> None:
    """A file where the directory should be; permissions would not stop root."""
    (tmp_path / "taken").write_text("")
    found = read_run(run, ReadOptions(cache=tmp_path / "taken"))
    assert len(found.windows) == 2


def test_nothing_half_written_stays_behind(cache: TableCache) -> None:
    with patch.object(Path, "replace", side_effect=OSError(28, "No space left on device")):
        cache.put("k", trace())
    assert entries(cache) == []


def test_a_file_that_grows_while_it_is_read_is_not_kept(cache: TableCache, run: Path) -> None:
    def read_and_touch(*args: object, **more: object) -> TraceFile:
        for path in run.iterdir():
            os.utime(path, ns=(1, 1))
        return read_trace(*args, **more)  # type: ignore[arg-type]

    with patch.object(one_file, "read_trace", side_effect=read_and_touch):
        read_run(run, ReadOptions(cache=cache.directory))
    assert not cache.directory.exists()


def _fill(directory: Path) -> None:
    cache = TableCache(directory, max_bytes=20_000)
    for i in range(40):
        cache.put(f"k{i % 5}", trace())
        found = cache.get(f"k{(i + 2) % 5}", "x")
        assert found is None or len(found.table) == len(trace().table)


def test_several_processes_at_once(cache: TableCache) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(cache.directory,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert all(path.suffix == ".table" for path in entries(cache))


def test_where_it_lies(tmp_path: Path) -> None:
    assert default_cache_directory({"RANKSCOPE_CACHE": str(tmp_path)}) == tmp_path
    assert default_cache_directory({"RANKSCOPE_CACHE": "OFF"}) is None
    assert default_cache_directory({}) == Path.home() / ".cache" / "rankscope"


def test_small_files_are_not_kept(tmp_path: Path, cache: TableCache) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    read_run(write_ranks(folder, {0: EVENTS}), ReadOptions(cache=cache.directory))
    assert not cache.directory.exists()

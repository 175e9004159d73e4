"""The index: what several writers do to it at once, and how it is made anew."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rankscope.errors import InputError
from rankscope.store import RunRecord, Store, new_run_id, open_store
from rankscope.store import index as index_module
from rankscope.store.blobs import LocalBlobs
from rankscope.store.index import RunIndex

Put = Callable[..., RunRecord]


def record(name: str = "r") -> RunRecord:
    return RunRecord(run_id=new_run_id(), name=name, created_at="")


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "index").iterdir())


def test_many_loose_entries_are_folded_into_one(tmp_path: Path) -> None:
    index = RunIndex(LocalBlobs(tmp_path))
    records = [record(str(n)) for n in range(index_module._FOLD_ABOVE + 1)]
    for one in records:
        index.add(one)
    (name,) = files_of(tmp_path)
    assert name.startswith("base-")
    assert {r.name for r in RunIndex(LocalBlobs(tmp_path)).records()} == {r.name for r in records}


def test_ten_thousand_runs_lie_in_few_files(tmp_path: Path) -> None:
    index = RunIndex(LocalBlobs(tmp_path))
    index.replace(record(str(n)) for n in range(10_000))
    index.add(record("new"))
    assert len(files_of(tmp_path)) == 2
    assert len(RunIndex(LocalBlobs(tmp_path)).records()) == 10_001


def test_writers_side_by_side_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_FOLD_ABOVE", 3)  # so that they fold all the time
    records = [record(str(n)) for n in range(120)]
    removed = {r.run_id for r in records[::5]}

    def write(part: list[RunRecord]) -> None:
        index = RunIndex(LocalBlobs(tmp_path))  # of its own, as another process has it
        for one in part:
            index.add(one)
            if one.run_id in removed:
                index.remove(one.run_id)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, [records[n::6] for n in range(6)]))
    found = {r.run_id for r in RunIndex(LocalBlobs(tmp_path)).records()}
    assert found == {r.run_id for r in records} - removed


def test_a_reader_beside_writers_sees_every_finished_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_FOLD_ABOVE", 3)
    monkeypatch.setattr(index_module, "_MOST_TRIES", 1000)
    done: list[str] = []
    stop = threading.Event()
    missing: list[str] = []

    def read() -> None:
        index = RunIndex(LocalBlobs(tmp_path))
        while not stop.is_set():
            before = list(done)
            found = {r.name for r in index.records()}
            missing.extend(name for name in before if name not in found)

    reader = threading.Thread(target=read)
    reader.start()
    writer = RunIndex(LocalBlobs(tmp_path))
    for number in range(100):
        writer.add(record(str(number)))
        done.append(str(number))
    stop.set()
    reader.join()
    assert missing == []


def test_two_that_fold_at_once_leave_the_same_twice(tmp_path: Path) -> None:
    index = RunIndex(LocalBlobs(tmp_path))
    index.add(record("a"))
    names, entries = index._load()
    index._write("base-1", entries)
    index._write("base-2", entries)
    index._drop(names)
    assert [r.name for r in index.records()] == ["a"]


def test_files_folded_between_listing_and_reading_are_found_in_the_new_base(tmp_path: Path) -> None:
    class Overtaken(LocalBlobs):
        """Another writer folds everything just after the first listing."""

        is_armed = False

        def names(self, folder: str) -> list[str]:
            found = super().names(folder)
            if self.is_armed:
                self.is_armed = False
                other = RunIndex(LocalBlobs(tmp_path))
                _, entries = other._load()
                other._write("base-other", entries)
                other._drop(found)
            return found

    RunIndex(LocalBlobs(tmp_path)).add(record("a"))
    blobs = Overtaken(tmp_path)
    blobs.is_armed = True
    assert [r.name for r in RunIndex(blobs).records()] == ["a"]


def test_an_index_that_never_holds_still_is_given_up(tmp_path: Path) -> None:
    class Restless(LocalBlobs):
        def names(self, folder: str) -> list[str]:
            return [*super().names(folder), f"add-{new_run_id()}"]

    with pytest.raises(InputError, match="changes faster"):
        RunIndex(Restless(tmp_path)).records()


def test_rebuilding_remembers_what_was_deleted(store: Store, put: Put) -> None:
    """A writer that was under way with a run when it was deleted does not bring it back."""
    gone = put(0)
    store.delete(gone.run_id)
    store.rebuild_index()
    put(0)
    assert store.list_runs() == []


def test_a_lost_index_comes_back_from_the_manifests(store: Store, put: Put) -> None:
    records = [put(n) for n in range(3)]
    for path in (Path(store.url) / "index").iterdir():
        path.unlink()
    again = open_store(store.url)
    assert again.list_runs() == []
    assert again.rebuild_index() == 3
    assert again.list_runs() == records[::-1]


def test_a_damaged_index_says_how_to_mend_it(store: Store, put: Put) -> None:
    record = put(0)
    (path,) = (Path(store.url) / "index").iterdir()
    path.write_bytes(b'{"records": 7}')
    again = open_store(store.url)
    with pytest.raises(InputError, match="--rebuild-index"):
        again.list_runs()
    assert again.rebuild_index() == 1
    assert again.list_runs() == [record]


def test_rebuilding_finishes_a_deletion_that_was_cut_short(store: Store, put: Put) -> None:
    put(0)
    record = put(1)
    store._index.remove(record.run_id)  # killed here, before the files went
    assert store.rebuild_index() == 1
    assert not (Path(store.url) / "runs" / record.run_id).exists()


def test_what_is_added_while_the_index_is_rebuilt_stays(store: Store, put: Put) -> None:
    put(0)
    original = store._read_records

    def slow(seen: list[RunRecord]) -> object:
        yield from original(seen)
        put(1)

    store._read_records = slow  # type: ignore[method-assign,assignment]  # a writer in the middle
    store.rebuild_index()
    assert [r.name for r in store.list_runs()] == ["run 1", "run 0"]

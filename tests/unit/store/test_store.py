"""Runs in a store: put, found, read back, deleted."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from rankscope.errors import InputError, RunNotFoundError
from rankscope.store import NewFile, NewRun, RunRecord, Store, open_store
from rankscope.store.record import check_run_id, new_run_id

Put = Callable[..., RunRecord]
BAD_IDS = ["../../etc/passwd", "", "20260101T000000-00000000000G", "x" * 10_000, "a/b", "..", "٢" * 8]


def test_an_empty_store_lists_nothing_and_makes_no_folder(tmp_path: Path) -> None:
    store = open_store(tmp_path / "none")
    assert store.list_runs() == []
    assert store.pending() == []
    assert not (tmp_path / "none").exists()


def test_a_run_is_listed_with_what_the_store_worked_out(store: Store, put: Put) -> None:
    record = put(1, content=b"12345", tags={"branch": "main"})
    assert record.size_bytes == 5
    assert record.content
    assert store.list_runs() == [record]
    assert store.record(record.run_id) == record


def test_newest_first_and_limited(store: Store, put: Put) -> None:
    for number in (2, 0, 1):
        put(number)
    assert [r.name for r in store.list_runs()] == ["run 2", "run 1", "run 0"]
    assert [r.name for r in store.list_runs(limit=2)] == ["run 2", "run 1"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["c", "b", "a"]),
        ("RESNET", ["a"]),
        ("nccl main", ["b", "a"]),  # all words, anywhere
        ("branch=dev", ["c"]),
        ("nothing", []),
    ],
)
def test_search_by_words(store: Store, put: Put, query: str, found: list[str]) -> None:
    put(0, name="a", source="ResNet-50", backend="nccl", tags={"branch": "main"})
    put(1, name="b", backend="nccl", tags={"branch": "main"})
    put(2, name="c", backend="nccl", tags={"branch": "dev"})
    assert [r.name for r in store.list_runs(query)] == found


def test_search_by_tags_wants_all_of_them(store: Store, put: Put) -> None:
    put(0, name="a", tags={"branch": "main", "cap": "25"})
    put(1, name="b", tags={"branch": "main"})
    assert [r.name for r in store.list_runs(tags={"branch": "main", "cap": "25"})] == ["a"]
    assert [r.name for r in store.list_runs(tags={"branch": "main"})] == ["b", "a"]


def test_equal_files_of_a_run_are_kept_once(store: Store) -> None:
    record = RunRecord(run_id=new_run_id(), name="r", created_at="")
    files = [NewFile(role="trace", name=name, content=b"same") for name in ("a", "b")]
    assert store.put(NewRun(record=record, files=files)).size_bytes == 4
    folder = Path(store.url) / "runs" / record.run_id / "files"
    assert len(list(folder.iterdir())) == 1
    assert [f.name for f in store.traces(record.run_id)] == ["a", "b"]


def test_the_content_key_follows_the_content(put: Put) -> None:
    same, other = put(0, content=b"a"), put(1, content=b"b")
    assert put(2, content=b"a").content == same.content != other.content


def test_a_file_changed_on_the_disk_is_refused(store: Store, put: Put) -> None:
    record = put(0, content=b"good")
    (path,) = (Path(store.url) / "runs" / record.run_id / "files").iterdir()
    path.write_bytes(b"evil")
    with pytest.raises(InputError, match="is damaged"):
        store._read(record.run_id, "report", "r")


@pytest.mark.parametrize("bad", BAD_IDS)
def test_what_is_no_run_id_never_becomes_a_path(store: Store, bad: str) -> None:
    for use in (store.record, store.report_text, store.delete, store.status):
        with pytest.raises(RunNotFoundError, match="is no run id"):
            use(bad)


def test_ids_are_fresh_valid_and_sort_by_time() -> None:
    early = new_run_id(datetime(2026, 1, 1, tzinfo=timezone.utc))
    late = new_run_id(datetime(2026, 1, 1, 0, 0, 1, tzinfo=timezone.utc))
    assert check_run_id(early) < check_run_id(late)
    assert new_run_id() != new_run_id()


def test_delete_takes_the_files_and_the_run_stays_away(store: Store, put: Put) -> None:
    kept, gone = put(0), put(1)
    assert store.delete(gone.run_id)
    assert not (Path(store.url) / "runs" / gone.run_id).exists()
    assert store.list_runs() == [kept]
    assert not store.delete(gone.run_id)
    with pytest.raises(RunNotFoundError, match="holds no run"):
        store.record(gone.run_id)
    # A writer that was under way with it does not bring it back into the list.
    put(1)
    assert store.list_runs() == [kept]


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({}, [0, 1, 2, 3]),
        ({"max_runs": 2}, [2, 3]),
        ({"max_age": timedelta(days=2)}, [2, 3]),  # now is the 5th; they are of the 1st to 4th
        ({"max_bytes": 30}, [1, 2, 3]),  # 10 bytes each
        ({"max_runs": 3, "max_bytes": 15}, [3]),
    ],
)
def test_retention_deletes_the_oldest(
    store: Store, put: Put, limits: dict[str, object], kept: list[int]
) -> None:
    records = [put(number, content=bytes([number]) * 10) for number in range(4)]
    now = datetime(2026, 1, 5, tzinfo=timezone.utc)
    deleted = store.apply_retention(now=now, **limits)  # type: ignore[arg-type]  # any of its limits
    assert store.list_runs() == [records[n] for n in reversed(kept)]
    assert {r.run_id for r in deleted} == {r.run_id for r in records} - {records[n].run_id for n in kept}


def test_putting_a_run_again_after_a_crash_gives_one_run(store: Store, put: Put) -> None:
    assert put(0) == put(0)
    assert len(store.list_runs()) == 1


def test_a_failed_write_leaves_no_run(store: Store, tmp_path: Path, put: Put) -> None:
    put(0)
    record = RunRecord(run_id=new_run_id(), name="broken", created_at="")
    files = [
        NewFile(role="report", name="r", content=b"x"),
        NewFile(role="trace", name="t", content=tmp_path / "absent"),
    ]
    with pytest.raises(FileNotFoundError):
        store.put(NewRun(record=record, files=files))
    assert [r.name for r in store.list_runs()] == ["run 0"]
    with pytest.raises(RunNotFoundError):
        store.record(record.run_id)
    assert store.rebuild_index() == 1


def test_no_unfinished_file_is_left_or_listed(store: Store, put: Put) -> None:
    put(0)
    names = [name for _, _, files in os.walk(store.url) for name in files]
    assert not [name for name in names if name.startswith(".part-")]


def test_a_manifest_of_another_major_version_is_refused_with_both(store: Store, put: Put) -> None:
    record = put(0)
    path = Path(store.url) / "runs" / record.run_id / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"1.0"', b'"2.0"', 1))
    with pytest.raises(InputError, match=r"2\.0.*1\.0"):
        store.record(record.run_id)


def test_two_stores_on_one_folder_see_each_other(store: Store, put: Put) -> None:
    other = open_store(store.url)
    assert other.list_runs() == []
    record = put(0)
    assert other.list_runs() == [record]
    other.delete(record.run_id)
    assert store.list_runs() == []


def test_an_unknown_scheme_says_what_is_expected() -> None:
    with pytest.raises(InputError, match="Expected a folder or a URL"):
        open_store("nosuch://x")


def test_the_memory_store_behaves_the_same() -> None:
    store = open_store("memory://rankscope-test-store", spool="/nonexistent")
    record = RunRecord(run_id=new_run_id(), name="m", created_at="")
    stored = store.put(NewRun(record=record, files=[NewFile(role="report", name="r", content=b"1")]))
    assert open_store("memory://rankscope-test-store").list_runs() == [stored]
    assert store.rebuild_index() == 1
    assert store.delete(record.run_id)
    assert store.list_runs() == []
    assert replace(stored, name="m") == stored

"""How a trace gets to its final name: whole, verified, beside whatever is there already."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import pytest

from rankscope.collector.options import OutputOptions
from rankscope.collector.trace_file import SavedTrace, save_trace, verify
from rankscope.errors import RankscopeError
from rankscope.model.manifest import Manifest

EVENT = '{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1.5, "dur": 2}'
HEAD = ' {\n  "schemaVersion": 1,\n  "host_name": "node17",\n  "traceEvents": [\n'
TAIL = '\n],\n"traceName": "/tmp/x/trace.json"\n}\n'
MANIFEST = Manifest(rank=7, world_size=8, window=2, labels={"commit": "1a2b"})
NAME = "rank_00007.2.pt.trace.json.gz"


def _export(*events: str, head: str = HEAD, tail: str = TAIL) -> Callable[[str], None]:
    """An exporter that writes what torch.profiler would."""

    def write(path: str) -> None:
        Path(path).write_text(head + ",\n".join(events) + tail, encoding="utf-8")

    return write


def _save(export: Callable[[str], None], directory: Path, **options: Any) -> SavedTrace:
    return save_trace(
        export, lambda: MANIFEST, OutputOptions(directory=directory, labels={}, **options), delay_seconds=0
    )


def _read(path: Path) -> dict[str, Any]:
    trace: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return trace


def test_file_has_the_rank_and_the_window_in_its_name(tmp_path: Path) -> None:
    saved = _save(_export(EVENT), tmp_path / "runs" / "a")
    assert saved.path == tmp_path / "runs" / "a" / NAME
    assert not saved.is_namesake
    assert [path.name for path in saved.path.parent.iterdir()] == [NAME]


def test_facts_come_first_and_nothing_else_changes(tmp_path: Path) -> None:
    trace = _read(_save(_export(EVENT), tmp_path).path)
    assert list(trace) == ["rankscope", "schemaVersion", "host_name", "traceEvents", "traceName"]
    assert trace["rankscope"] == asdict(MANIFEST)
    assert trace["traceEvents"] == [json.loads(EVENT)]
    assert trace["host_name"] == "node17"


def test_text_larger_than_a_chunk_arrives_whole(tmp_path: Path) -> None:
    events = [EVENT.replace("1.5", str(number)) for number in range(40_000)]  # 2.8 MB
    trace = _read(_save(_export(*events), tmp_path).path)
    assert [event["ts"] for event in trace["traceEvents"]] == list(range(40_000))


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"another run")
    saved = [_save(_export(EVENT), tmp_path) for _ in range(2)]
    assert [trace.path.name for trace in saved] == [
        "rank_00007.2.copy1.pt.trace.json.gz",
        "rank_00007.2.copy2.pt.trace.json.gz",
    ]
    assert all(trace.is_namesake for trace in saved)
    assert (tmp_path / NAME).read_bytes() == b"another run"


def test_without_hard_links_the_name_is_still_taken_exclusively(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: object, target: object) -> None:
        raise OSError(errno.EPERM, "no hard links on this file system")

    monkeypatch.setattr(os, "link", refuse)
    first, second = _save(_export(EVENT), tmp_path), _save(_export(EVENT), tmp_path)
    assert (first.path.name, second.path.name) == (NAME, "rank_00007.2.copy1.pt.trace.json.gz")
    assert sorted(tmp_path.iterdir()) == sorted([first.path, second.path])
    assert _read(first.path)["rankscope"]["rank"] == 7


@pytest.mark.parametrize(
    "export",
    [
        _export(EVENT, tail=""),
        _export(EVENT, tail='\n],\n"traceName": "/tmp/x/tra'),
        _export(head="", tail=""),
        _export(head="[", tail="]"),
    ],
    ids=["in the events", "in the last key", "empty", "no object"],
)
def test_a_trace_cut_short_by_torch_is_refused(export: Callable[[str], None], tmp_path: Path) -> None:
    with pytest.raises(RankscopeError, match=r"torch\.profiler wrote"):
        _save(export, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_half_written_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(source: IO[bytes], target: IO[bytes], length: int) -> None:
        target.write(source.read(10))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", fill)
    with pytest.raises(OSError, match="No space left"):
        _save(_export(EVENT), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_copy_that_lost_bytes_gets_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(source: IO[bytes], target: IO[bytes], length: int) -> None:
        target.write(source.read()[:-9])

    monkeypatch.setattr(shutil, "copyfileobj", lose)
    with pytest.raises(RankscopeError, match="could not be read back"):
        _save(_export(EVENT), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ['{"rankscope": {}}', '{"other": 1, "rankscope": {}}', '{"rankscope": {}, "a": [1, 2]']
)
def test_reading_back_wants_the_facts_the_end_and_every_byte(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(text.encode()))
    expected_bytes = 18 if text == '{"rankscope": {}}' else len(text)
    with pytest.raises(RankscopeError, match="not the one written"):
        verify(path, expected_bytes)


def test_bytes_that_changed_on_the_way_get_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(source: IO[bytes], target: IO[bytes], length: int) -> None:
        data = source.read()
        target.write(data[:40] + b"\xff" * 20 + data[60:])

    monkeypatch.setattr(shutil, "copyfileobj", change)
    with pytest.raises(RankscopeError, match="could not be read back"):
        _save(_export(EVENT), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_end_that_falls_between_two_chunks_is_an_end(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    text = '{"rankscope": {}, "pad": "'
    text += "x" * ((1 << 20) - len(text) - 2) + '"}'  # the newline after it is a chunk of its own
    path.write_bytes(gzip.compress(f"{text}\n".encode()))
    verify(path, len(text) + 1)


def test_a_trace_above_the_limit_is_dropped(tmp_path: Path) -> None:
    noise = [EVENT.replace("aten::add", os.urandom(500).hex()) for _ in range(100)]  # 50 kB compressed
    with pytest.raises(RankscopeError, match=r"max_trace_mb \(9\.77 KiB\)"):
        _save(_export(*noise), tmp_path, max_trace_bytes=10_000)
    assert list(tmp_path.iterdir()) == []


def test_a_trace_within_the_limit_is_kept(tmp_path: Path) -> None:
    assert _save(_export(EVENT), tmp_path, max_trace_bytes=10_000).path.exists()


@pytest.mark.parametrize(
    ("event", "has_kernels", "has_collectives"),
    [
        (EVENT, False, False),
        ('{"cat": "kernel", "name": "gemm"}', True, False),
        ('{"cat": "kernel", "name": "ncclDevKernel_AllReduce"}', True, True),
        ('{"cat": "user_annotation", "name": "gloo:all_reduce"}', False, True),
    ],
)
def test_what_a_trace_holds_is_told(
    event: str, has_kernels: bool, has_collectives: bool, tmp_path: Path
) -> None:
    saved = _save(_export(EVENT, event), tmp_path)
    assert (saved.has_kernels, saved.has_collectives) == (has_kernels, has_collectives)


def test_a_mark_across_two_chunks_is_seen(tmp_path: Path) -> None:
    mark = '"name": "gloo:all_reduce"}'
    manifest_bytes = len(json.dumps({"rankscope": asdict(MANIFEST)}))
    for shift in range(0, 40, 5):
        padding = "x" * ((1 << 20) - manifest_bytes - len(HEAD) - 40 + shift)
        saved = _save(_export('{"pad": "' + padding + '"}', "{" + mark), tmp_path)
        assert saved.has_collectives, shift


def test_scrubbing_takes_hosts_and_folders_out_of_all_text(tmp_path: Path) -> None:
    stack = '{"cat": "python_function", "name": "/home/ann/train.py(3): main"}'
    trace = _read(_save(_export(stack, *[EVENT] * 20_000, stack), tmp_path, scrub=True).path)
    assert trace["host_name"] == ""
    assert trace["traceName"] == "trace.json"
    assert {event["name"] for event in trace["traceEvents"]} == {"aten::add", "train.py(3): main"}
    assert len(trace["traceEvents"]) == 20_002


def test_the_wait_comes_before_the_run_directory_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, bool]] = []
    target = tmp_path / "run"
    monkeypatch.setattr(
        "rankscope.collector.trace_file.time.sleep", lambda s: seen.append((s, target.exists()))
    )
    save_trace(
        _export(EVENT), lambda: MANIFEST, OutputOptions(directory=target, labels={}), delay_seconds=2.5
    )
    assert seen == [(2.5, False)]

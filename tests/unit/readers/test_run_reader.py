"""A run from its files: one bad file stops no other, in one process or in several."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import IO

import pytest

from rankscope.errors import InputError, UsageError
from rankscope.model.categories import Classifier
from rankscope.model.run import Run
from rankscope.pipeline import ReadOptions, read_run
from rankscope.readers import one_file, side_by_side
from rankscope.readers.discovery import TraceSource
from rankscope.readers.side_by_side import number_of_processes
from rankscope.readers.trace_file import TraceFile, read_trace
from support.killing import do_or_die
from support.reading import columns_of, kinds_of
from support.trace_text import job, kernel, nccl, trace_text, write_ranks

SEVERAL = ReadOptions(processes=2)


def facts_of(run: Run) -> list[object]:
    """All that a run holds, as plain values."""
    windows = [
        (w.rank, w.rank_source, w.window, w.file, w.world_size, columns_of(w.table)) for w in run.windows
    ]
    return [run.name, windows, run.problems]


@pytest.fixture
def mixed_run(tmp_path: Path) -> Path:
    """Four ranks, one of them packed and one cut; and a file that is no trace."""
    write_ranks(tmp_path, {r: [kernel("gemm", r, 5), nccl(r + 1, 9)] for r in range(4)})
    stored = (tmp_path / "rank2.json").read_bytes()
    (tmp_path / "rank2.json").write_bytes(stored[:-40])
    (tmp_path / "rank3.json").rename(tmp_path / "rank3.json.gz")
    (tmp_path / "rank3.json.gz").write_bytes(gzip.compress((tmp_path / "rank3.json.gz").read_bytes()))
    (tmp_path / "other.json").write_text("{}")
    return tmp_path


def test_a_bad_file_stops_no_other(mixed_run: Path) -> None:
    run = read_run(mixed_run)
    assert run.ranks == (0, 1, 3)
    assert run.missing_ranks == (2,)
    (problem,) = run.problems
    assert (problem.file, problem.kind, problem.severity) == ("rank2.json", "truncated", "error")
    assert "rank2.json: the text ends in the middle of the trace" in problem.message
    assert f"(byte offset {problem.offset})" in problem.message


def test_several_processes_read_the_same_run(mixed_run: Path) -> None:
    done: dict[str, int] = {}
    found: list[int] = []
    run = read_run(mixed_run, SEVERAL, on_found=found.append, on_file_done=done.__setitem__)
    assert found == [sum(done.values())]
    assert facts_of(run) == facts_of(read_run(mixed_run))
    assert done == {file.name: file.stat().st_size for file in mixed_run.iterdir()}


def test_a_worker_that_is_killed_costs_its_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "_do", do_or_die)
    write_ranks(tmp_path, {r: [kernel("gemm", r, 5)] * (2 if r == 1 else 1) for r in range(4)})
    (tmp_path / "rank1.json").rename(tmp_path / "killer1.json")  # the largest is what a worker begins with
    run = read_run(tmp_path, SEVERAL)
    assert run.ranks == (0, 2, 3)
    (problem,) = run.problems
    assert (problem.file, problem.kind, problem.severity) == ("killer1.json", "killed", "error")
    assert "--processes 1" in problem.message


def test_only_bad_files_are_a_run_without_windows(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"traceEvents":[')
    (tmp_path / "b.json").write_text("")
    run = read_run(tmp_path)
    assert run.windows == ()
    assert [(p.file, p.kind) for p in run.problems] == [("a.json", "truncated"), ("b.json", "empty")]


def test_problems_stand_in_order_of_file_and_offset(tmp_path: Path) -> None:
    text = trace_text([kernel("b@", 5, 1), kernel("a", 1, -1)], job(0, 3))
    (tmp_path / "rank0.json").write_text(text.replace("@", "\x01").replace('"device"', '"d\\_"'))
    (tmp_path / "rank1.json").write_text(trace_text([], job(1, 3)))
    run = read_run(tmp_path)
    assert kinds_of(run.problems) == ["negative-duration", "control-character", "escape", "no-events"]
    assert [p.file for p in run.problems] == ["rank0.json"] * 3 + ["rank1.json"]


def test_a_bad_pattern_is_said_once_and_before_reading(mixed_run: Path) -> None:
    with pytest.raises(UsageError, match="bad\\("):
        read_run(mixed_run, ReadOptions(communication_patterns=("bad(",), processes=2))


def test_size_limit_loses_the_file_that_passes_it(tmp_path: Path) -> None:
    write_ranks(tmp_path, {0: [kernel("gemm", 0, 5)], 1: [kernel("gemm", i, 1) for i in range(50)]})
    run = read_run(tmp_path, ReadOptions(max_unpacked_bytes=1_000))
    assert run.ranks == (0,)
    assert [(p.file, p.kind) for p in run.problems] == [("rank1.json", "size-limit")]


def test_out_of_memory_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ranks(tmp_path, {0: [kernel("gemm", 0, 5)], 1: [kernel("gemm", 0, 5)]})

    def greedy(raw: IO[bytes], name: str, classifier: Classifier, *, max_unpacked_bytes: int) -> TraceFile:
        if name == "rank1.json":
            raise MemoryError
        return read_trace(raw, name, classifier, max_unpacked_bytes=max_unpacked_bytes)

    monkeypatch.setattr(one_file, "read_trace", greedy)
    run = read_run(tmp_path)
    assert run.ranks == (0,)
    assert [(p.file, p.kind) for p in run.problems] == [("rank1.json", "memory")]


@pytest.mark.parametrize("given", ["run-7", "run-7/", "run-7//"])
def test_name_of_a_run(tmp_path: Path, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run-7").mkdir()
    write_ranks(tmp_path / "run-7", {0: [kernel("gemm", 0, 5)]})
    monkeypatch.chdir(tmp_path)
    run = read_run(given)
    assert (run.name, run.source) == ("run-7", given)


def test_nothing_is_read_of_a_run_that_is_two(tmp_path: Path) -> None:
    for name, size in (("a.json", 2), ("b.json", 4)):
        (tmp_path / name).write_text(trace_text([kernel("gemm", 0, 5)], job(0, size)))
    with pytest.raises(InputError, match="two runs lie in one directory"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("name", "size_bytes", "pays"),
    [
        ("r.json", 90 << 20, False),
        ("r.json", 60 << 20, True),
        ("r.json.gz", 1 << 20, False),
        ("r.json.gz", 9 << 20, True),
    ],
)
def test_processes_are_started_where_they_pay(name: str, size_bytes: int, pays: bool) -> None:
    """From 100 MiB of text on; a compressed file holds about 12 times its size."""
    number = 1 if size_bytes == 90 << 20 else 2
    sources = tuple(TraceSource(name=f"{i}{name}", location="", size_bytes=size_bytes) for i in range(number))
    several = len(os.sched_getaffinity(0)) > 1
    assert (number_of_processes(sources, 0) > 1) is (pays and several)
    assert number_of_processes(sources, 2) == 2

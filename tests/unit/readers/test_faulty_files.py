"""File systems that fail: one file is lost with the reason, the other is read; slow ones lose nothing."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, cast

import pytest

from rankscope.model.run import Run
from rankscope.readers.discovery import find_traces
from rankscope.readers.run_reader import read_run, read_sources
from support.faulty_files import FaultyFile, opened_as
from support.reading import columns_of
from support.trace_text import kernel, write_ranks

EVENTS = [kernel(f"k{i}", 10 * i, 5) for i in range(300)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return write_ranks(folder, {0: EVENTS, 1: EVENTS})


def read_faulty(run: Path, **fault: Any) -> Run:
    def make(path: Path) -> IO[bytes]:
        return cast("IO[bytes]", FaultyFile(path.read_bytes(), **fault))

    with opened_as(make, only="rank0.json"):
        return read_run(run)


@pytest.mark.parametrize("piece", [1, 7, 1_000])
@pytest.mark.parametrize("packed", [False, True])
def test_short_reads_lose_nothing(run: Path, piece: int, packed: bool) -> None:
    if packed:
        path = run / "rank0.json"
        path.write_bytes(gzip.compress(path.read_bytes()))
    found, whole = read_faulty(run, piece=piece), read_run(run)
    assert found.problems == whole.problems
    assert columns_of(found.windows[0].table) == columns_of(whole.windows[0].table)


def test_a_slow_source_is_waited_for(run: Path) -> None:
    assert len(read_faulty(run, piece=4_000, wait_s=0.01).windows[0].table) == len(EVENTS)


@pytest.mark.parametrize("fails_at", [0, 1, 2_000, 15_000])
def test_a_disk_that_fails_costs_the_file_alone(run: Path, fails_at: int) -> None:
    found = read_faulty(run, piece=500, fails_at=fails_at)
    assert found.ranks == (1,)
    (problem,) = found.problems
    assert (problem.file, problem.kind, problem.severity) == ("rank0.json", "unreadable", "error")
    assert "Input/output error" in problem.message


def test_a_file_that_vanishes_between_looking_and_reading(run: Path) -> None:
    sources = find_traces(run)
    (run / "rank0.json").unlink()
    found = read_sources(sources, "run", str(run))
    assert found.ranks == (1,)
    assert [(p.file, p.kind) for p in found.problems] == [("rank0.json", "unreadable")]
    assert "No such file" in found.problems[0].message


def test_a_file_that_is_cut_while_it_is_read(run: Path) -> None:
    class Shrinking(FaultyFile):
        def readinto(self, buffer: Any, /) -> int:
            size = super().readinto(buffer)
            self.cut(9_000)
            return size

    with opened_as(
        lambda path: cast("IO[bytes]", Shrinking(path.read_bytes(), piece=3_000)), only="rank0.json"
    ):
        found = read_run(run)
    assert [(p.file, p.kind) for p in found.problems] == [("rank0.json", "truncated")]
    assert found.ranks == (1,)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_file_of_another_user() -> None:
    """Root may read everything: the command runs as nobody, who may read one file of the two."""
    script = (
        "import os, sys; from rankscope.readers.run_reader import read_run; os.setuid(65534);"
        "run = read_run(sys.argv[1]); print(run.ranks, [(p.file, p.kind, p.message) for p in run.problems])"
    )
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        folder = Path(name)
        folder.chmod(0o755)
        write_ranks(folder, {0: EVENTS, 1: EVENTS})
        (folder / "rank0.json").chmod(0o600)
        (folder / "rank1.json").chmod(0o644)
        done = subprocess.run(
            [sys.executable, "-c", script, name], capture_output=True, text=True, check=False, timeout=60
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(1,) [('rank0.json', 'unreadable'")
    assert "Permission denied" in done.stdout

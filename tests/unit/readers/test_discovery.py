"""Which files a run consists of."""

from __future__ import annotations

import os
from pathlib import Path

import fsspec
import pytest

from rankscope.errors import InputError
from rankscope.pipeline import analyze, read_run
from rankscope.readers.discovery import find_traces
from support.trace_text import job, kernel, trace_text

TEXT = trace_text([kernel("a", 0, 1)], job(0, 1))


def names_of(run: str | Path) -> list[str]:
    return [source.name for source in find_traces(run)]


def test_a_file_whatever_its_name(tmp_path: Path) -> None:
    file = tmp_path / "profile.out"
    file.write_text(TEXT)
    (source,) = find_traces(file)
    assert (source.name, source.size_bytes) == ("profile.out", len(TEXT))


def test_files_of_a_directory_by_suffix_in_order_of_name(tmp_path: Path) -> None:
    for name in (
        "b.json",
        "a.pt.trace.json",
        "C.JSON.GZ",
        "notes.txt",
        "x.jsonl",
        ".hidden.json",
        "d.json.part",
    ):
        (tmp_path / name).write_text(TEXT)
    assert names_of(tmp_path) == ["C.JSON.GZ", "a.pt.trace.json", "b.json"]


def test_what_is_called_like_a_trace_but_is_no_file(tmp_path: Path) -> None:
    """A directory and a pipe are left alone; opening the pipe would hang."""
    (tmp_path / "dir.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "a.json").write_text(TEXT)
    assert names_of(tmp_path) == ["a.json"]


def test_a_pipe_given_by_name_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(InputError, match="neither a file nor a directory"):
        find_traces(tmp_path / "pipe.json")


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "t").write_text(TEXT)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.json").symlink_to(tmp_path / "elsewhere" / "t")
    assert names_of(tmp_path / "run") == ["a.json"]


@pytest.mark.parametrize("target", ["absent", "lost.json"], ids=["dangling", "to itself"])
def test_a_link_to_nowhere_is_a_lost_file_and_is_said(tmp_path: Path, target: str) -> None:
    (tmp_path / "rank0.json").write_text(TEXT)
    (tmp_path / "lost.json").symlink_to(tmp_path / target)
    run = read_run(tmp_path)
    assert run.ranks == (0,)
    (problem,) = run.problems
    assert (problem.file, problem.kind, problem.severity) == ("lost.json", "unreadable", "error")
    assert "lost.json: cannot be read" in problem.message


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is played."""
    (tmp_path / "rank0.json").write_text(TEXT)
    (tmp_path / "rank1.json").write_text(TEXT)
    real = Path.open

    def refuse(path: Path, *args: object, **kwargs: object) -> object:
        if path.name == "rank1.json":
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    run = read_run(tmp_path)
    assert run.ranks == (0,)
    assert [(p.file, p.kind) for p in run.problems] == [("rank1.json", "unreadable")]
    assert "Permission denied" in run.problems[0].message


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        find_traces(tmp_path / "absent")
    with pytest.raises(InputError, match=r"expected files that end in \.json"):
        find_traces(tmp_path)


def test_the_directory_that_was_meant_is_named(tmp_path: Path) -> None:
    (tmp_path / "run-7").mkdir()
    (tmp_path / "run-7" / "a.json").write_text(TEXT)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as caught:
        find_traces(tmp_path)
    assert "run-7" in str(caught.value)
    assert "empty" not in str(caught.value)


def test_other_json_beside_the_traces_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_text(TEXT)
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    run = read_run(tmp_path)
    assert run.ranks == (0,)
    assert run.problems == ()


def test_nothing_but_other_json_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    with pytest.raises(InputError, match=r"no file holds a traceEvents array \(looked at config\.json\)"):
        read_run(tmp_path)


def test_file_url(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_text(TEXT)
    (tmp_path / "notes.txt").write_text("x")
    assert names_of(f"file://{tmp_path}") == ["rank0.json"]
    assert names_of(f"file://{tmp_path}/rank0.json") == ["rank0.json"]
    assert analyze(f"file://{tmp_path}").ranks == analyze(tmp_path).ranks


def test_memory_url() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/rankscope-run/rank0.json", TEXT.encode())
    memory.pipe("/rankscope-run/.hidden.json", TEXT.encode())
    try:
        assert names_of("memory://rankscope-run") == ["rank0.json"]
        (row,) = analyze("memory://rankscope-run").ranks
        assert row.compute_ns == 1_000
        with pytest.raises(InputError, match="cannot look into memory://absent"):
            find_traces("memory://absent")
    finally:
        memory.rm("/rankscope-run", recursive=True)


def test_a_protocol_that_nobody_knows() -> None:
    with pytest.raises(InputError, match="cannot look into nothing://x"):
        find_traces("nothing://x")

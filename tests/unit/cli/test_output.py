"""Files of output: written whole or not at all, and nothing overwritten by accident."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pandas as pd
import pytest

from rankscope.cli.output import check_writable, write_file
from rankscope.cli.tables import write_tables
from rankscope.errors import UsageError
from rankscope.pipeline import AnalyzeOptions
from support.reading import report_of
from support.trace_text import cpu_op, kernel, nccl


def test_a_file_is_written_whole_and_readable_by_others(tmp_path: Path) -> None:
    write_file(tmp_path / "r.txt", "größer ▲\n")
    assert (tmp_path / "r.txt").read_bytes() == "größer ▲\n".encode()
    assert stat.S_IMODE((tmp_path / "r.txt").stat().st_mode) == 0o666 & ~current_umask()
    assert [p.name for p in tmp_path.iterdir()] == ["r.txt"]


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_nothing_is_left_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r.txt").write_text("old")

    def refuse(_path: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(UsageError, match=r"cannot write .*r\.txt: No space left on device"):
        write_file(tmp_path / "r.txt", "new")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"r.txt": "old"}


def test_nothing_is_left_when_the_text_cannot_be_encoded(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_file(tmp_path / "r.txt", "\ud800")
    assert list(tmp_path.iterdir()) == []


def test_faults_of_all_paths_are_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("{}")
    (tmp_path / "dir.json").mkdir()
    with pytest.raises(UsageError) as caught:
        check_writable(
            [tmp_path / "old.json", tmp_path / "dir.json", tmp_path / "no" / "r.json", tmp_path / "new.json"],
            force=False,
        )
    message = str(caught.value)
    for text in ("old.json exists already; give --force", "dir.json is a directory", "no does not exist"):
        assert text in message
    assert "new.json" not in message


def test_force_allows_what_exists_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("{}")
    check_writable([tmp_path / "old.json"], force=True)
    with pytest.raises(UsageError):
        check_writable([tmp_path], force=True)


def test_tables_of_a_report(tmp_path: Path) -> None:
    """A table per list that has rows; device is text, since it is a number or "cpu"."""
    report = report_of(
        {0: [kernel("a", 0, 10), nccl(5, 10)], 1: [cpu_op("x", 0, 1)]}, options=AnalyzeOptions(detail="full")
    )
    write_tables(report, tmp_path / "new" / "tables")
    ranks = pd.read_parquet(tmp_path / "new" / "tables" / "ranks.parquet")
    assert ranks["device"].tolist() == ["0"]
    assert ranks["communication_ns"].tolist() == [10_000]
    assert ranks["overlap_ratio"].tolist() == [0.5]
    communications = pd.read_parquet(tmp_path / "new" / "tables" / "communications.parquet")
    assert communications["exposed_ns"].tolist() == [5_000]
    windows = pd.read_parquet(tmp_path / "new" / "tables" / "windows.parquet")
    assert windows["device"].tolist() == ["0", None]
    assert windows["window_ns"].isna().tolist() == [False, True]
    assert not (tmp_path / "new" / "tables" / "steps.parquet").exists()


def test_a_table_of_an_earlier_run_does_not_stay(tmp_path: Path) -> None:
    (tmp_path / "steps.parquet").write_text("of another run")
    write_tables(report_of({0: [kernel("a", 0, 10)]}), tmp_path)
    assert not (tmp_path / "steps.parquet").exists()

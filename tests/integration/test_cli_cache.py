"""The second command on the same files reads tables that the first one kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.command import rankscope, strict_json, work
from support.trace_text import write_ranks


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A run whose files are worth keeping: more than a MiB each."""
    folder = tmp_path / "run"
    folder.mkdir()
    return write_ranks(folder, dict.fromkeys((0, 1), work(4)), traceName="x" * (9 << 17))


def kinds(kept: Path) -> list[str]:
    return sorted(path.suffix for path in kept.iterdir())


def test_the_same_report_at_once(large: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    words = ("analyze", large, "--format", "json")
    first = rankscope(*words, RANKSCOPE_CACHE=str(kept))
    assert kinds(kept) == [".report", ".table", ".table"]
    second = rankscope(*words, RANKSCOPE_CACHE=str(kept))
    assert (second.returncode, second.stdout) == (first.returncode, first.stdout)
    assert strict_json(second.stdout)["ranks"]
    assert kinds(kept) == [".report", ".table", ".table"]


@pytest.mark.parametrize("format_", ["console", "markdown", "html"])
def test_every_format_is_the_same_from_what_was_kept(large: Path, tmp_path: Path, format_: str) -> None:
    words = ("analyze", large, "--format", format_)
    fresh = rankscope(*words, "--no-cache")
    for _ in range(2):
        assert rankscope(*words, RANKSCOPE_CACHE=str(tmp_path / "kept")).stdout == fresh.stdout


def test_whatever_decides_the_report_makes_another(large: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    for more in ((), ("--steps", "4"), ("--label", "a=b"), ("--detail", "full"), ("--comm-pattern", "gemm")):
        words = ("analyze", large, "--format", "json", *more)
        assert rankscope(*words, RANKSCOPE_CACHE=str(kept)).stdout == rankscope(*words, "--no-cache").stdout
    assert kinds(kept).count(".report") == 5


def test_a_changed_file_makes_another_report(large: Path, tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    words = ("analyze", large, "--format", "json")
    before = rankscope(*words, RANKSCOPE_CACHE=kept).stdout
    path = large / "rank0.json"
    path.write_text(path.read_text().replace('"dur":60', '"dur":61'))
    after = rankscope(*words, RANKSCOPE_CACHE=kept).stdout
    assert after != before
    assert after == rankscope(*words, "--no-cache").stdout


def test_a_damaged_report_is_made_anew(large: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    words = ("analyze", large, "--format", "json")
    first = rankscope(*words, RANKSCOPE_CACHE=str(kept))
    (entry,) = (path for path in kept.iterdir() if path.suffix == ".report")
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-1])
    assert rankscope(*words, RANKSCOPE_CACHE=str(kept)).stdout == first.stdout
    assert entry.read_bytes() == whole


def test_a_report_on_a_lost_file_is_not_kept(large: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    (large / "rank1.json").write_text((large / "rank1.json").read_text()[:-40])
    assert rankscope("analyze", large, RANKSCOPE_CACHE=str(kept)).returncode == 2
    assert kinds(kept) == [".table"]


def test_nothing_is_kept_on_demand(large: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    for command in ("analyze", "inspect"):
        rankscope(command, large, "--no-cache", RANKSCOPE_CACHE=str(kept))
    rankscope("analyze", large, RANKSCOPE_CACHE="off", XDG_CACHE_HOME=str(kept))
    assert not kept.exists()


def test_the_users_cache_directory_is_the_place(large: Path, tmp_path: Path) -> None:
    rankscope("inspect", large, RANKSCOPE_CACHE="", XDG_CACHE_HOME=str(tmp_path))
    assert len(os.listdir(tmp_path / "rankscope")) == 2

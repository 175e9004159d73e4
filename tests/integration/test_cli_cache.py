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


def test_the_same_report_from_kept_tables(large: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    words = ("analyze", large, "--format", "json")
    first = rankscope(*words, RANKSCOPE_CACHE=str(kept))
    entries = sorted(kept.iterdir())
    assert len(entries) == 2
    second = rankscope(*words, RANKSCOPE_CACHE=str(kept))
    assert (second.returncode, second.stdout) == (first.returncode, first.stdout)
    assert strict_json(second.stdout)["ranks"]
    assert sorted(kept.iterdir()) == entries


def test_nothing_is_kept_on_demand(large: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    for command in ("analyze", "inspect"):
        rankscope(command, large, "--no-cache", RANKSCOPE_CACHE=str(kept))
    rankscope("analyze", large, RANKSCOPE_CACHE="off", XDG_CACHE_HOME=str(kept))
    assert not kept.exists()


def test_the_users_cache_directory_is_the_place(large: Path, tmp_path: Path) -> None:
    rankscope("inspect", large, RANKSCOPE_CACHE="", XDG_CACHE_HOME=str(tmp_path))
    assert len(os.listdir(tmp_path / "rankscope")) == 2

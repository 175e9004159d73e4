"""What the user wants done when the last window is written: on one rank, once, beside the training."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rankscope.collector import Collector
from rankscope.collector.afterwards import start_afterwards
from support.collecting import run_under

pytest.importorskip("torch", reason="the collector records torch")

Train = Callable[[], None]
Said = Callable[[], list[str]]


def test_it_runs_once_after_the_last_window_and_training_does_not_wait(tmp_path: Path, train: Train) -> None:
    begun, training_ended, done = threading.Event(), threading.Event(), threading.Event()
    seen: list[tuple[Path, int]] = []

    def act(directory: Path) -> None:
        seen.append((directory, len(list(directory.iterdir()))))
        begun.set()
        if training_ended.wait(60):
            done.set()

    run_under(Collector(tmp_path, active=1, repeat=2, when_done=act), train, steps=9)
    assert begun.wait(60)
    assert not done.is_set()
    training_ended.set()
    assert done.wait(60)
    assert seen == [(tmp_path, 2)]


def test_endless_windows_are_over_when_training_is(tmp_path: Path, train: Train) -> None:
    called = threading.Event()
    run_under(Collector(tmp_path, repeat=0, when_done=lambda directory: called.set()), train, steps=6)
    assert called.wait(60)


def test_other_ranks_and_empty_runs_do_nothing(
    tmp_path: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[Path] = []
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    run_under(Collector(tmp_path / "a", when_done=called.append), train, steps=6)
    assert len(list((tmp_path / "a").iterdir())) == 1
    collector = Collector(tmp_path / "b", when_done=called.append)
    collector.start()
    assert called == []


def test_the_lowest_recording_rank_stands_in_for_rank_0(
    tmp_path: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = threading.Event()
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    run_under(Collector(tmp_path, ranks=[1], when_done=lambda directory: called.set()), train, steps=6)
    assert called.wait(60)


def test_a_fault_is_one_warning(tmp_path: Path, said: Said) -> None:
    def fail(directory: Path) -> None:
        raise OSError(f"no route from {directory.name}")

    start_afterwards(fail, tmp_path).join(60)
    assert len(said()) == 1
    assert "traces are complete" in said()[0]
    assert f"no route from {tmp_path.name}" in said()[0]

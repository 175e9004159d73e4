"""Tasks that processes share out among themselves, and the results that they hand over."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from rankscope.readers.handover import Handover, Message, open_handover, work_through
from rankscope.readers.workers import messages_of, start_workers

TASKS = tuple(range(200))


def double(task: int, times: int) -> int:
    return times * task


def test_each_task_is_done_once_by_several_processes(tmp_path: Path) -> None:
    """By two workers from the first on, and by this process from the last on."""
    handover = Handover(tmp_path)
    with start_workers(2, work_through, handover, double, TASKS, 2) as workers:
        own = [task for task in reversed(TASKS) if handover.claim(task, otherwise=True)]
        done = {message.task: handover.take(message) for message in messages_of(workers)}
    assert sorted([*own, *done]) == list(TASKS)
    assert done == {task: 2 * task for task in done}
    assert not list(tmp_path.glob("result*"))


def test_a_task_can_be_claimed_once(tmp_path: Path) -> None:
    handover = Handover(tmp_path)
    assert [handover.claim(7, otherwise=True) for _ in range(2)] == [True, False]


@pytest.mark.parametrize("otherwise", [True, False])
def test_where_the_folder_takes_no_files_whoever_waits_does_the_task(tmp_path: Path, otherwise: bool) -> None:
    assert Handover(tmp_path / "gone").claim(7, otherwise=otherwise) is otherwise


def test_results_go_through_the_folder_and_are_gone_then(tmp_path: Path) -> None:
    handover = Handover(tmp_path)
    message = handover.put(7, np.arange(100_000))
    assert message == Message(7, in_folder=True)
    assert handover.take(message).sum() == 4_999_950_000
    assert list(tmp_path.iterdir()) == []


def test_a_result_for_which_the_disk_has_no_room_goes_with_the_message(tmp_path: Path) -> None:
    (tmp_path / "result7").symlink_to("/dev/full")
    message = Handover(tmp_path).put(7, "x" * 100_000)
    assert message == Message(7, in_folder=False, result="x" * 100_000)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_handover() as handover:
        assert handover is not None
        handover.put(1, "left")
        assert [path.parent for path in tmp_path.rglob("result1")] == [handover.folder]
    assert list(tmp_path.iterdir()) == []


def test_none_without_a_place_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with open_handover() as handover:
        assert handover is None

"""Processes that work for another end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from rankscope.readers.workers import Worker, messages_by_now, messages_of, start_workers

Send = Callable[[Any], None]


def say(send: Send, *words: str) -> None:
    for word in words:
        send(word)


def say_and_sleep(send: Send, word: str) -> None:
    send(word)
    time.sleep(120)


def say_and_die(send: Send, word: str) -> None:
    send(word)
    os.kill(os.getpid(), signal.SIGKILL)


def fail(send: Send) -> None:
    raise ZeroDivisionError


def environment_of(send: Send, name: str) -> None:
    send(os.environ.get(name))


def test_messages_of_several_come_until_all_have_ended() -> None:
    with start_workers(2, say, "a", "b") as workers:
        assert sorted(messages_of(workers)) == ["a", "a", "b", "b"]
        assert list(messages_by_now(workers)) == []
    assert [worker.was_killed for worker in workers] == [False, False]


def test_workers_finish_what_they_do_where_the_block_ends_before_them() -> None:
    with start_workers(2, say, "a") as workers:
        pass
    assert [worker.process.exitcode for worker in workers] == [0, 0]


def be_interrupted(started: list[Worker]) -> None:
    with start_workers(2, say_and_sleep, "a") as workers:
        started += workers
        found: list[str] = []
        while len(found) < 2:
            found += messages_by_now(workers)
        assert found == ["a", "a"]
        assert list(messages_by_now(workers)) == []  # waits for nobody
        raise KeyboardInterrupt


@pytest.mark.timeout(60)
def test_workers_are_ended_when_they_are_interrupted() -> None:
    started: list[Worker] = []
    with pytest.raises(KeyboardInterrupt):
        be_interrupted(started)
    assert [worker.process.exitcode for worker in started] == [-signal.SIGTERM] * 2


def test_one_that_was_killed_said_what_it_said() -> None:
    with start_workers(1, say_and_die, "a") as workers:
        assert list(messages_of(workers)) == ["a"]
    assert workers[0].was_killed


def test_one_that_failed_was_not_killed(capfd: pytest.CaptureFixture[str]) -> None:
    with start_workers(1, fail) as workers:
        assert list(messages_of(workers)) == []
    assert not workers[0].was_killed
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_there_are_fewer_where_the_system_gives_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    spawned = multiprocessing.get_context("spawn").Process
    start = spawned.start
    started: list[Any] = []

    def start_one(process: Any) -> None:
        if started:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        started.append(process)
        start(process)

    monkeypatch.setattr(spawned, "start", start_one)
    with start_workers(3, say, "a") as workers:
        assert list(messages_of(workers)) == ["a"]
        assert len(workers) == 1


@pytest.mark.parametrize(("own", "seen"), [(None, "1"), ("4", "4")])
def test_numpy_starts_one_thread_in_workers_and_the_environment_is_left_as_it_was(
    own: str | None, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if own is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", own)
    with start_workers(1, environment_of, "OPENBLAS_NUM_THREADS") as workers:
        assert list(messages_of(workers)) == [seen]
    assert os.environ.get("OPENBLAS_NUM_THREADS") == own

"""Processes that read for another end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing.process import BaseProcess

import pytest

from rankscope.readers.workers import run_in, worker_pool


def environment_of(name: str) -> str | None:
    """An environment variable, as a worker sees it."""
    return os.environ.get(name)


def sleep_and_be_interrupted(workers: list[BaseProcess]) -> None:
    others = set(multiprocessing.active_children())
    with worker_pool(1) as pool:
        assert run_in(pool, int, "7") == 7
        workers += set(multiprocessing.active_children()) - others
        pool.submit(time.sleep, 120)
        time.sleep(0.5)
        raise KeyboardInterrupt


@pytest.mark.timeout(60)
def test_workers_are_ended_when_they_are_interrupted() -> None:
    workers: list[BaseProcess] = []
    with pytest.raises(KeyboardInterrupt):
        sleep_and_be_interrupted(workers)
    (worker,) = workers
    worker.join()
    assert worker.exitcode == -signal.SIGTERM


def test_one_that_was_killed_gives_nothing() -> None:
    with worker_pool(1) as pool:
        assert run_in(pool, os.kill, os.getpid(), 0) is None  # may be sent a signal, and returns nothing
        assert run_in(pool, os._exit, 9) is None
        assert run_in(pool, int, "7") is None  # the pool is given up


@pytest.mark.parametrize(("own", "seen"), [(None, "1"), ("4", "4")])
def test_numpy_starts_one_thread_in_workers_and_the_environment_is_left_as_it_was(
    own: str | None, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if own is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", own)
    with worker_pool(1) as pool:
        assert run_in(pool, environment_of, "OPENBLAS_NUM_THREADS") == seen
    assert os.environ.get("OPENBLAS_NUM_THREADS") == own

"""Processes that read for this one: ended at once with it, and with whatever interrupts it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing.process import BaseProcess
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

_LOOK_FOR_PARENT_S = 1.0
_FOR_WORKERS = {"OPENBLAS_NUM_THREADS": "1"}
"""numpy would start a thread per core in each worker, for sums that readers do not have: a third of its start."""


@contextmanager
def worker_pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes are ended, whatever they do, when the block is left by an exception."""
    # Not fork: a parent with threads (a dashboard, a progress bar) could deadlock its children.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with (
        _environment(_FOR_WORKERS),
        ProcessPoolExecutor(
            processes, context, initializer=_end_with_parent, initargs=(os.getpid(),)
        ) as pool,
        ExitStack() as unless_all_is_done,
    ):
        unless_all_is_done.callback(_stop_at_once, pool, others)
        yield pool
        unless_all_is_done.pop_all()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for processes that are started meanwhile, where they are not set already."""
    added = {name: text for name, text in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def run_in(
    pool: ProcessPoolExecutor, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs
) -> _R | None:
    """What a worker makes of a call; None if a worker was killed, this one or another."""
    try:
        return pool.submit(function, *args, **kwargs).result()
    except BrokenProcessPool:
        return None


def _stop_at_once(pool: ProcessPoolExecutor, others: set[BaseProcess]) -> None:
    """End the workers: whoever interrupts does not want to wait until the files at hand have been read.

    Args:
        pool: their pool.
        others: processes that were there before it.
    """
    pool.shutdown(wait=False, cancel_futures=True)
    for process in set(multiprocessing.active_children()) - others:
        process.terminate()


def _end_with_parent(parent: int) -> None:
    """Let a worker end without a word on Ctrl-C, and when its parent is gone.

    Ctrl-C goes to all processes of a terminal, and the parent speaks. A parent that was killed says nothing to
    its workers: they would wait for their next file for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_FOR_PARENT_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

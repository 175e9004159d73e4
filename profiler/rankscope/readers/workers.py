"""Processes that work for this one: ended at once with it, and with whatever interrupts it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

_LOOK_FOR_PARENT_S = 1.0
_FOR_WORKERS = {"OPENBLAS_NUM_THREADS": "1"}
"""numpy would start a thread per core in each worker, for sums that readers do not have: a third of its start."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A process, and the end of the pipe from it."""

    process: BaseProcess
    messages: Connection

    @property
    def was_killed(self) -> bool:
        """Whether a signal ended it."""
        return (self.process.exitcode or 0) < 0


@contextmanager
def start_workers(
    count: int, work: Callable[..., None], *args: Any, scratch: Path | None = None
) -> Iterator[tuple[Worker, ...]]:
    """Processes that call `work(send, *args)`; whatever they do, they are ended when the block is left by an exception.

    Args:
        count: how many; fewer are there where the system gives no more.
        work: a function of a module; `send` takes messages for this process.
        args: what else it is given.
        scratch: a folder that workers remove where this process is killed, and cannot do it itself.
    """
    # Not fork: a parent with threads (a dashboard, a progress bar) could deadlock its children.
    context = multiprocessing.get_context("spawn")
    workers: list[Worker] = []
    with ExitStack() as at_the_end, ExitStack() as unless_all_is_done:
        with _environment(_FOR_WORKERS):
            for _ in range(count):
                receive, send = context.Pipe(duplex=False)
                process = context.Process(
                    target=_run, args=(os.getpid(), scratch, send, work, args), daemon=True
                )
                try:
                    process.start()
                except OSError:  # too many processes, or too little memory: there are fewer then
                    receive.close()
                    break
                finally:
                    send.close()
                workers.append(Worker(process, receive))
                at_the_end.callback(receive.close)
                at_the_end.callback(process.join)
                # Whoever interrupts does not want to wait until the files at hand have been read.
                unless_all_is_done.callback(process.terminate)
        yield tuple(workers)
        unless_all_is_done.pop_all()


def messages_of(workers: Sequence[Worker]) -> Iterator[Any]:
    """The messages of workers as they come, until all workers have ended, by themselves or killed."""
    open_ends = [worker.messages for worker in workers]
    while open_ends:
        yield from _messages_in(open_ends, None)


def messages_by_now(workers: Sequence[Worker]) -> Iterator[Any]:
    """The messages that have come."""
    yield from _messages_in([worker.messages for worker in workers], 0)


def _messages_in(ends: list[Connection], timeout_s: float | None) -> Iterator[Any]:
    ready = wait(ends, timeout_s)
    for end in [end for end in ends if end in ready]:
        try:
            yield end.recv()
        except (EOFError, OSError):  # it ended, or was killed while it sent one
            ends.remove(end)


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


def _run(
    parent: int, scratch: Path | None, send: Connection, work: Callable[..., None], args: tuple[Any, ...]
) -> None:
    """Work, and end without a word on Ctrl-C, and when the parent is gone.

    Ctrl-C goes to all processes of a terminal, and the parent speaks. A parent that was killed says nothing to
    its workers: they would go on for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def end_alone() -> None:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_FOR_PARENT_S)
        end_alone()

    threading.Thread(target=watch, daemon=True).start()
    try:
        work(send.send, *args)
    except BrokenPipeError:  # nobody listens any more
        end_alone()

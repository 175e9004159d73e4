"""A folder through which processes share tasks out among themselves and hand results over.

A task is whose file it is: made by one process only, and whatever happens to that process, no lock is left behind. A
result that is large goes through a file as well. A pipe holds 64 KiB, and a process that decodes leaves no time for the
thread that would empty it: whoever sends would wait.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """What a process sends when it is done with a task: the result, unless it lies in the folder."""

    task: int
    in_folder: bool
    result: Any = None


@dataclass(frozen=True, slots=True)
class Handover:
    """Tasks by number, and their results."""

    folder: Path

    def claim(self, task: int, *, otherwise: bool) -> bool:
        """Whether the task is this process's from now on; `otherwise` where the folder takes no files."""
        try:
            os.close(os.open(self.folder / f"task{task}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        except OSError:
            return otherwise
        return True

    def put(self, task: int, result: object) -> Message:
        """Lay a result down for the other process."""
        path = self.folder / f"result{task}"
        try:
            with path.open("wb") as file:
                pickle.dump(result, file, protocol=pickle.HIGHEST_PROTOCOL)
        except OSError:  # no room on the disk: by the pipe then, however long it takes
            path.unlink(missing_ok=True)
            return Message(task, in_folder=False, result=result)
        return Message(task, in_folder=True)

    def take(self, message: Message) -> Any:
        """The result that a message tells of; it is gone from the folder afterwards."""
        if not message.in_folder:
            return message.result
        path = self.folder / f"result{message.task}"
        with path.open("rb") as file:
            path.unlink()
            return pickle.load(file)  # noqa: S301 - written by a process of our own, in a folder of our own


@contextmanager
def open_handover() -> Iterator[Handover | None]:
    """A folder for a while; None where there is no place for temporary files."""
    try:
        folder = TemporaryDirectory(prefix="rankscope-", ignore_cleanup_errors=True)
    except OSError:
        yield None
        return
    with folder as path:
        yield Handover(Path(path))


def work_through(
    send: Callable[[Message], None],
    handover: Handover,
    do: Callable[..., object],
    tasks: tuple[Any, ...],
    *args: Any,
) -> None:
    """Do the tasks that no other process has claimed, from the first on; whoever waits does what nobody claimed."""
    for number, task in enumerate(tasks):
        if handover.claim(number, otherwise=False):
            send(handover.put(number, do(task, *args)))

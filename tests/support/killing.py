"""A reader of files that dies on some of them, as the kernel would kill it for want of memory."""

from __future__ import annotations

import os
import signal

from rankscope.readers import side_by_side
from rankscope.readers.discovery import TraceSource
from rankscope.readers.one_file import Outcome, ReadOptions, read_one

_read_one = read_one
_do = side_by_side._do


def do_or_die(task: side_by_side._Task, options: ReadOptions) -> object:
    """Do a task in a worker process; the worker is killed if the file is called so."""
    _die_of(task.source)
    return _do(task, options)


def read_or_die(source: TraceSource, options: ReadOptions) -> Outcome:
    """Read a file in a worker process; the worker is killed if the file is called so."""
    _die_of(source)
    return _read_one(source, options)


def _die_of(source: TraceSource) -> None:
    if source.name.startswith("killer"):
        os.kill(os.getpid(), signal.SIGKILL)

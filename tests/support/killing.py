"""Readers of files that die on some of them, as the kernel would kill them for want of memory, or fail on all."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

from rankscope.readers import side_by_side
from rankscope.readers.one_file import ReadOptions

_do = side_by_side._do


def do_or_die(task: side_by_side._Task, options: ReadOptions) -> object:
    """Do a task; a worker process is killed if the file is called so, and the one that started it awaits that."""
    if multiprocessing.parent_process() is None:
        while multiprocessing.active_children():
            time.sleep(0.01)
    elif task.source.name.startswith("killer"):
        os.kill(os.getpid(), signal.SIGKILL)
    return _do(task, options)


def fail_in_workers(task: side_by_side._Task, options: ReadOptions) -> object:
    """Do a task; every worker process fails, and the one that started it awaits that."""
    if multiprocessing.parent_process() is not None:
        raise ZeroDivisionError
    return do_or_die(task, options)

"""A reader of files that dies on some of them, as the kernel would kill it for want of memory."""

from __future__ import annotations

import os
import signal

from rankscope.readers import run_reader
from rankscope.readers.discovery import TraceSource

_read_one = run_reader._read_one


def read_or_die(source: TraceSource, options: run_reader.ReadOptions) -> run_reader._Outcome:
    """Read a file in a worker process; the worker is killed if the file is called so."""
    if source.name.startswith("killer"):
        os.kill(os.getpid(), signal.SIGKILL)
    return _read_one(source, options)

"""Carries out queued analyses one after another, each in a process of its own; survives a kill and goes on."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import IO

import msgspec

from rankscope.errors import RankscopeError, RunNotFoundError, UsageError
from rankscope.store import Job, Store
from rankscope_dashboard.limits import Limits, Retention
from rankscope_dashboard.worker import RESULT_FILE, Result, Task

_LOGGER = logging.getLogger(__name__)

_MOST_ATTEMPTS = 3
_RETRY_SECONDS = 5.0
_POLL_SECONDS = 0.05
_SWEEP_SECONDS = 600.0


class WorkerProcess:
    """A worker that has imported everything and waits for its one task."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rankscope_dashboard.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # its own processes, which read side by side, end with it
        )

    def start(self, task: Task) -> None:
        """Hand over the task."""
        assert self._process.stdin is not None  # noqa: S101 - opened as a pipe above
        with contextlib.suppress(BrokenPipeError):  # a dead worker shows when it is waited for
            self._process.stdin.write(msgspec.json.encode(task) + b"\n")
            self._process.stdin.flush()

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """End it, whatever it does."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()


class Supervisor:
    """Takes jobs from the queue; one thread of the server.

    Raises:
        UsageError: another server uses the same spool folder.
    """

    def __init__(self, store: Store, limits: Limits, retention: Retention | None = None) -> None:
        self._store = store
        self._retention = retention or Retention()
        self._jobs = store.jobs
        self._limits = limits
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._next: WorkerProcess | None = None
        self._thread = threading.Thread(target=self._run, name="rankscope-supervisor", daemon=True)
        self._swept_at = 0.0
        self._lock = _lock_folder(store.spool)

    def start(self) -> None:
        """Begin, with what an earlier server left undone."""
        for job in self._jobs.all():
            if job.state == "analysing":
                self._jobs.save(replace(job, state="queued"))
        self._next = WorkerProcess()
        self._thread.start()

    def notify(self) -> None:
        """Say that there is something in the queue."""
        self._wake.set()

    def stop(self) -> None:
        """End; what is under way is done again by the next server."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._next is not None:
            self._next.stop()
        self._lock.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                is_idle = not self._do_next()
            except (OSError, RankscopeError) as error:  # what could not be done stays in the queue
                _LOGGER.warning("the store %s cannot be used, trying again: %s", self._store.url, error)
                self._stopping.wait(_RETRY_SECONDS)
                continue
            if is_idle:
                self._wake.wait(timeout=_SWEEP_SECONDS)
                self._wake.clear()

    def _do_next(self) -> bool:
        """Analyse the oldest queued upload; whether there was one."""
        self._sweep()
        job = next((job for job in self._jobs.all() if job.state == "queued"), None)
        if job is not None:
            self._finish(job.run_id, self._analyse(job))
        return job is not None

    def _sweep(self) -> None:
        if time.monotonic() - self._swept_at > _SWEEP_SECONDS or self._swept_at == 0.0:
            self._jobs.drop_abandoned(self._limits.abandoned_seconds)
            self._apply_retention()
            self._swept_at = time.monotonic()

    def _apply_retention(self) -> None:
        wanted = self._retention
        if wanted == Retention():
            return
        age = None if wanted.max_age_seconds is None else timedelta(seconds=wanted.max_age_seconds)
        try:
            self._store.apply_retention(max_runs=wanted.max_runs, max_age=age)
        except (OSError, RankscopeError) as error:  # old runs stay until the next time
            _LOGGER.warning("old runs of %s cannot be deleted: %s", self._store.url, error)

    def _analyse(self, job: Job) -> str | None:
        """Why the analysis failed; "" if it did not, None if the server is stopping."""
        if self._is_stored(job.run_id):  # the last server died between storing it and saying so
            return ""
        if job.attempts >= _MOST_ATTEMPTS:
            return (
                f"the analysis was cut off {job.attempts} times; it may need more memory than the machine has"
            )
        try:
            self._jobs.change(
                job.run_id, lambda job: replace(job, state="analysing", attempts=job.attempts + 1)
            )
        except RunNotFoundError:
            return ""
        result = self._jobs.file_path(job.run_id, 0).parent.parent / RESULT_FILE
        result.unlink(missing_ok=True)
        task = Task(
            kind="analyse",
            store=self._store.url,
            spool=str(self._store.spool),
            run_id=job.run_id,
            result=str(result),
            limits=self._limits,
        )
        worker, self._next = self._next or WorkerProcess(), None
        try:
            worker.start(task)
            self._next = WorkerProcess()
            return self._wait(worker, job.run_id, result)
        finally:
            worker.stop()

    def _wait(self, worker: WorkerProcess, run_id: str, result: Path) -> str | None:
        ends_at = time.monotonic() + self._limits.analysis_seconds
        while worker.is_running():
            if self._stopping.is_set():
                return None
            if self._jobs.get(run_id) is None:
                return ""
            if time.monotonic() > ends_at:
                return (
                    f"the analysis took longer than {self._limits.analysis_seconds:.0f} s and was ended; upload "
                    "fewer steps or ranks, or raise --analysis-seconds"
                )
            time.sleep(_POLL_SECONDS)
        return read_result(result, worker.exit_status)

    def _finish(self, run_id: str, error: str | None) -> None:
        if error is None:
            return
        if self._jobs.get(run_id) is None:  # deleted meanwhile, perhaps just after it was stored
            self._store.delete(run_id)
        elif error:
            with contextlib.suppress(RunNotFoundError):
                self._jobs.fail(run_id, error)
        else:
            self._jobs.remove(run_id)

    def _is_stored(self, run_id: str) -> bool:
        try:
            self._store.manifest(run_id)
        except RankscopeError:
            return False
        return True


def read_result(path: Path, exit_status: int | None) -> str:
    """Why a task failed, "" if it did not."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Result).error
    except (FileNotFoundError, msgspec.MsgspecError):
        if exit_status is not None and exit_status < 0:
            return (
                f"the process that analysed it was killed (signal {-exit_status}), perhaps for want of memory"
            )
        return "an internal error of rankscope; the server's log says more. Please report it with the traces"


def _lock_folder(folder: Path) -> IO[bytes]:
    """An open file that no other server can lock; closing it, or dying, frees it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / "lock").open("ab")
    try:
        import fcntl
    except ImportError:  # not on every system
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise UsageError(
            f"another rankscope dashboard uses {folder}; stop it, or give this one a --spool folder of its own"
        ) from error
    return file

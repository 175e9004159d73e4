"""Merged traces: made by a process of their own when first asked for, and kept for the next time."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
from anyio import to_thread

from rankscope.store import Store
from rankscope_dashboard.limits import Limits
from rankscope_dashboard.refusal import RefusalError
from rankscope_dashboard.supervisor import WorkerProcess, read_result
from rankscope_dashboard.worker import Task

_MOST_KEPT = 20
_POLL_SECONDS = 0.05


class MergedTraces:
    """The merged traces of a store's runs, in a folder of the spool."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._lock = anyio.Lock()

    async def get(self, run_id: str) -> Path:
        """The gzip file of a run's merged trace.

        Raises:
            RunNotFoundError: the store does not hold the run.
            RefusalError: it could not be made.
        """
        record = await to_thread.run_sync(self._store.record, run_id)
        folder = self._store.spool / "merged"
        path = folder / f"{record.content}.json.gz"
        async with self._lock:  # one at a time: it takes a core and memory
            if not path.exists():
                folder.mkdir(parents=True, exist_ok=True)
                await self._make(run_id, path)
                _keep_latest(folder)
        return path

    async def _make(self, run_id: str, path: Path) -> None:
        part, result = path.with_suffix(".part"), path.with_suffix(".result")
        result.unlink(missing_ok=True)
        worker = WorkerProcess()
        try:
            task = Task(
                kind="merge",
                store=self._store.url,
                spool=str(self._store.spool),
                run_id=run_id,
                result=str(result),
                output=str(part),
                limits=self._limits,
            )
            await to_thread.run_sync(worker.start, task)
            with anyio.move_on_after(self._limits.analysis_seconds):
                while worker.is_running():
                    await anyio.sleep(_POLL_SECONDS)
            error = "it takes too long" if worker.is_running() else read_result(result, worker.exit_status)
            if error:
                raise RefusalError(500, "no-trace", f"the merged trace could not be made: {error}")
            part.replace(path)
        finally:
            worker.stop()
            part.unlink(missing_ok=True)
            result.unlink(missing_ok=True)


def _keep_latest(folder: Path) -> None:
    """Drop all but the latest merged traces."""
    now = time.time()
    paths = sorted(folder.glob("*.json.gz"), key=lambda path: now - path.stat().st_mtime)
    for path in paths[_MOST_KEPT:]:
        path.unlink(missing_ok=True)

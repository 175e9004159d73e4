"""The process that analyses one upload, or makes one merged trace, and ends.

`python -m rankscope_dashboard.worker` imports what it needs, then waits for one task as a line of JSON on its
standard input. It ends when that closes, so that it never outlives the server.
"""

from __future__ import annotations

import gzip
import os
import signal
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from rankscope.errors import InputError, RankscopeError
from rankscope.pipeline import ReadOptions, analyze_fully
from rankscope.pipeline.keep import KeepOptions, keep_sources
from rankscope.pipeline.merged_trace import merged_trace
from rankscope.readers.discovery import TraceSource
from rankscope.store import Job, Progress, Store, open_store
from rankscope.store.blobs import write_whole
from rankscope_dashboard.archives import Unpacker
from rankscope_dashboard.content import kind_of
from rankscope_dashboard.limits import Limits
from rankscope_dashboard.names import make_unique

RESULT_FILE = "result.json"
UNPACKED_FOLDER = "unpacked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to do.

    Attributes:
        kind: "analyse" an upload, or "merge" a stored run into one trace.
        store, spool: the store's URL and the folder of its uploads.
        run_id: the run.
        result: file that receives the `Result`.
        output: for "merge", the gzip file to write.
        limits: the server's limits.
    """

    kind: Literal["analyse", "merge"]
    store: str
    spool: str
    run_id: str
    result: str
    output: str = ""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a task: why it failed, "" if it did not."""

    error: str = ""


def main() -> None:
    """Wait for a task and carry it out."""
    line = sys.stdin.buffer.readline()
    if not line:
        return
    task = msgspec.json.decode(line, type=Task)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit_memory(task.limits.analysis_memory_bytes)
    store = open_store(task.store, spool=task.spool)
    try:
        if task.kind == "analyse":
            analyse(store, task.run_id, task.limits)
        else:
            merge(store, task.run_id, Path(task.output))
        error = ""
    except RankscopeError as fault:
        error = str(fault)
    except OSError as fault:
        error = f"the server could not keep the run: {fault}"
    except MemoryError:
        error = "the analysis needs more memory than the server allows; upload fewer steps or ranks"
    write_whole(Path(task.result), msgspec.json.encode(Result(error=error)))


def analyse(store: Store, run_id: str, limits: Limits) -> None:
    """Analyse an upload and put it into the store.

    Raises:
        InputError: there is nothing to analyse, or an archive is damaged or too large.
    """
    job = store.jobs.get(run_id)
    if job is None:
        return

    def tell(share: float, stage: str) -> None:
        store.jobs.report_progress(run_id, Progress(share=round(share, 3), stage=stage))

    tell(0.0, "unpacking")
    sources = list_sources(store, job, limits)
    if not sources:
        raise InputError(
            "no trace among the files: expected JSON that torch.profiler or rankscope.Collector wrote"
        )
    options = KeepOptions(
        name=job.name,
        tags=job.tags,
        run_id=run_id,
        created_at=job.created_at,
        source="upload",
        keep_traces=job.keep_traces,
        read=ReadOptions(max_unpacked_bytes=limits.unpacked_file_bytes, processes=0),
    )
    keep_sources(store, sources, options, tell)


def list_sources(store: Store, job: Job, limits: Limits) -> list[TraceSource]:
    """The traces of an upload; archives are taken apart.

    Raises:
        InputError: an archive is damaged or too large.
    """
    folder = store.jobs.file_path(job.run_id, 0).parent.parent / UNPACKED_FOLDER
    _empty(folder)
    unpacker = Unpacker(folder, limits)
    found: list[tuple[str, Path]] = []
    for number, file in enumerate(job.files):
        path = store.jobs.file_path(job.run_id, number)
        if kind_of(path) in ("tar", "zip"):
            found += [(inner.name, inner.path) for inner in unpacker.unpack(path, file.name)]
        else:
            found.append((file.name, path))
    names = make_unique([name for name, _ in found])
    return [
        TraceSource(name=name, location=str(path), size_bytes=path.stat().st_size)
        for name, (_, path) in zip(names, found, strict=True)
    ]


def merge(store: Store, run_id: str, output: Path) -> None:
    """Write all ranks of a stored run as one Chrome trace, gzipped."""
    analysis = analyze_fully(store.run(run_id))
    with gzip.open(output, "wt", encoding="ascii", compresslevel=4) as file:
        for piece in merged_trace(analysis.results, analysis.together):
            file.write(piece)


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():  # what an earlier attempt left
        path.unlink()


def _end_with_parent() -> None:
    while os.read(0, 1):
        continue
    if os.getpid() == os.getpgid(0):
        os.killpg(0, signal.SIGKILL)  # with the processes that read for it
    os._exit(1)


def _limit_memory(limit_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # not on every system
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
    if soft == resource.RLIM_INFINITY or wanted < soft:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


if __name__ == "__main__":
    main()

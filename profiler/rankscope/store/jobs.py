"""Uploads on their way into the store, in a local folder that outlives the server: the queue and its states.

Each job is a folder `<run id>/` with `job.json` (replaced whole at every change) and `files/<number>`. A
job that was being analysed when the server died is found as such and done again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec

from rankscope.errors import RunNotFoundError
from rankscope.store.blobs import write_whole
from rankscope.store.record import check_run_id

State = Literal["receiving", "queued", "analysing", "ready", "failed"]

_JOB_FILE = "job.json"
_PROGRESS_FILE = "progress.json"
_FILES_FOLDER = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """How far a run has come.

    Attributes:
        run_id, name, tags: as in its record.
        state: "receiving" - its files are being uploaded; "queued"; "analysing"; "ready" - it is in the store;
            "failed" - `message` says why.
        progress: done share of the present state, 0..1; None if unknown.
        stage: what is going on, for people.
        message: why it failed; "" otherwise.
        created_at: when the upload began, UTC, ISO 8601.
    """

    run_id: str
    name: str
    tags: dict[str, str] = field(default_factory=dict)
    state: State
    progress: float | None = None
    stage: str = ""
    message: str = ""
    created_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """One file of an upload: the client's name (to be shown, never a path) and its announced size, if any."""

    name: str
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One upload.

    Attributes:
        run_id: the run that it becomes.
        name, tags: given by the client.
        created_at: UTC, ISO 8601.
        keep_traces: whether the trace files go into the store.
        state: "receiving", "queued", "analysing" or "failed".
        files: its files, by number.
        attempts: how often an analysis was begun.
        message: why it failed.
    """

    run_id: str
    name: str
    tags: dict[str, str] = field(default_factory=dict)
    created_at: str
    keep_traces: bool = True
    state: State = "receiving"
    files: list[JobFile] = field(default_factory=list)
    attempts: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the process that analyses says of itself."""

    share: float | None = None
    stage: str = ""


class Jobs:
    """The jobs in a folder. One server writes; any process may read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def all(self) -> list[Job]:
        """All jobs, oldest first."""
        try:
            names = sorted(path.name for path in self.folder.iterdir() if path.is_dir())
        except FileNotFoundError:
            return []
        return [job for name in names if (job := self._read(name)) is not None]

    def get(self, run_id: str) -> Job | None:
        """The job of a run, or None."""
        return self._read(check_run_id(run_id))

    def save(self, job: Job) -> Job:
        """Write a job; it is on the disk when this returns."""
        folder = self._folder_of(job.run_id)
        (folder / _FILES_FOLDER).mkdir(parents=True, exist_ok=True)
        write_whole(folder / _JOB_FILE, msgspec.json.encode(job))
        return job

    def change(self, run_id: str, change: Callable[[Job], Job]) -> Job:
        """Write what `change` makes of a job.

        Raises:
            RunNotFoundError: there is no such job.
        """
        job = self.get(run_id)
        if job is None:
            raise RunNotFoundError(f"no upload {run_id} is under way; it may be done, failed or deleted")
        return self.save(change(job))

    def fail(self, run_id: str, message: str) -> None:
        """Mark a job as failed and drop its files."""
        self.change(run_id, lambda job: replace(job, state="failed", message=message))
        for path in self._folder_of(run_id).iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)

    def remove(self, run_id: str) -> bool:
        """Remove a job and its files; whether there was one."""
        folder = self._folder_of(run_id)
        # Without job.json the rest is nobody's, whatever happens in the middle of the removal.
        existed = (folder / _JOB_FILE).exists()
        (folder / _JOB_FILE).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        return existed

    def file_path(self, run_id: str, number: int) -> Path:
        """Where the bytes of a file are."""
        return self._folder_of(run_id) / _FILES_FOLDER / f"{number:05d}"

    def received_bytes(self, run_id: str, number: int) -> int:
        """How many bytes of a file have arrived."""
        try:
            return self.file_path(run_id, number).stat().st_size
        except FileNotFoundError:
            return 0

    def report_progress(self, run_id: str, progress: Progress) -> None:
        """Say how far an analysis has come; cheap, and lost in a crash."""
        path = self._folder_of(run_id) / _PROGRESS_FILE
        temporary = path.with_suffix(".part")
        try:
            temporary.write_bytes(msgspec.json.encode(progress))
            temporary.replace(path)
        except FileNotFoundError:  # the job was deleted meanwhile
            return

    def status(self, job: Job) -> RunStatus:
        """How far a job has come."""
        progress = self._progress(job)
        return RunStatus(
            run_id=job.run_id,
            name=job.name,
            tags=job.tags,
            state=job.state,
            progress=progress.share,
            stage=progress.stage,
            message=job.message,
            created_at=job.created_at,
        )

    def drop_abandoned(self, max_age_seconds: float) -> list[str]:
        """Remove uploads to which nothing was added for so long, and those that failed so long ago; their ids."""
        oldest = time.time() - max_age_seconds
        abandoned = [
            job.run_id
            for job in self.all()
            if job.state in ("receiving", "failed") and self._touched(job) < oldest
        ]
        for run_id in abandoned:
            self.remove(run_id)
        return abandoned

    def _touched(self, job: Job) -> float:
        """When something was last added; now, if the job has just been removed."""
        paths = [self._folder_of(job.run_id) / _JOB_FILE]
        paths += [self.file_path(job.run_id, number) for number in range(len(job.files))]
        times = []
        for path in paths:
            with suppress(FileNotFoundError):
                times.append(path.stat().st_mtime)
        return max(times, default=time.time())

    def _progress(self, job: Job) -> Progress:
        if job.state == "receiving":
            return self._receiving_progress(job)
        if job.state != "analysing":
            return Progress()
        try:
            content = (self._folder_of(job.run_id) / _PROGRESS_FILE).read_bytes()
            return msgspec.json.decode(content, type=Progress)
        except (FileNotFoundError, msgspec.MsgspecError):
            return Progress(stage="starting")

    def _receiving_progress(self, job: Job) -> Progress:
        sizes = [file.size_bytes for file in job.files]
        received = sum(self.received_bytes(job.run_id, number) for number in range(len(sizes)))
        known = [size for size in sizes if size is not None]
        total = sum(known) if known and len(known) == len(sizes) else 0
        return Progress(share=min(received / total, 1.0) if total else None, stage="receiving files")

    def _folder_of(self, run_id: str) -> Path:
        return self.folder / check_run_id(run_id)

    def _read(self, run_id: str) -> Job | None:
        """The job; None where there is none, or its file is damaged: it is nobody's then, and holds up no other."""
        try:
            return msgspec.json.decode((self.folder / run_id / _JOB_FILE).read_bytes(), type=Job)
        except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
            return None

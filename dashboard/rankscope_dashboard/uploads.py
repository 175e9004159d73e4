"""Uploads: begun, filled file by file (again after an interruption), completed, queued."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from starlette.requests import Request

from rankscope.errors import RunNotFoundError
from rankscope.store import Job, JobFile, RunStatus, Store, new_run_id
from rankscope.units import format_size
from rankscope_dashboard.content import kind_of
from rankscope_dashboard.limits import Limits
from rankscope_dashboard.names import LONGEST_TAG, MOST_TAGS, shown_name, shown_text
from rankscope_dashboard.receive import SpoolFile, body_blocks, check_length, too_large
from rankscope_dashboard.refusal import RefusalError


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """How much of a file has arrived; `size_bytes` is None where the client did not say."""

    number: int
    name: str
    size_bytes: int | None
    received_bytes: int


class Uploads:
    """Uploads into a store; lives on the server's event loop.

    Args:
        store: the store, whose `jobs` hold the uploads.
        limits: what is taken.
        on_queued: called when a run waits for its analysis.
    """

    def __init__(self, store: Store, limits: Limits, on_queued: Callable[[], None]) -> None:
        self._store = store
        self._jobs = store.jobs
        self._limits = limits
        self._on_queued = on_queued
        self._busy: set[tuple[str, int]] = set()
        self._open = 0

    def begin(
        self, name: str, tags: Mapping[str, str], files: Sequence[JobFile], *, keep_traces: bool = True
    ) -> Job:
        """A new upload, on the disk when this returns.

        Raises:
            RefusalError: it would pass a limit.
        """
        self._check_room(files)
        job = Job(
            run_id=new_run_id(),
            name=shown_name(name, "run"),
            tags=check_tags(tags),
            created_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            keep_traces=keep_traces,
            files=[replace(f, name=shown_name(f.name, f"file {n}")) for n, f in enumerate(files)],
        )
        return self._jobs.save(job)

    def add_file(self, run_id: str, name: str) -> int:
        """One more file of unknown size; its number.

        Raises:
            RefusalError: there are too many.
        """
        job = self._receiving(run_id)
        if len(job.files) >= self._limits.files:
            raise RefusalError(413, "too-many-files", f"more than {self._limits.files} files in one run")
        number = len(job.files)
        file = JobFile(name=shown_name(name, f"file {number}"))
        self._jobs.save(replace(job, files=[*job.files, file]))
        return number

    def describe(self, run_id: str, name: str, tags: Mapping[str, str], *, keep_traces: bool) -> None:
        """Give an upload its name and tags after it was begun."""
        job = self._receiving(run_id)
        self._jobs.save(
            replace(job, name=shown_name(name, "run"), tags=check_tags(tags), keep_traces=keep_traces)
        )

    def files(self, run_id: str) -> list[FileState]:
        """How much of each file has arrived."""
        job = self._receiving(run_id)
        return [
            FileState(
                number=number,
                name=file.name,
                size_bytes=file.size_bytes,
                received_bytes=self._jobs.received_bytes(run_id, number),
            )
            for number, file in enumerate(job.files)
        ]

    async def receive(self, request: Request, run_id: str, number: int, offset: int) -> int:
        """Append the request's body to a file; how much of it has arrived.

        Args:
            request: the request.
            run_id, number: which file.
            offset: where the body belongs: the number of bytes that have arrived.

        Raises:
            RefusalError: wrong offset, too large, too slow, or the file is being received by another request.
            ClientDisconnect: the client went away; what arrived is kept.
        """
        limit = self._room_of_file(run_id, number)
        received = self._jobs.received_bytes(run_id, number)
        if offset != received:
            message = f"{received} bytes of the file have arrived; go on from there, not from {offset}"
            raise RefusalError(409, "wrong-offset", message, received_bytes=received)
        check_length(request, limit - offset)
        self._check_disk(int(request.headers.get("content-length", "0")))
        with self.exclusive(run_id, number), self.counted():
            async with SpoolFile(self._jobs.file_path(run_id, number), offset) as file:
                async for block in body_blocks(request, self._limits, limit - offset):
                    await file.write(block)
                return file.size_bytes

    def complete(self, run_id: str) -> RunStatus:
        """Queue a run whose files have all arrived; saying so twice does no harm.

        Raises:
            RefusalError: files are incomplete, or hold something else than traces.
        """
        job = self._jobs.get(run_id)
        if job is None or job.state != "receiving":
            return self._store.status(run_id)
        missing = [
            f"{file.name} ({file.received_bytes} of {file.size_bytes} bytes)"
            for file in self.files(run_id)
            if file.size_bytes is not None and file.received_bytes != file.size_bytes
        ]
        if missing or not job.files:
            shown = ", ".join(missing[:5]) if missing else "the run has no files"
            raise RefusalError(409, "incomplete", f"not all has arrived: {shown}")
        self._check_content(job)
        queued = self._jobs.save(replace(job, state="queued"))
        self._on_queued()
        return self._jobs.status(queued)

    def path_of(self, run_id: str, number: int) -> Path:
        """Where the bytes of a file go."""
        return self._jobs.file_path(run_id, number)

    def drop(self, run_id: str) -> None:
        """Forget an upload."""
        self._jobs.remove(run_id)

    @contextmanager
    def exclusive(self, run_id: str, number: int) -> Iterator[None]:
        """Inside, no other request may write this file."""
        key = (run_id, number)
        if key in self._busy:
            raise RefusalError(409, "busy", "another request is sending this file; try again in some seconds")
        self._busy.add(key)
        try:
            yield
        finally:
            self._busy.discard(key)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Inside, the request counts as one that is being received."""
        if self._open >= self._limits.open_requests:
            message = f"the server is receiving {self._open} uploads already; try again in some seconds"
            raise RefusalError(503, "too-many-requests", message)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    def _receiving(self, run_id: str) -> Job:
        job = self._jobs.get(run_id)
        if job is None:
            raise RunNotFoundError(f"no upload {run_id} is under way; it may be done, failed or deleted")
        if job.state != "receiving":
            raise RefusalError(409, "not-receiving", f"the upload {run_id} is {job.state} and takes no files")
        return job

    def _room_of_file(self, run_id: str, number: int) -> int:
        """Size that a file may have in the end."""
        job = self._receiving(run_id)
        if not 0 <= number < len(job.files):
            raise RefusalError(404, "no-such-file", f"the upload has {len(job.files)} files, numbered from 0")
        announced = job.files[number].size_bytes
        others = sum(self._jobs.received_bytes(run_id, n) for n in range(len(job.files)) if n != number)
        return min(
            self._limits.file_bytes if announced is None else announced, self._limits.upload_bytes - others
        )

    def _check_room(self, files: Sequence[JobFile]) -> None:
        limits = self._limits
        if len(files) > limits.files:
            message = f"{len(files)} files are more than the {limits.files} that this server takes"
            raise RefusalError(413, "too-many-files", message)
        sizes = [file.size_bytes or 0 for file in files]
        if min(sizes, default=0) < 0:
            raise RefusalError(400, "bad-request", "a size_bytes is negative")
        for size_bytes, limit in (
            (max(sizes, default=0), limits.file_bytes),
            (sum(sizes), limits.upload_bytes),
        ):
            if size_bytes > limit:
                raise too_large(size_bytes, limit)
        waiting = sum(job.state != "failed" for job in self._jobs.all())
        if waiting >= limits.pending:
            message = f"{waiting} runs are waiting already; try again when they are done"
            raise RefusalError(503, "too-many-pending", message)
        self._check_disk(sum(sizes))

    def _check_disk(self, size_bytes: int) -> None:
        self._jobs.folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self._jobs.folder).free
        if free - size_bytes < self._limits.free_disk_bytes:
            message = f"the server's disk has {format_size(free)} left, too little for {format_size(size_bytes)} more"
            raise RefusalError(507, "disk-full", message)

    def _check_content(self, job: Job) -> None:
        unknown = []
        for number, file in enumerate(job.files):
            path = self._jobs.file_path(job.run_id, number)
            if not path.exists():
                path.touch()
            if kind_of(path) == "unknown":
                unknown.append(file.name)
        if unknown:
            self.drop(job.run_id)
            raise RefusalError(
                415,
                "not-a-trace",
                f"neither JSON nor a gzip, zip or tar file of it: {', '.join(unknown[:5])}. Upload what "
                "torch.profiler or rankscope.Collector wrote.",
                files=unknown[:100],
            )


def check_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags, cleaned for showing.

    Raises:
        RefusalError: too many, too long, or one without a key.
    """
    if len(tags) > MOST_TAGS or any(
        not k or len(k) > LONGEST_TAG or len(v) > LONGEST_TAG for k, v in tags.items()
    ):
        message = (
            f"at most {MOST_TAGS} tags, each key and value at most {LONGEST_TAG} characters, no key empty"
        )
        raise RefusalError(400, "bad-tags", message)
    return {shown_text(key): shown_text(value) for key, value in tags.items()}


def parse_tags(texts: Sequence[str]) -> dict[str, str]:
    """Tags of texts such as "branch=main".

    Raises:
        RefusalError: one has no `=`.
    """
    for text in texts:
        if not text.partition("=")[0] or "=" not in text:
            raise RefusalError(400, "bad-tags", f"the tag {text[:80]!r} is not key=value")
    return {key: value for key, _, value in (text.partition("=") for text in texts)}

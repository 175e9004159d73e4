"""Runs under a folder or an fsspec URL.

Layout: `runs/<run id>/manifest.json` names the run's files, `runs/<run id>/files/<digest>` are the files by
the digest of their content, `index/` is one small list of all runs. The manifest is written last: before that the run
does not exist, after that all of it does. Each run has its own files, so that deleting one removes it at
once and needs no search for what others still use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import msgspec

from rankscope.errors import InputError, RunNotFoundError
from rankscope.model.report import Report
from rankscope.model.run import Run
from rankscope.model.timeline import Timeline
from rankscope.renderers.to_json import read_json
from rankscope.store.blobs import COPY_BYTES, open_blobs
from rankscope.store.index import RunIndex
from rankscope.store.jobs import Jobs, RunStatus
from rankscope.store.parquet import from_parquet
from rankscope.store.record import (
    RunManifest,
    RunRecord,
    StoredFile,
    check_format,
    check_run_id,
    digest_files,
)
from rankscope.store.spool import default_spool
from rankscope.store.timeline_tables import timeline_from_tables
from rankscope.store.window_tables import problems_from_json, window_from_parquet

_RUNS = "runs"
_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file to be stored: its role and name (see `StoredFile`), and its bytes or the local file that holds them."""

    role: str
    name: str
    content: bytes | Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run to be stored: its record (sizes and digests are filled in by the store) and its files."""

    record: RunRecord
    files: Iterable[NewFile] = field(default_factory=tuple)


def open_store(url: str | Path, *, spool: str | Path | None = None) -> Store:
    """The store under a folder or an fsspec URL; it is made by the first run that is put into it.

    Args:
        url: a local folder, or a URL such as s3://bucket/prefix.
        spool: local folder for uploads on their way; by default inside a local store, and in the user's cache
            folder for a remote one.

    Raises:
        InputError: the URL cannot be used.
    """
    return Store(str(url), spool=None if spool is None else Path(spool))


class Store:
    """Runs that are kept. Safe with several processes and threads that read and write at once.

    Attributes:
        url: where it is.
        jobs: uploads that are not in the store yet.
    """

    def __init__(self, url: str, *, spool: Path | None = None) -> None:
        self._blobs = open_blobs(url)
        self._index = RunIndex(self._blobs)
        self.url = self._blobs.url
        self._spool = spool

    @cached_property
    def spool(self) -> Path:
        """Local folder for uploads on their way, and for what can be made again."""
        return self._spool or default_spool(self.url)

    @cached_property
    def jobs(self) -> Jobs:
        """Uploads that are not in the store yet."""
        return Jobs(self.spool / "jobs")

    def list_runs(
        self, query: str = "", *, tags: Mapping[str, str] | None = None, limit: int | None = None
    ) -> list[RunRecord]:
        """Runs, newest first.

        Args:
            query: words that must all occur, case-blind, in name, id, source, backend, device or tags.
            tags: tags that a run must have with these values.
            limit: at most so many.
        """
        words = query.casefold().split()
        wanted = dict(tags or {}).items()
        found = [
            record
            for record in self._index.records()
            if wanted <= record.tags.items() and (not words or _has_words(record, words))
        ]
        return found[:limit]

    def record(self, run_id: str) -> RunRecord:
        """What a list says of a run.

        Raises:
            RunNotFoundError: the store does not hold it.
        """
        return self.manifest(run_id).record

    def manifest(self, run_id: str) -> RunManifest:
        """The record and the files of a run.

        Raises:
            RunNotFoundError: the store does not hold it.
        """
        key = f"{_RUNS}/{check_run_id(run_id)}/{_MANIFEST}"
        try:
            content = self._blobs.read(key)
        except FileNotFoundError as error:
            raise RunNotFoundError(f"the store {self.url} holds no run {run_id}") from error
        return _decode_manifest(key, content)

    def status(self, run_id: str) -> RunStatus:
        """How far a run has come: on its way, failed, or ready.

        Raises:
            RunNotFoundError: neither is it on its way nor in the store.
        """
        job = self.jobs.get(run_id)
        if job is not None:
            return self.jobs.status(job)
        record = self.record(run_id)
        return RunStatus(
            run_id=run_id,
            name=record.name,
            tags=record.tags,
            state="ready",
            progress=1.0,
            created_at=record.created_at,
        )

    def pending(self) -> list[RunStatus]:
        """Runs that are on their way, or failed; oldest first."""
        return [self.jobs.status(job) for job in self.jobs.all()]

    def report(self, run_id: str) -> Report:
        """The report of a run, without rows per communication event (see `table`)."""
        return read_json(self.report_text(run_id))

    def report_text(self, run_id: str) -> bytes:
        """The report of a run as JSON."""
        return self._read(run_id, "report", "report.json")

    def table_names(self, run_id: str) -> tuple[str, ...]:
        """Names of the tables of a run."""
        return tuple(sorted(f.name for f in self.manifest(run_id).files if f.role == "table"))

    def table(self, run_id: str, name: str, columns: Sequence[str] | None = None) -> Any:  # noqa: ANN401
        """A table of a run, as a pyarrow Table.

        Args:
            run_id: the run.
            name: a list of the report (`collectives`, `communications`, `steps`, ...), `arrivals`, or `events` and
                `lanes`, which are the timeline of all ranks on the common clock (see `timeline_tables`).
            columns: only these.

        Raises:
            RunNotFoundError: there is no such run, or it has no such table: the report's list is empty.
        """
        return from_parquet(self.table_bytes(run_id, name), columns)

    def table_bytes(self, run_id: str, name: str) -> bytes:
        """A table of a run as the Parquet bytes that are kept."""
        return self._read(run_id, "table", name)

    def timeline(self, run_id: str) -> Timeline:
        """All events of all ranks on the common clock, lane by lane; read-only arrays."""
        origin_ns = int(self.report(run_id).run.origin_ns)
        if "events" not in self.table_names(run_id):
            return Timeline(origin_ns=origin_ns, step=None, start_ns=0, end_ns=0, lanes=(), names=())
        return timeline_from_tables(self.table(run_id, "events"), self.table(run_id, "lanes"), origin_ns)

    def run(self, run_id: str) -> Run:
        """The run as it was read from its traces, to be analysed again."""
        manifest = self.manifest(run_id)
        windows = {f.name: f for f in manifest.files if f.role == "window"}
        arguments = {f.name: f for f in manifest.files if f.role == "arguments"}
        return Run(
            name=manifest.record.name,
            source=manifest.record.source,
            windows=tuple(
                window_from_parquet(
                    self._read_file(run_id, windows[name]), self._read_file(run_id, arguments[name])
                )
                for name in sorted(windows)
            ),
            problems=problems_from_json(self._read(run_id, "problems", "problems.json")),
        )

    def traces(self, run_id: str) -> tuple[StoredFile, ...]:
        """The trace files that were kept."""
        return tuple(f for f in self.manifest(run_id).files if f.role == "trace")

    def open_file(self, run_id: str, file: StoredFile) -> IO[bytes]:
        """A stored file opened for reading."""
        return self._blobs.open(_file_key(run_id, file.digest))

    def put(self, run: NewRun) -> RunRecord:
        """Store a run, whole or not at all; putting it again after a crash does no harm.

        Raises:
            OSError: it could not be written.
        """
        run_id = check_run_id(run.record.run_id)
        stored: dict[tuple[str, str], StoredFile] = {}
        for new in run.files:
            file = _describe(new)
            key = _file_key(run_id, file.digest)
            if not any(file.digest == other.digest for other in stored.values()):
                if isinstance(new.content, Path):
                    self._blobs.copy_in(key, new.content)
                else:
                    self._blobs.write(key, new.content)
            stored[file.role, file.name] = file
        files = list(stored.values())
        record = replace(
            run.record,
            content=digest_files(files),
            size_bytes=sum({f.digest: f.size_bytes for f in files}.values()),
            traces=sum(f.role == "trace" for f in files),
        )
        manifest = RunManifest(record=record, files=files)
        self._blobs.write(f"{_RUNS}/{run_id}/{_MANIFEST}", msgspec.json.encode(manifest))
        self._index.add(record)
        return record

    def delete(self, run_id: str) -> bool:
        """Remove a run, or an upload on its way; whether there was one. Its files are gone when this returns."""
        was_pending = self.jobs.remove(check_run_id(run_id))
        was_stored = self._blobs.exists(f"{_RUNS}/{run_id}/{_MANIFEST}")
        if was_stored:
            self._index.remove(run_id)
            self._remove_files(run_id)
        return was_pending or was_stored

    def apply_retention(
        self,
        *,
        max_runs: int | None = None,
        max_age: timedelta | None = None,
        max_bytes: int | None = None,
        now: datetime | None = None,
    ) -> list[RunRecord]:
        """Delete the oldest runs until all limits hold; those that were deleted."""
        oldest = None if max_age is None else (now or datetime.now(timezone.utc)) - max_age
        kept, size_bytes, deleted = 0, 0, []
        for record in self._index.records():
            size_bytes += record.size_bytes
            if (
                (max_runs is not None and kept >= max_runs)
                or (max_bytes is not None and size_bytes > max_bytes)
                or (oldest is not None and datetime.fromisoformat(record.created_at) < oldest)
            ):
                deleted.append(record)
            else:
                kept += 1
        for record in deleted:
            self.delete(record.run_id)
        return deleted

    def rebuild_index(self) -> int:
        """Make the index anew from the manifests, and finish deletions that were cut short; number of runs."""
        records: list[RunRecord] = []
        self._index.replace(self._read_records(records))
        return len(records)

    def _read_records(self, seen: list[RunRecord]) -> Iterator[RunRecord]:
        deleted = set(self._index.deleted_if_readable())
        run_ids = self._blobs.names(_RUNS)
        for run_id in deleted & set(run_ids):
            self._remove_files(run_id)
        keys = [f"{_RUNS}/{run_id}/{_MANIFEST}" for run_id in run_ids if run_id not in deleted]
        for key, content in self._blobs.read_many(keys).items():
            record = _decode_manifest(key, content).record
            seen.append(record)
            yield record

    def _remove_files(self, run_id: str) -> None:
        self._blobs.delete(f"{_RUNS}/{run_id}/{_MANIFEST}")
        self._blobs.delete_folder(f"{_RUNS}/{run_id}")

    def _read(self, run_id: str, role: str, name: str) -> bytes:
        for file in self.manifest(run_id).files:
            if file.role == role and file.name == name:
                return self._read_file(run_id, file)
        raise RunNotFoundError(f"the run {run_id} has no {role} {name!r}")

    def _read_file(self, run_id: str, file: StoredFile) -> bytes:
        key = _file_key(run_id, file.digest)
        try:
            content = self._blobs.read(key)
        except FileNotFoundError as error:
            raise RunNotFoundError(f"the run {run_id} was deleted, or its file {key} was removed") from error
        if blake2b(content, digest_size=32).hexdigest() != file.digest:
            raise InputError(f"the file {key} of {self.url} is damaged: upload the run's traces again")
        return content


def _file_key(run_id: str, digest: str) -> str:
    return f"{_RUNS}/{check_run_id(run_id)}/files/{digest}"


def _describe(new: NewFile) -> StoredFile:
    digest, size_bytes = blake2b(digest_size=32), 0
    for block in _blocks(new.content):
        digest.update(block)
        size_bytes += len(block)
    return StoredFile(role=new.role, name=new.name, digest=digest.hexdigest(), size_bytes=size_bytes)


def _blocks(content: bytes | Path) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while block := file.read(COPY_BYTES):
            yield block


def _decode_manifest(key: str, content: bytes) -> RunManifest:
    try:
        return check_format(msgspec.json.decode(content, type=RunManifest))
    except msgspec.MsgspecError as error:
        raise InputError(f"the manifest {key} is damaged ({error}); delete the run's folder") from error


def _has_words(record: RunRecord, words: Sequence[str]) -> bool:
    tags = [part for pair in record.tags.items() for part in (*pair, "=".join(pair))]
    text = "\n".join(
        [record.name, record.run_id, record.source, record.backend or "", record.device or "", *tags]
    ).casefold()
    return all(word in text for word in words)

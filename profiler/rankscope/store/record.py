"""What the store knows of a run: its record in the index, and the manifest that names its files."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timezone
from hashlib import blake2b
from statistics import median

from rankscope.errors import FormatVersionError, RunNotFoundError
from rankscope.model.report import Report

STORED_RUN_NAME = "rankscope-stored-run"
STORED_RUN_VERSION = "1.0"

_RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{12}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run in a list: enough to search, sort and draw trends without opening it.

    Attributes:
        run_id: made by `new_run_id`; sorts by time of creation.
        name: short name given by whoever uploaded it.
        tags: key -> value.
        created_at: when it came into the store, UTC, ISO 8601.
        source: where it came from, for people.
        content: digest of all its files, a key for caches.
        size_bytes: bytes that its files take in the store.
        traces: number of trace files kept.
        tool_version: rankscope that analysed it.
        started_at: first event, UTC, ISO 8601; None where the traces hold no absolute time.
        backend, device: communication backend and product name of a device; None if unknown.
        world_size: ranks of the job; None if unknown.
        ranks, missing_ranks: number of ranks present and missing.
        steps: number of steps recorded.
        overlap_ratio: of the steady steps, of the run where no step is marked; None if undefined.
        exposed_communication_ns: the same part's, summed over ranks.
        step_ns: median duration of the steady steps; None without one.
        straggler: "found", "none" or "inconclusive"; None without a verdict.
        straggler_ranks: the ranks named.
        findings: number of findings by severity.
        errors: number of files, or parts of files, that are lost.
    """

    run_id: str
    name: str
    tags: dict[str, str] = field(default_factory=dict)
    created_at: str
    source: str = ""
    content: str = ""
    size_bytes: int = 0
    traces: int = 0
    tool_version: str = ""
    started_at: str | None = None
    backend: str | None = None
    device: str | None = None
    world_size: int | None = None
    ranks: int = 0
    missing_ranks: int = 0
    steps: int = 0
    overlap_ratio: float | None = None
    exposed_communication_ns: int | None = None
    step_ns: int | None = None
    straggler: str | None = None
    straggler_ranks: list[int] = field(default_factory=list)
    findings: dict[str, int] = field(default_factory=dict)
    errors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One file of a run.

    Attributes:
        role: what it is: "report", "table", "window", "arguments" or "trace".
        name: its name among those of its role; for traces the client's, to be shown and never used as a path.
        digest: blake2b-256 of its bytes in hex, under which it is kept.
        size_bytes: its size.
    """

    role: str
    name: str
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFormat:
    """Name and version of the manifest's format."""

    name: str = STORED_RUN_NAME
    version: str = STORED_RUN_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """A run in the store: it exists from the moment that this file does."""

    format: StoredFormat = field(default_factory=StoredFormat)
    record: RunRecord
    files: list[StoredFile] = field(default_factory=list)


def new_run_id(now: datetime | None = None) -> str:
    """A fresh id: time of creation in UTC to the second, then 48 random bits.

    >>> new_run_id(datetime(2026, 12, 2, 1, 30, tzinfo=timezone.utc))[:16]
    '20261202T013000-'
    """
    now = now or datetime.now(timezone.utc)
    return f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(6)}"


def check_run_id(run_id: str) -> str:
    """The id, if it is one: ids become keys of files, and nothing else may.

    Raises:
        RunNotFoundError: it is none.

    >>> check_run_id("20261202T013000-0123456789ab")
    '20261202T013000-0123456789ab'
    """
    if not _RUN_ID.fullmatch(run_id):
        raise RunNotFoundError(f"{run_id[:80]!r} is no run id; expected one such as {new_run_id()}")
    return run_id


def check_format(manifest: RunManifest) -> RunManifest:
    """The manifest, if this version can read it.

    Raises:
        FormatVersionError: it was written in another major version.
    """
    major = manifest.format.version.partition(".")[0]
    if manifest.format.name != STORED_RUN_NAME or major != STORED_RUN_VERSION.partition(".")[0]:
        raise FormatVersionError(
            f"the stored run {manifest.record.run_id} is written as {manifest.format.name} "
            f"{manifest.format.version}, and this rankscope reads {STORED_RUN_NAME} {STORED_RUN_VERSION}. Use the "
            "rankscope that wrote it, or upload the traces again."
        )
    return manifest


def digest_files(files: list[StoredFile]) -> str:
    """One digest for all files of a run, whatever their order."""
    text = "\n".join(sorted(f"{f.role} {f.name} {f.digest}" for f in files))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def describe_report(report: Report) -> dict[str, object]:
    """The fields of a `RunRecord` that come from its report, by name."""
    part = report.totals.steady or report.totals.run
    durations = [s.duration_ns for s in report.steps if s.steady and s.duration_ns is not None]
    severities = [finding.severity for finding in report.findings]
    straggler = report.straggler
    return {
        "tool_version": report.tool.version,
        "started_at": report.run.started_at,
        "backend": report.run.backend,
        "device": next(iter(report.run.devices.values()), None),
        "world_size": report.run.world_size,
        "ranks": len(report.run.ranks),
        "missing_ranks": len(report.run.missing_ranks),
        "steps": len(report.run.steps),
        "overlap_ratio": part.overlap_ratio,
        "exposed_communication_ns": part.exposed_communication_ns,
        "step_ns": round(median(durations)) if durations else None,
        "straggler": None if straggler is None else straggler.verdict,
        "straggler_ranks": [] if straggler is None else list(straggler.ranks),
        "findings": {severity: severities.count(severity) for severity in sorted(set(severities))},
        "errors": sum(problem.severity == "error" for problem in report.problems),
    }

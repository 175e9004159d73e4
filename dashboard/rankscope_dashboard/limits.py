"""How much the server takes from a client."""

from __future__ import annotations

from dataclasses import dataclass

_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which runs the server deletes: the oldest above a number, and those above an age; None for neither."""

    max_runs: int | None = None
    max_age_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of uploads and analyses.

    Attributes:
        upload_bytes: bytes of one run as they are sent.
        file_bytes: bytes of one of its files.
        files: number of its files, also inside archives.
        unpacked_file_bytes: bytes of one file once unpacked.
        unpacked_bytes: bytes of all files that an archive unpacks to.
        block_seconds: time in which 256 KiB must arrive; a slower client is cut off and can resume.
        open_requests: uploads that are received at the same time.
        pending: runs that may wait for their files or their analysis.
        abandoned_seconds: an upload to which nothing was added for so long, or that failed so long ago, is dropped.
        analysis_seconds: time that one analysis may take.
        analysis_memory_bytes: address space of one analysis.
        free_disk_bytes: what must stay free on the disk.
    """

    upload_bytes: int = 16 * _GIB
    file_bytes: int = 4 * _GIB
    files: int = 20_000
    unpacked_file_bytes: int = 16 * _GIB
    unpacked_bytes: int = 64 * _GIB
    block_seconds: float = 60.0
    open_requests: int = 64
    pending: int = 1_000
    abandoned_seconds: float = 24 * 3600.0
    analysis_seconds: float = 1800.0
    analysis_memory_bytes: int = 64 * _GIB
    free_disk_bytes: int = _GIB

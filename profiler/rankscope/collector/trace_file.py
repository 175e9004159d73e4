"""Writes one window's trace: export, put the facts in, compress, verify, and only then give it its name.

Until the last step the file has a name that no reader looks for, so a trace is either whole or absent.
"""

from __future__ import annotations

import gzip
import json
import os
import secrets
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from rankscope.collector.options import OutputOptions
from rankscope.collector.scrub import scrub_text
from rankscope.errors import RankscopeError
from rankscope.model.manifest import MANIFEST_KEY, Manifest
from rankscope.units import format_size

SUFFIX = ".pt.trace.json.gz"
_CHUNK_BYTES = 1 << 20
_GZIP_LEVEL = 3  # torch uses 9; but training waits for it
_MOST_NAMESAKES = 1000
# Kineto writes it after the last event: a text without it was cut short.
_END_KEY = b'"traceName"'
_KERNEL_ROW = b'"cat": "kernel"'
_COLLECTIVE_ROWS = (
    b'"gloo:',
    b'"nccl:',
    b'"mpi:',
    b'"ucc:',
    b"record_param_comms",
    b"ncclDevKernel",
    b"ncclKernel",
)
_MARKS = (_END_KEY, _KERNEL_ROW, *_COLLECTIVE_ROWS)
_LONGEST_MARK = max(len(mark) for mark in _MARKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTrace:
    """A trace that was written and verified.

    Attributes:
        path: its file.
        is_namesake: whether the plain name was taken by an older file, which was left as it is.
        has_kernels: whether it holds rows of GPU kernels.
        has_collectives: whether it holds rows of collective operations.
    """

    path: Path
    is_namesake: bool
    has_kernels: bool
    has_collectives: bool


def save_trace(
    export: Callable[[str], None],
    describe: Callable[[], Manifest],
    options: OutputOptions,
    *,
    delay_seconds: float,
) -> SavedTrace:
    """Write the trace of one window and return where.

    Args:
        export: writes the window as Kineto JSON to the path it is given.
        describe: the facts that go under the top-level key `rankscope`, asked for after `export`.
        options: directory, size limit, scrubbing.
        delay_seconds: time to wait before touching the run directory, so that many ranks do not write at once.

    Raises:
        RankscopeError: the trace is larger than allowed, cut short, or not readable once written.
        OSError: the directory cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="rankscope_") as scratch:
        exported = Path(scratch, "trace.json")
        try:
            export(str(exported))
            return _save_exported(exported, describe(), options, delay_seconds)
        except (KeyboardInterrupt, SystemExit):
            # torch exports a window only once: what it wrote is finished now, or it is lost.
            with suppress(RankscopeError, OSError):
                _save_exported(exported, describe(), options, 0.0)
            raise


def _save_exported(
    exported: Path, manifest: Manifest, options: OutputOptions, delay_seconds: float
) -> SavedTrace:
    compressed = exported.with_suffix(".gz")
    content = compress(exported, compressed, manifest, options)
    time.sleep(delay_seconds)
    with _partial_file(options.directory, manifest) as partial:
        _copy(compressed, partial)
        verify(partial, content.size_bytes)
        stem = f"rank_{manifest.rank:05d}.{manifest.window}"
        path = publish(partial, stem)
    return SavedTrace(
        path=path,
        is_namesake=path.name != stem + SUFFIX,
        has_kernels=_KERNEL_ROW in content.marks,
        has_collectives=not content.marks.isdisjoint(_COLLECTIVE_ROWS),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What went through the compressor: bytes of JSON, and which of the marks occurred."""

    size_bytes: int
    marks: frozenset[bytes]


def compress(source: Path, target: Path, manifest: Manifest, options: OutputOptions) -> Content:
    """Write `source` to `target` as gzip, with the manifest as its first key.

    The facts come first, so that a reader has them without going through the events. (torch's own
    `add_metadata_json` would lose what is added once the profiler has stopped.)

    Raises:
        RankscopeError: the result passes the size limit, or `source` is no whole trace.
    """
    size_bytes, tail, marks = 0, b"", set[bytes]()
    with target.open("wb") as raw, gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0) as packed:
        for chunk in _read_with_manifest(source, manifest, options):
            packed.write(chunk)
            size_bytes += len(chunk)
            text = tail + chunk
            marks.update(mark for mark in _MARKS if mark not in marks and mark in text)
            tail = text[-_LONGEST_MARK:]
            _check_limit(raw.tell(), options)
    _check_limit(target.stat().st_size, options)
    if _END_KEY not in marks or not tail.rstrip().endswith(b"}"):
        raise RankscopeError(
            f"torch.profiler wrote {source.stat().st_size} bytes of JSON that end before the trace does. "
            f"Is {tempfile.gettempdir()} full? Set TMPDIR to a larger place"
        )
    return Content(size_bytes=size_bytes, marks=frozenset(marks))


def verify(path: Path, size_bytes: int) -> None:
    """Read `path` back as a reader will.

    Raises:
        RankscopeError: it is not a whole gzip file of `size_bytes` bytes of JSON that begin with the manifest.
    """
    count, head, tail = 0, b"", b""
    try:
        with gzip.open(path) as packed:
            while chunk := packed.read(_CHUNK_BYTES):
                head = head or chunk[: len(MANIFEST_KEY) + 8]
                count += len(chunk)
                tail = (tail + chunk)[-_LONGEST_MARK:]
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise RankscopeError(f"the trace could not be read back from {path.parent}: {fault}") from fault
    if count != size_bytes or not head.startswith(_open_object()) or not tail.rstrip().endswith(b"}"):
        raise RankscopeError(
            f"the trace read back from {path.parent} is not the one written: {count} of {size_bytes} bytes of JSON"
        )


def publish(partial: Path, stem: str) -> Path:
    """Give `partial` its final name in its own directory, never that of an existing file.

    Args:
        partial: the finished file.
        stem: `rank_00007.0`; if that is taken, `.copy1`, `.copy2` ... are tried.

    Returns:
        The final path.
    """
    for number in range(_MOST_NAMESAKES):
        final = partial.with_name(f"{stem}.copy{number}{SUFFIX}" if number else f"{stem}{SUFFIX}")
        try:
            _rename_exclusively(partial, final)
        except FileExistsError:
            continue
        return final
    raise RankscopeError(
        f"{partial.parent} holds {_MOST_NAMESAKES} traces named {stem}: give each run its own directory"
    )


def _rename_exclusively(partial: Path, final: Path) -> None:
    """Rename, or raise FileExistsError: a plain rename would replace the file of another run."""
    try:
        os.link(partial, final)
    except FileExistsError:
        raise
    except OSError:
        # No hard links here (some network and FUSE file systems): take the name first, then fill it.
        os.close(os.open(final, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        os.replace(partial, final)


@contextmanager
def _partial_file(directory: Path, manifest: Manifest) -> Iterator[Path]:
    """A name for the unfinished file that no other process on any host has; gone at the end, whatever happens."""
    directory.mkdir(parents=True, exist_ok=True)
    partial = directory / f".rank_{manifest.rank:05d}.{manifest.window}.{secrets.token_hex(8)}.partial"
    try:
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as reader, target.open("xb") as writer:
        shutil.copyfileobj(reader, writer, _CHUNK_BYTES)
        writer.flush()
        os.fsync(writer.fileno())


def _read_with_manifest(source: Path, manifest: Manifest, options: OutputOptions) -> Iterator[bytes]:
    """The trace's text in chunks, its first brace followed by the manifest."""
    with source.open("rb") as reader:
        chunks = _read_scrubbed(reader) if options.scrub else iter(lambda: reader.read(_CHUNK_BYTES), b"")
        head = next(chunks, b"")
        before, brace, after = head.partition(b"{")
        if not brace or before.strip():
            raise RankscopeError(
                f"torch.profiler wrote no JSON object but text that begins with {head[:40]!r}"
            )
        facts = json.dumps(asdict(manifest), allow_nan=False)
        yield _open_object() + facts.encode() + b",\n" + after
        yield from chunks


def _read_scrubbed(reader: IO[bytes]) -> Iterator[bytes]:
    """The text, scrubbed in runs of whole lines: a path never stretches over two."""
    while lines := reader.readlines(_CHUNK_BYTES):
        yield scrub_text(b"".join(lines))


def _open_object() -> bytes:
    return f'{{"{MANIFEST_KEY}": '.encode()


def _check_limit(size_bytes: int, options: OutputOptions) -> None:
    limit = options.max_trace_bytes
    if limit is not None and size_bytes > limit:
        raise RankscopeError(
            f"the compressed trace passes max_trace_mb ({format_size(limit)}) and was dropped, like those of later "
            "windows would be. Record fewer steps (active=), switch with_stack or record_shapes off, or raise the limit"
        )

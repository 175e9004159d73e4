"""Archives taken apart: numbered files, counted while they are unpacked, whatever the archive says of itself."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rankscope.errors import InputError
from rankscope.readers.byte_stream import ReadsBytes
from rankscope.units import format_size
from rankscope_dashboard.content import is_gzip, kind_of
from rankscope_dashboard.limits import Limits
from rankscope_dashboard.names import shown_text

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """A file out of an archive: its name there, to be shown, and where its bytes are."""

    name: str
    path: Path


class Unpacker:
    """Takes archives apart into one folder, with one budget for all of them."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._files = 0
        self._bytes = 0

    def unpack(self, archive: Path, name: str) -> Iterator[Unpacked]:
        """The JSON files, gzip or not, inside a tar or zip file; others are passed over.

        Raises:
            InputError: it is damaged, encrypted, or larger than allowed.
        """
        try:
            members = _tar_members(archive) if kind_of(archive) == "tar" else self._zip_members(archive)
            for member, source in members:
                path = self._keep(source, f"{name}: {member}")
                if kind_of(path) in ("json", "empty"):
                    yield Unpacked(name=shown_text(member), path=path)
                else:
                    path.unlink()
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
            raise InputError(f"the archive {name} cannot be unpacked: {error}; pack it again") from error

    def _zip_members(self, archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                if not info.is_dir():
                    with opened.open(info) as source:
                        yield info.filename, source

    def _keep(self, source: IO[bytes], name: str) -> Path:
        self._files += 1
        if self._files > self._limits.files:
            raise InputError(
                f"{name}: more than {self._limits.files} files, which is the limit of this server"
            )
        path = self._folder / f"{self._files:05d}"
        size_bytes = 0
        with path.open("xb") as target:
            while block := source.read(_BLOCK_BYTES):
                size_bytes += len(block)
                self._bytes += len(block)
                self._check(size_bytes, name)
                target.write(block)
        return path

    def _check(self, size_bytes: int, name: str) -> None:
        for passed, limit in (
            (size_bytes, self._limits.unpacked_file_bytes),
            (self._bytes, self._limits.unpacked_bytes),
        ):
            if passed > limit:
                raise InputError(
                    f"{name}: the size limit of {format_size(limit)} of unpacked data is passed; upload fewer or "
                    "smaller traces, or raise the server's limit"
                )


def _tar_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    # As a stream: links, devices and absolute paths are never followed, only bytes of regular files are read.
    with archive.open("rb") as raw:
        packed = is_gzip(raw.read(2))
        raw.seek(0)
        stream = _Stream(gzip.GzipFile(fileobj=raw) if packed else raw)
        with tarfile.open(fileobj=stream, mode="r|") as opened:  # type: ignore[call-overload]  # read() is enough
            for member in opened:
                source = opened.extractfile(member) if member.isreg() else None
                if source is not None:
                    yield member.name, source
        stream.check_end()


class _Stream:
    """Bytes of a tar file, and whether they end as a tar file does; tarfile takes any end for a good one."""

    def __init__(self, source: ReadsBytes) -> None:
        self._source = source
        self._tail = b""

    def read(self, size: int) -> bytes:
        """Up to `size` bytes."""
        block = self._source.read(size)
        self._tail = (self._tail + block)[-tarfile.BLOCKSIZE :]
        return block

    def check_end(self) -> None:
        """Read what is left.

        Raises:
            EOFError: the file was cut.
        """
        while self.read(_BLOCK_BYTES):
            continue
        if self._tail.strip(b"\0"):
            raise EOFError("it ends early")

"""Bytes under keys: a local folder, or an object store through fsspec. Every write is whole or absent."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Protocol

from rankscope.errors import InputError

COPY_BYTES = 1 << 20
_UNFINISHED = ".part-"


class Blobs(Protocol):
    """Files under keys such as "runs/1/manifest.json"; a reader sees a file whole or not at all."""

    url: str

    def read(self, key: str) -> bytes:
        """The bytes of a file; FileNotFoundError if there is none."""
        ...

    def read_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The files that exist among `keys`."""
        ...

    def open(self, key: str) -> IO[bytes]:
        """A file opened for reading, with seek; FileNotFoundError if there is none."""
        ...

    def write(self, key: str, content: bytes) -> None:
        """Create or replace a file."""
        ...

    def copy_in(self, key: str, path: Path) -> None:
        """Create or replace a file with the content of a local one."""
        ...

    def exists(self, key: str) -> bool:
        """Whether there is such a file."""
        ...

    def names(self, folder: str) -> list[str]:
        """Sorted names of the files and folders directly inside a folder; [] if it does not exist."""
        ...

    def delete(self, key: str) -> None:
        """Remove a file, if it is there."""
        ...

    def delete_folder(self, folder: str) -> None:
        """Remove a folder and everything in it, if it is there."""
        ...


def open_blobs(url: str) -> Blobs:
    """The files under a path or an fsspec URL (`s3://bucket/prefix`, `memory://name`).

    Raises:
        InputError: the URL names a scheme that is unknown or whose package is not installed.
    """
    if "://" not in url:
        return LocalBlobs(Path(url))
    if url.startswith("file://"):
        return LocalBlobs(Path(url.removeprefix("file://")))
    return RemoteBlobs(url)


class LocalBlobs:
    """Files in a local folder, written under another name first and then renamed."""

    def __init__(self, root: Path) -> None:
        self._root = root.expanduser().absolute()
        self.url = str(self._root)

    def read(self, key: str) -> bytes:
        """The bytes of a file."""
        return (self._root / key).read_bytes()

    def read_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The files that exist among `keys`."""
        found = {}
        for key in keys:
            try:
                found[key] = self.read(key)
            except FileNotFoundError:
                continue
        return found

    def open(self, key: str) -> IO[bytes]:
        """A file opened for reading."""
        return (self._root / key).open("rb")

    def write(self, key: str, content: bytes) -> None:
        """Create or replace a file."""
        with _Unfinished(self._root / key) as file:
            file.write(content)

    def copy_in(self, key: str, path: Path) -> None:
        """Create or replace a file with the content of a local one."""
        with path.open("rb") as source, _Unfinished(self._root / key) as file:
            shutil.copyfileobj(source, file, COPY_BYTES)

    def exists(self, key: str) -> bool:
        """Whether there is such a file."""
        return (self._root / key).is_file()

    def names(self, folder: str) -> list[str]:
        """Sorted names of the files and folders directly inside a folder."""
        try:
            return sorted(n for n in os.listdir(self._root / folder) if not n.startswith(_UNFINISHED))
        except FileNotFoundError:
            return []

    def delete(self, key: str) -> None:
        """Remove a file, if it is there."""
        (self._root / key).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Remove a folder and everything in it, if it is there."""
        shutil.rmtree(self._root / folder, ignore_errors=True)


class _Unfinished:
    """A new file that takes its name on leaving the block, after its bytes have reached the disk."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._file: IO[bytes] | None = None

    def __enter__(self) -> IO[bytes]:
        self._target.parent.mkdir(parents=True, exist_ok=True)
        handle, self._name = tempfile.mkstemp(dir=self._target.parent, prefix=_UNFINISHED)
        self._file = os.fdopen(handle, "wb")
        return self._file

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        assert self._file is not None  # noqa: S101 - __enter__ came first
        try:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                Path(self._name).replace(self._target)
                sync_folder(self._target.parent)
        finally:
            self._file.close()
            Path(self._name).unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Create or replace a local file so that no reader, and no crash, ever sees a part of it."""
    with _Unfinished(path) as file:
        file.write(content)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class RemoteBlobs:
    """Files in an object store, which shows an object only once all of it has arrived."""

    def __init__(self, url: str) -> None:
        import fsspec

        self.url = url.rstrip("/")
        try:
            # Another process may write at any time: a remembered listing would hide its runs.
            self._fs: Any
            self._fs, self._root = fsspec.core.url_to_fs(self.url, use_listings_cache=False)
        except (ImportError, ValueError, OSError) as error:
            raise InputError(
                f"cannot open the store {url}: {error}. Expected a folder or a URL such as s3://bucket/prefix "
                "(install rankscope[s3] for that)."
            ) from error

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}" if key else str(self._root)

    def read(self, key: str) -> bytes:
        """The bytes of a file."""
        content: bytes = self._fs.cat_file(self._path(key))
        return content

    def read_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The files that exist among `keys`, fetched side by side where the store can."""
        paths = {self._path(key): key for key in keys}
        if not paths:
            return {}
        contents: dict[str, bytes | Exception] = self._fs.cat(list(paths), on_error="return")
        found = {}
        for path, content in contents.items():
            if isinstance(content, bytes):
                found[paths[path]] = content
            elif not isinstance(content, FileNotFoundError):
                raise content
        return found

    def open(self, key: str) -> IO[bytes]:
        """A file opened for reading."""
        opened: IO[bytes] = self._fs.open(self._path(key), "rb")
        return opened

    def write(self, key: str, content: bytes) -> None:
        """Create or replace a file."""
        self._fs.pipe_file(self._path(key), content)

    def copy_in(self, key: str, path: Path) -> None:
        """Create or replace a file with the content of a local one."""
        self._fs.put_file(str(path), self._path(key))

    def exists(self, key: str) -> bool:
        """Whether there is such a file."""
        return bool(self._fs.isfile(self._path(key)))

    def names(self, folder: str) -> list[str]:
        """Sorted names of the files and folders directly inside a folder."""
        try:
            entries: list[str] = self._fs.ls(self._path(folder), detail=False)
        except FileNotFoundError:
            return []
        names = {entry.rstrip("/").rsplit("/", 1)[-1] for entry in entries}
        return sorted(names - {folder.rsplit("/", 1)[-1], ""})

    def delete(self, key: str) -> None:
        """Remove a file, if it is there."""
        try:
            self._fs.rm_file(self._path(key))
        except FileNotFoundError:
            return

    def delete_folder(self, folder: str) -> None:
        """Remove a folder and everything in it, if it is there."""
        try:
            self._fs.rm(self._path(folder), recursive=True)
        except FileNotFoundError:
            return

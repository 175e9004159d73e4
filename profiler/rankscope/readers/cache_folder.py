"""A folder that keeps what was worked out before, bounded in size, safe for several processes at once.

Entries are found by hashes of everything that decides them, the code of rankscope included, so that an entry can
be old but never stale. Each is one file: a magic, the hash of all that follows, the content. One that does not fit
its hash is as good as absent.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

CACHE_VARIABLE = "RANKSCOPE_CACHE"
"""Environment variable: a directory for the cache, or "off"."""

DEFAULT_MAX_BYTES = 4 << 30
SMALLEST_STORED_BYTES = 1 << 20
"""Files smaller than this are read faster than their entry would be looked up."""

_MAGIC = b"rankscope-entry\n"
_SUFFIXES = (".table", ".report", ".hash")
_HASH_BYTES = hashlib.sha256().digest_size
_OFF = frozenset({"off", "0", "no", "none", "false"})


def default_cache_directory(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where the cache lies: `RANKSCOPE_CACHE`, else the user's cache directory; None if it is turned off.

    >>> default_cache_directory({"RANKSCOPE_CACHE": "off"}) is None
    True
    >>> default_cache_directory({"XDG_CACHE_HOME": "/c"}).as_posix()
    '/c/rankscope'
    """
    chosen = environment.get(CACHE_VARIABLE, "").strip()
    if chosen:
        return None if chosen.lower() in _OFF else Path(chosen)
    home = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "rankscope"


@cache
def code_hash(*packages: str) -> bytes:
    """Hash of the source of some of rankscope's packages ("" for all): another version shares no entry."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted({p for package in packages for p in (root / package).rglob("*.py")}):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()


def entry_key(*parts: bytes | str) -> str:
    """The name of an entry that is decided by `parts`, each of any length."""
    hashes = [hashlib.sha256(p.encode("utf-8", "surrogatepass") if isinstance(p, str) else p) for p in parts]
    return hashlib.sha256(b"".join(one.digest() for one in hashes)).hexdigest()


class HashedFile(io.RawIOBase):
    """A file that is written to from its position on, and the hash of what was."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._digest = hashlib.sha256()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, content: Any, /) -> int:
        """Write all of some bytes."""
        self._digest.update(content)
        return self._file.write(content)

    def digest(self) -> bytes:
        """SHA-256 of all that was written."""
        return self._digest.digest()


class CacheFolder:
    """A folder of entries.

    Attributes:
        directory: where the entries lie; made when the first is written.
        max_bytes: above this the entries that were not used for longest are removed.
    """

    def __init__(self, directory: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.directory = directory
        self.max_bytes = max_bytes

    def has(self, name: str) -> bool:
        """Whether there is an entry, whole or not."""
        return (self.directory / name).is_file()

    def read(self, name: str) -> memoryview | None:
        """Content of an entry; None if there is none that is whole."""
        path = self.directory / name
        try:
            stored = path.read_bytes()
        except OSError:
            return None
        size = len(_MAGIC) + _HASH_BYTES
        content = memoryview(stored)[size:]
        if stored[:size] != _MAGIC + hashlib.sha256(content).digest():
            return None
        with suppress(OSError):
            os.utime(path)
        return content

    def write(self, name: str, content: bytes) -> None:
        """Keep an entry; a disk that is full or may not be written to keeps nothing, silently."""
        self.write_by(name, lambda out: out.write(content))

    def write_by(self, name: str, write: Callable[[HashedFile], object]) -> None:
        """The same, of content that is written piece by piece."""
        with suppress(OSError):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.directory, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(_MAGIC + bytes(_HASH_BYTES))
                    hashed = HashedFile(out)
                    write(hashed)
                    size = out.tell()
                    out.seek(len(_MAGIC))
                    out.write(hashed.digest())
                if size <= self.max_bytes:
                    Path(temporary).replace(self.directory / name)
            finally:
                Path(temporary).unlink(missing_ok=True)  # what has its name is no longer there
            self._evict()

    def _evict(self) -> None:
        """Remove the entries that were not used for longest, until the rest fits."""
        entries = []
        for path in self.directory.iterdir():
            if path.suffix in _SUFFIXES:
                with suppress(OSError):  # another process may have removed it meanwhile
                    entries.append((path.stat().st_mtime_ns, path.stat().st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.max_bytes:
                return
            path.unlink(missing_ok=True)
            total -= size

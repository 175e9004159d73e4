"""Where output goes: files written whole or not at all, and stdout for the report alone."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from rankscope.errors import UsageError


def check_writable(paths: list[Path], *, force: bool) -> None:
    """Make sure before the work starts that its results can be kept.

    Raises:
        UsageError: naming every path that exists already (without `force`) or has no directory.
    """
    faults = []
    for path in paths:
        if path.is_dir():
            faults.append(f"{path} is a directory")
        elif path.exists() and not force:
            faults.append(f"{path} exists already; give --force to replace it")
        elif not path.parent.is_dir():
            faults.append(f"the directory {path.parent} does not exist; create it first")
    if faults:
        raise UsageError("cannot write the output:\n  " + "\n  ".join(faults))


def write_file(path: Path, text: str, *, force: bool = True) -> None:
    """Write a file whole, under another name first, so that nobody ever sees a part of it.

    Args:
        path: the file.
        text: what to write, in UTF-8.
        force: whether to replace a file that came into being since `check_writable`.

    Raises:
        UsageError: it cannot be written.
    """
    write_pieces(path, [text], force=force)


def write_pieces(path: Path, pieces: Iterable[str], *, force: bool = True) -> None:
    """As `write_file`, for text that comes piece by piece; compressed if the name ends with .gz.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                _fill(file, pieces, is_gzip=path.suffix == ".gz")
            temporary.chmod(0o666 & ~_umask())
            _give_name(temporary, path, force=force)
        finally:
            temporary.unlink(missing_ok=True)  # what has its name is no longer there
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


def _fill(file: BinaryIO, pieces: Iterable[str], *, is_gzip: bool) -> None:
    if not is_gzip:
        for piece in pieces:
            file.write(piece.encode("utf-8"))
        return
    # Without name and time in it, equal text makes equal files.
    with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
        for piece in pieces:
            packed.write(piece.encode("utf-8"))


def _give_name(temporary: Path, path: Path, *, force: bool) -> None:
    if force:
        temporary.replace(path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise UsageError(f"{path} exists already; give --force to replace it") from None


def print_report(text: str, *, is_for_people: bool) -> None:
    """Write a report to stdout.

    A report for people goes out in the terminal's encoding, with marks for what that does not have; any other
    in UTF-8, since its reader would take a mark for data.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        if is_for_people:
            sys.stdout.reconfigure(errors="replace")
        else:
            sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(text)


def say(text: str) -> None:
    """A line for the person at the terminal, on stderr: stdout is the report."""
    sys.stderr.write(f"{text}\n")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""Copies of a run's directory, and the file of a rank in it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from rankscope.errors import UsageError
from rankscope.testing.trace_file import (
    TraceDocument,
    layout_of,
    read_document,
    read_text_bytes,
    write_document,
)

EXPECTED_NAME = "expected.json"
_RANK_IN_INFO = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[]*?"rank"\s*:\s*(\d+)')
_RANK_IN_NAME = re.compile(r"rank[_-]?(\d+)|worker(\d+)")


def copy_run(source: Path, destination: Path) -> Path:
    """Copy the files of a run into a new directory.

    Args:
        source: directory of the run.
        destination: made if absent; must hold nothing of another run.

    Returns:
        The destination.

    Raises:
        UsageError: the destination is the source, or holds files.
    """
    if destination.exists() and any(destination.iterdir()):
        raise UsageError(f"{destination} is not empty: a damaged copy goes into a directory of its own")
    destination.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.is_file():
            shutil.copyfile(path, destination / path.name)
    return destination


def trace_files(directory: Path) -> list[Path]:
    """The trace files of a run, by name."""
    return sorted(
        path
        for path in directory.iterdir()
        if path.name.endswith((".json", ".json.gz")) and path.name != EXPECTED_NAME
    )


def file_of_rank(directory: Path, rank: int) -> Path:
    """The file of a rank.

    Raises:
        UsageError: no file is of that rank.
    """
    ranks = {}
    for path in trace_files(directory):
        found = rank_of_file(path)
        if found == rank:
            return path
        ranks[path.name] = found
    raise UsageError(f"no trace file in {directory} is of rank {rank}; found {ranks}")


def rank_of_file(path: Path) -> int | None:
    """Rank of a file, from its `distributedInfo`, else from its name; None if neither says it."""
    info = _RANK_IN_INFO.search(read_text_bytes(path))
    if info:
        return int(info.group(1))
    name = _RANK_IN_NAME.search(path.name)
    return int(name.group(1) or name.group(2)) if name else None


def edit_file(path: Path, edit: Callable[[TraceDocument], None]) -> None:
    """Change a file in place, keeping its line breaks and compression."""
    layout = layout_of(read_text_bytes(path))
    document = read_document(path)
    edit(document)
    write_document(path, document, layout)


def edit_rank(source: Path, destination: Path, rank: int, edit: Callable[[TraceDocument], None]) -> None:
    """Copy a run and change the file of one rank."""
    edit_file(file_of_rank(copy_run(source, destination), rank), edit)

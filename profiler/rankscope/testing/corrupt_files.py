"""Whole files that are missing, swapped, cut off, empty or written over each other."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

from rankscope.testing.run_copy import copy_run, file_of_rank
from rankscope.testing.trace_file import read_text_bytes, write_bytes

_BLOCK_BYTES = 4_096


def remove_rank(source: Path, destination: Path, *, rank: int) -> None:
    """Lose the file of a rank."""
    file_of_rank(copy_run(source, destination), rank).unlink()


def swap_files(source: Path, destination: Path, *, ranks: tuple[int, int]) -> None:
    """Let the files of two ranks bear each other's names."""
    copy_run(source, destination)
    first, second = (file_of_rank(destination, rank) for rank in ranks)
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)


def truncate_file(
    source: Path, destination: Path, *, rank: int, share: float = 0.6, cut_gzip: bool = False
) -> int:
    """Cut off the file of a rank.

    Args:
        source, destination: directories of the run and of the damaged copy.
        rank: whose file.
        share: of the bytes that are left, between 0 and 1.
        cut_gzip: cut the compressed bytes; else the text, in a valid gzip stream.

    Returns:
        How many bytes of it (compressed or text) are left.
    """
    path = file_of_rank(copy_run(source, destination), rank)
    data = path.read_bytes() if cut_gzip else read_text_bytes(path)
    left = data[: int(len(data) * share)]
    if cut_gzip:
        path.write_bytes(left)
    else:
        write_bytes(path, left)
    return len(left)


def empty_file(source: Path, destination: Path, *, rank: int) -> None:
    """Leave nothing of the file of a rank: a valid gzip stream of zero bytes where it is compressed."""
    write_bytes(file_of_rank(copy_run(source, destination), rank), b"")


def interleave_files(
    source: Path, destination: Path, *, ranks: tuple[int, int], block_bytes: int = _BLOCK_BYTES
) -> None:
    """Let two ranks have written into one file by turns, `block_bytes` each; the second has no file."""
    copy_run(source, destination)
    paths = [file_of_rank(destination, rank) for rank in ranks]
    blocks = [
        [data[i : i + block_bytes] for i in range(0, len(data), block_bytes)]
        for data in map(read_text_bytes, paths)
    ]
    mixed = b"".join(a + b for a, b in zip_longest(*blocks, fillvalue=b""))
    write_bytes(paths[0], mixed)
    paths[1].unlink()

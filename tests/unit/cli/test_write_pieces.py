from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankscope.cli.output import write_file, write_pieces
from rankscope.errors import UsageError


def test_pieces_are_joined(tmp_path: Path) -> None:
    write_pieces(tmp_path / "a.json", ["[1", ",2", "]"])
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "[1,2]"


def test_a_name_that_ends_with_gz_is_compressed_and_equal_text_makes_equal_files(tmp_path: Path) -> None:
    for name in ("a.json.gz", "b.json.gz"):
        write_pieces(tmp_path / name, ["é", "x" * 1000])
    packed = (tmp_path / "a.json.gz").read_bytes()
    assert gzip.decompress(packed).decode() == "é" + "x" * 1000
    assert len(packed) < 100
    assert packed == (tmp_path / "b.json.gz").read_bytes()


def test_a_file_that_came_into_being_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.json"

    def pieces() -> Iterator[str]:
        yield "mine"
        path.write_text("theirs", encoding="utf-8")

    with pytest.raises(UsageError, match="exists already; give --force"):
        write_pieces(path, pieces(), force=False)
    assert [(p.name, p.read_text(encoding="utf-8")) for p in tmp_path.iterdir()] == [("a.json", "theirs")]
    write_file(path, "mine", force=True)
    assert path.read_text(encoding="utf-8") == "mine"


def test_nothing_is_left_of_a_text_that_fails_in_the_middle(tmp_path: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "half"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_pieces(tmp_path / "a.json.gz", pieces())
    assert list(tmp_path.iterdir()) == []

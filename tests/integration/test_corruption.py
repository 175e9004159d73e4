"""The corruption table: what is decidable is decided rightly, and nobody innocent is ever named."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankscope.pipeline import analyze
from support.corruptions import Row, Sources, rows

ROWS = rows()


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("made")


@pytest.mark.parametrize("row", [r for r in ROWS if r.is_synthetic], ids=lambda row: row.name)
def test_damaged_synthetic_runs(row: Row, made: Path, tmp_path: Path) -> None:
    assert_right(row, Sources(made, made), tmp_path / "run")


@pytest.mark.parametrize("row", [r for r in ROWS if not r.is_synthetic], ids=lambda row: row.name)
def test_damaged_real_runs(row: Row, shared_traces: Path, made: Path, tmp_path: Path) -> None:
    assert_right(row, Sources(shared_traces, made), tmp_path / "run")


def assert_right(row: Row, sources: Sources, folder: Path) -> None:
    row.make(sources, folder)
    straggler = analyze(folder).straggler
    assert straggler is not None
    ranks = tuple(straggler.ranks)
    assert not row.is_wrong(ranks), f"named {ranks}, slow are {row.truth}"
    assert row.is_right(straggler.verdict, ranks), straggler.reason


def test_the_table_holds_every_kind_of_damage_decidable_and_not() -> None:
    kinds = (
        "+10 ms",
        "-7 ms and",
        "20 ppm",
        "(head)",
        "(middle)",
        "(tail)",
        "missing",
        "swapped",
        "renamed",
        "calls its groups otherwise",
        "recorded steps",
        "sequence numbers removed",
    )
    for kind in kinds:
        assert any(kind in row.damage for row in ROWS), kind
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert {row.decidable for row in ROWS} == {True, False}
    assert all(row.why for row in ROWS)

"""`rankscope baseline`, the real command."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import rankscope, strict_json, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("baseline") / "run")


def test_write_and_compare(run: Path, tmp_path: Path) -> None:
    done = rankscope("baseline", "update", run, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("wrote rankscope-baseline.json: 1 run, ")
    compared = rankscope("compare", tmp_path / "rankscope-baseline.json", run)
    assert compared.returncode == 0
    assert "No difference." in compared.stdout


def test_eight_ranks_fit_20_kilobytes(shared_traces: Path, tmp_path: Path) -> None:
    done = rankscope("baseline", "update", shared_traces / "nanogpt_h100_8rank", "-o", tmp_path / "b.json")
    assert done.returncode == 0
    assert (tmp_path / "b.json").stat().st_size < 20_000
    tree = strict_json((tmp_path / "b.json").read_text())
    assert tree["runs"][0]["ranks"] == 8


def test_several_runs_and_adding_to_them(run: Path, tmp_path: Path) -> None:
    output = tmp_path / "b.json"
    assert rankscope("baseline", "update", run, run, run, "-o", output).returncode == 0
    assert len(strict_json(output.read_text())["runs"]) == 3
    for expected in (4, 4):  # the newest four are kept
        assert rankscope("baseline", "update", run, "-o", output, "--add").returncode == 0
        assert len(strict_json(output.read_text())["runs"]) == expected
    assert (
        "run-to-run noise measured on 4 base runs"
        in rankscope("compare", output, run, "--format", "json").stdout
    )
    assert rankscope("baseline", "update", run, "-o", output).returncode == 0
    assert len(strict_json(output.read_text())["runs"]) == 1


def test_equal_runs_give_equal_files(run: Path, tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        rankscope("baseline", "update", run, "-o", tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_nothing_else_is_overwritten(run: Path, tmp_path: Path) -> None:
    output = tmp_path / "mine.json"
    output.write_text("{}")
    done = rankscope("baseline", "update", run, "-o", output)
    assert done.returncode == 2
    assert "is not a baseline" in done.stderr
    assert output.read_text() == "{}"
    assert rankscope("baseline", "update", run, "-o", output, "--force").returncode == 0


def test_a_run_with_a_lost_file_makes_no_baseline(tmp_path: Path) -> None:
    broken = write_run(tmp_path / "broken")
    (broken / "rank1.json").write_text("{")
    done = rankscope("baseline", "update", broken, "-o", tmp_path / "b.json")
    assert done.returncode == 2
    assert "a baseline needs whole runs" in done.stderr
    assert not (tmp_path / "b.json").exists()

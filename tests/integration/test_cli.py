"""`rankscope analyze`, the real command: formats, files, options, and what goes to which stream."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from support.command import rankscope, strict_json, write_run

EXPOSED_NS = 37_000  # of each all-reduce: [53, 90)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("cli") / "run")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_json_is_strict_and_alone_on_stdout(run: Path) -> None:
    done = rankscope("analyze", run, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    report = strict_json(done.stdout)
    assert report["format"] == {"name": "rankscope-report", "version": "1.0"}
    assert (report["run"]["name"], report["run"]["source"]) == ("run", str(run))
    assert (report["run"]["world_size"], report["run"]["steps"]) == (2, [4, 5, 6])
    assert [(row["rank"], row["exposed_communication_ns"]) for row in report["ranks"]] == [
        (0, 3 * EXPOSED_NS),
        (1, 3 * EXPOSED_NS),
    ]
    assert report["totals"]["steady"]["overlap_ratio"] == 23 / 60
    assert report["communications"] == []
    assert report["problems"] == []


@pytest.mark.parametrize(
    ("format_", "opening"), [("console", "rankscope"), ("markdown", "#"), ("html", "<!doctype html>")]
)
def test_other_formats(run: Path, format_: str, opening: str) -> None:
    done = rankscope("analyze", run, "--format", format_)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.lstrip().lower().startswith(opening)
    assert "38.3" in done.stdout  # 23 / 60 in percent
    assert done.stdout.endswith("\n")
    assert "\x1b" not in done.stdout  # no colours where nobody watches


def test_console_is_the_format_unless_said(run: Path) -> None:
    assert rankscope("analyze", run).stdout == rankscope("analyze", run, "--format", "console").stdout


def test_files_by_suffix_and_nothing_on_stdout(run: Path, tmp_path: Path) -> None:
    names = ("r.json", "r.md", "r.html", "r.txt")
    words = [word for name in names for word in ("-o", tmp_path / name)]
    done = rankscope("analyze", run, *words)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [f"wrote {tmp_path / name}" for name in names]
    assert names_in(tmp_path) == sorted(names)
    assert strict_json((tmp_path / "r.json").read_text())["run"]["world_size"] == 2
    assert (tmp_path / "r.md").read_text().startswith("#")
    assert (tmp_path / "r.html").read_text().lower().startswith("<!doctype html>")
    assert (tmp_path / "r.txt").read_text().startswith("rankscope")


def test_a_format_goes_before_the_suffix(run: Path, tmp_path: Path) -> None:
    assert rankscope("analyze", run, "-o", tmp_path / "report", "--format", "json").returncode == 0
    strict_json((tmp_path / "report").read_text())


def test_a_suffix_that_says_no_format(run: Path, tmp_path: Path) -> None:
    done = rankscope("analyze", run, "-o", tmp_path / "r.pdf")
    assert done.returncode == 2
    assert "r.pdf" in done.stderr
    assert "--format" in done.stderr
    assert names_in(tmp_path) == []


def test_what_exists_is_replaced_with_force_alone(run: Path, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("mine")
    refused = rankscope("analyze", run, "-o", tmp_path / "new.json", "-o", tmp_path / "old.json")
    assert refused.returncode == 2
    assert "old.json exists already; give --force" in refused.stderr
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"old.json": "mine"}
    assert rankscope("analyze", run, "-o", tmp_path / "old.json", "--force").returncode == 0
    assert strict_json((tmp_path / "old.json").read_text())["run"]["steps"] == [4, 5, 6]


def test_chosen_steps(run: Path) -> None:
    report = strict_json(rankscope("analyze", run, "--format", "json", "--steps", "4,6-6").stdout)
    assert report["run"]["steps"] == [4, 6]
    assert {row["step"] for row in report["steps"]} == {4, 6}
    assert report["totals"]["steady"]["communication_ns"] == 240_000  # two steps, two ranks, 60 us


@pytest.mark.parametrize(("steps", "said"), [("7", "it holds: 4, 5, 6"), ("x-", "4-6,9")])
def test_steps_that_are_not_there(run: Path, steps: str, said: str) -> None:
    done = rankscope("analyze", run, "--steps", steps)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_pattern_makes_kernels_communicate(run: Path) -> None:
    """With gemm as communication too nothing computes: no time is hidden. [3, 90) is 87 us in each step."""
    done = rankscope("analyze", run, "--format", "json", "--comm-pattern", "gemm", "--comm-pattern", "x{2}")
    row = strict_json(done.stdout)["ranks"][0]
    assert (row["compute_ns"], row["communication_ns"], row["overlap_ns"]) == (0, 261_000, 0)


def test_a_bad_pattern_is_said_before_anything_is_done(run: Path, tmp_path: Path) -> None:
    done = rankscope("analyze", run, "--comm-pattern", "gemm(", "-o", tmp_path / "r.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rankscope: error: communication patterns must be regular expressions")
    assert "'gemm('" in done.stderr
    assert "docs/errors.md#usage" in done.stderr
    assert names_in(tmp_path) == []


def test_full_detail_has_a_row_per_event(run: Path) -> None:
    rows = strict_json(rankscope("analyze", run, "--format", "json", "--detail", "full").stdout)[
        "communications"
    ]
    assert len(rows) == 6
    assert [(row["rank"], row["step"], row["exposed_ns"]) for row in rows[:2]] == [
        (0, 4, EXPOSED_NS),
        (0, 5, EXPOSED_NS),
    ]


def test_tables(run: Path, tmp_path: Path) -> None:
    done = rankscope("analyze", run, "--tables", tmp_path / "t", "--format", "json")
    assert (done.returncode, done.stderr) == (0, f"wrote tables into {tmp_path / 't'}\n")
    report = strict_json(done.stdout)
    assert report["communications"] == []  # the summary stays one
    frames = {path.stem: pd.read_parquet(path) for path in (tmp_path / "t").iterdir()}
    assert frames["ranks"]["exposed_communication_ns"].tolist() == [3 * EXPOSED_NS] * 2
    assert frames["steps"]["step"].tolist() == [4, 4, 5, 5, 6, 6]
    assert len(frames["communications"]) == 6
    assert frames["groups"]["ranks"].tolist()[0].tolist() == [0, 1]
    assert len(frames["collectives"]) == len(report["collectives"])


def test_tables_do_not_mix_with_what_is_there(run: Path, tmp_path: Path) -> None:
    (tmp_path / "ranks.parquet").write_text("mine")
    refused = rankscope("analyze", run, "--tables", tmp_path)
    assert refused.returncode == 2
    assert "is not empty; give --force" in refused.stderr
    assert (tmp_path / "ranks.parquet").read_text() == "mine"
    refused = rankscope("analyze", run, "--tables", tmp_path / "ranks.parquet")
    assert refused.returncode == 2
    assert "is not a directory" in refused.stderr
    assert rankscope("analyze", run, "--tables", tmp_path, "--force").returncode == 0
    assert len(pd.read_parquet(tmp_path / "ranks.parquet")) == 2


def test_labels(run: Path) -> None:
    done = rankscope("analyze", run, "--format", "json", "--label", "branch=main", "--label", "cap=25=x")
    assert strict_json(done.stdout)["run"]["labels"] == {"branch": "main", "cap": "25=x"}
    bad = rankscope("analyze", run, "--label", "branch")
    assert bad.returncode == 2
    assert "'branch'; expected key=value" in bad.stderr


def test_a_file_alone_is_a_run(run: Path) -> None:
    report = strict_json(rankscope("analyze", run / "rank1.json", "--format", "json").stdout)
    assert (report["run"]["ranks"], report["run"]["missing_ranks"]) == ([1], [0])


def test_the_report_does_not_depend_on_time_place_or_processes(run: Path) -> None:
    """Deterministic: no clock and no environment."""
    one = rankscope("analyze", run, "--format", "json", "--processes", "1")
    two = rankscope("analyze", run, "--format", "json", "--processes", "2", TZ="Asia/Tokyo", LC_ALL="C")
    assert one.stdout == two.stdout
    assert two.stderr == ""


def test_a_terminal_that_cannot_show_a_character(run: Path) -> None:
    """Marks in place of it, for people; what a program reads is UTF-8 whatever the terminal's encoding."""
    shown = rankscope("analyze", run, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.isascii()
    data = rankscope(
        "analyze",
        run,
        "--format",
        "json",
        "--label",
        "name=größer",
        PYTHONIOENCODING="latin-1",
        PYTHONUTF8="0",
    )
    assert "größer" in data.stdout or "gr\\u00f6\\u00dfer" in data.stdout

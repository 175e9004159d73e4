"""`rankscope check`, the real command."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from support.command import rankscope, strict_json, write_run

# Of each 60 us of communication 23 are hidden: 38.33 %; exposed: 37 us in each of three steps.
LIMITS = """
[limits]
min_overlap_ratio = 0.38
max_exposed_communication_us = 111
max_missing_ranks = 0

[limits.step]
min_overlap_ratio = 0.38

[[limits.group]]
op = "all_reduce"
min_overlap_ratio = 0.4
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("check") / "run")


def test_kept_broken_and_impossible(run: Path) -> None:
    assert rankscope("check", run, "--limit", "min_overlap_ratio=0.383").returncode == 0
    broken = rankscope("check", run, "--limit", "min_overlap_ratio=0.384")
    assert broken.returncode == 1
    assert "hidden communication is 38.33 % in whole run; limit: at least 38.40 %" in " ".join(
        broken.stdout.split()
    )
    assert rankscope("check", run / "nowhere", "--limit", "min_overlap_ratio=0.1").returncode == 2


def test_a_limits_file(run: Path, tmp_path: Path) -> None:
    (tmp_path / "limits.toml").write_text(LIMITS)
    done = rankscope("check", run, "--config", tmp_path / "limits.toml", "--format", "json")
    assert done.returncode == 1
    tree = strict_json(done.stdout)
    assert {row["name"]: row["status"] for row in tree["limits"]} == {
        "min_overlap_ratio": "passed",
        "max_exposed_communication_us": "passed",
        "max_missing_ranks": "passed",
        "step.min_overlap_ratio": "passed",
        "group.min_overlap_ratio": "broken",
    }
    assert tree["passed"] is False


def test_the_limits_file_of_this_directory(run: Path, tmp_path: Path) -> None:
    (tmp_path / "rankscope.toml").write_text("[limits]\nmin_overlap_ratio = 0.99\n")
    assert rankscope("check", run, cwd=tmp_path).returncode == 1
    (tmp_path / "rankscope.toml").write_text("[limits]\nmin_overlap = 0.99\nmax_idle_s = -1\n")
    faulty = rankscope("check", run, cwd=tmp_path)
    assert faulty.returncode == 2
    assert "did you mean min_overlap_ratio?" in faulty.stderr
    assert "max_idle_s: -1 is negative" in faulty.stderr


def test_no_limit_at_all(run: Path, tmp_path: Path) -> None:
    done = rankscope("check", run, cwd=tmp_path)
    assert done.returncode == 2
    assert "no limit is set" in done.stderr
    done = rankscope("check", run, "--max-regression", "overlap_ratio=2pp", cwd=tmp_path)
    assert done.returncode == 2
    assert "nothing to compare with" in done.stderr


def test_what_is_undefined_fails_unless_allowed(run: Path) -> None:
    words = ("check", run, "--limit", "bucket.max_exposed_ms=3")
    done = rankscope(*words)
    assert done.returncode == 1
    assert "NOT MEASURED" in done.stdout
    assert rankscope(*words, "--allow-undefined").returncode == 0


def test_a_saved_report(run: Path, tmp_path: Path) -> None:
    rankscope("analyze", run, "-o", tmp_path / "report.json")
    assert rankscope("check", tmp_path / "report.json", "--limit", "min_overlap_ratio=0.38").returncode == 0


def test_against_a_baseline_named_in_the_limits_file(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ci"
    folder.mkdir()
    assert rankscope("baseline", "update", run, "-o", folder / "base.json").returncode == 0
    (folder / "limits.toml").write_text('baseline = "base.json"\n[regression]\noverlap_ratio = "1pp"\n')
    words = ("--config", folder / "limits.toml", "--html", tmp_path / "c.html")
    done = rankscope("check", run, *words, cwd=tmp_path)
    assert done.returncode == 0
    assert "Compared with the base: No difference." in done.stdout
    assert (tmp_path / "c.html").exists()
    refused = rankscope("check", folder / "base.json", "--limit", "min_overlap_ratio=0.1")
    assert refused.returncode == 2
    assert "is a baseline" in refused.stderr


def test_html_needs_something_to_compare_with(run: Path, tmp_path: Path) -> None:
    done = rankscope("check", run, "--limit", "min_overlap_ratio=0.1", "--html", tmp_path / "c.html")
    assert done.returncode == 2
    assert "give --baseline" in done.stderr


def test_annotations_and_job_summary(run: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    words = ("check", run, "--limit", "min_overlap_ratio=0.5", "--format", "github")
    done = rankscope(*words, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error", "::notice"]
    text = summary.read_text()
    assert text.startswith("before\n<!-- rankscope -->\n## ❌ rankscope: run")
    assert (
        rankscope(
            "check", run, "--limit", "min_overlap_ratio=0.1", GITHUB_STEP_SUMMARY=str(summary)
        ).returncode
        == 0
    )
    assert summary.read_text() == text  # only with --format github


def test_junit_and_gitlab_files(run: Path, tmp_path: Path) -> None:
    flags = ("--limit", "min_overlap_ratio=0.5", "--limit", "max_missing_ranks=0")
    done = rankscope("check", run, *flags, "--junit", tmp_path / "j.xml", "--gitlab", tmp_path / "g.json")
    assert done.returncode == 1
    cases = ET.parse(tmp_path / "j.xml").getroot().findall(".//testcase")  # noqa: S314 - our own text
    assert [(case.get("name"), [child.tag for child in case]) for case in cases] == [
        ("min_overlap_ratio", ["failure"]),
        ("max_missing_ranks", ["system-out"]),
    ]
    (issue,) = strict_json((tmp_path / "g.json").read_text())
    assert issue["location"]["path"] == "rankscope.toml"

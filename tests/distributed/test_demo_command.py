"""`rankscope demo` as a stranger runs it: a report on the terminal, three files, and nothing of theirs touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.collecting import TWO_RANKS
from support.command import rankscope, strict_json

pytest.importorskip("torch", reason="the demo trains with torch")
pytestmark = pytest.mark.distributed


def test_the_whole_demo_twice(tmp_path: Path) -> None:
    done = rankscope("demo", "-o", "out", "--steps", "4", cwd=tmp_path, timeout_seconds=180)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "report.html", "report.json", "report.md", "traces",
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "out" / "traces").iterdir()) == TWO_RANKS
    assert "1/3  training" in done.stderr
    assert "rankscope analyze out/traces --ranks" in done.stderr
    assert "2 ranks · gloo · cpu · 2 steps" in done.stdout
    report = strict_json((tmp_path / "out" / "report.json").read_text())
    assert (report["run"]["world_size"], report["run"]["steps"]) == (2, [2, 3])
    # bucket_cap_mb=4: 8 x Linear(1024), each weight of 4 MiB reaches the cap with its layer
    assert {bucket["size_bytes"] for bucket in report["buckets"]} == {4_198_400}
    assert "<html" in (tmp_path / "out" / "report.html").read_text()[:2000]
    assert (tmp_path / "out" / "report.md").read_text().startswith("#")

    again = rankscope("demo", "-o", "out", "--steps", "4", cwd=tmp_path)
    assert again.returncode == 2
    assert "--force" in again.stderr
    (tmp_path / "out" / "traces" / "notes.txt").write_text("mine")
    forced = rankscope("demo", "-o", "out", "--force", cwd=tmp_path)
    assert forced.returncode == 2
    assert "notes.txt" in forced.stderr
    assert (tmp_path / "out" / "traces" / "notes.txt").read_text() == "mine"


def test_an_output_that_is_in_the_way_is_named_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "report.md").write_text("mine")
    for output, text in (("file", "not a directory"), ("dir", "report.md exists already")):
        done = rankscope("demo", "-o", output, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert text in done.stderr
        assert "training" not in done.stderr

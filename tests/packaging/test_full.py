"""The wheel with all its dependencies, in a place with a decoy `profiler.py` (run by .ci/test_wheel)."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path.cwd()
pytestmark = pytest.mark.skipif(
    not (HERE / "profiler.py").is_file(), reason="needs the place that .ci/test_wheel prepares"
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("rankscope")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_it_is_the_installed_one() -> None:
    import rankscope

    assert rankscope.__file__ is not None
    assert "site-packages" in rankscope.__file__
    assert rankscope.__version__ == importlib.metadata.version("rankscope")


def test_types_are_shipped() -> None:
    import rankscope

    assert rankscope.__file__ is not None
    assert (Path(rankscope.__file__).parent / "py.typed").is_file()


def test_the_command_reports_on_a_sample() -> None:
    done = run("analyze", str(HERE / "sample_traces" / "synthetic_full_overlap"), "--format", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["format"] == {"name": "rankscope-report", "version": "1.0"}
    assert all(row["overlap_ratio"] == 1.0 for row in report["ranks"])


def test_every_format_renders(tmp_path: Path) -> None:
    outputs = [tmp_path / f"report.{suffix}" for suffix in ("html", "md", "json", "txt")]
    options = [text for path in outputs for text in ("-o", str(path))]
    done = run("analyze", str(HERE / "sample_traces" / "synthetic_full_overlap"), *options)
    assert done.returncode == 0, done.stderr
    assert all(path.stat().st_size > 200 for path in outputs)


def test_nothing_imports_the_decoy() -> None:
    code = "import sys, rankscope.cli.main, rankscope.pipeline; assert 'profiler' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

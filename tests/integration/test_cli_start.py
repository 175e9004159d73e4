"""How the command starts, and `rankscope inspect`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from rankscope import __version__
from support.command import COMMAND, ENVIRONMENT, rankscope, strict_json, write_run
from support.trace_text import kernel, trace_text


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("cli") / "run")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["analyze", "--help"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    script = (
        f"import sys; sys.argv = ['rankscope', *{words!r}]\n"
        "from rankscope.cli.main import run_command_line\n"
        "status = run_command_line()\n"
        "heavy = {'pandas', 'numpy', 'plotly', 'streamlit', 'torch', 'pyarrow', 'jinja2', 'fsspec'}\n"
        "sys.stderr.write(' '.join(sorted(heavy & set(sys.modules))))\n"
        "sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "rankscope" in done.stdout


def test_version() -> None:
    assert rankscope("--version").stdout == f"rankscope {__version__}\n"


def test_console_script_is_the_same_command(run: Path) -> None:
    script = Path(sys.executable).with_name("rankscope")
    if not script.exists():
        pytest.skip("the console script is not installed beside this Python")
    done = subprocess.run(
        [str(script), "analyze", str(run), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert done.stdout == rankscope("analyze", run, "--format", "json").stdout


@pytest.mark.parametrize(
    "words", [["analyze"], ["analyze", "x", "--bogus"], ["nonsense"], ["analyze", "x", "--format", "pdf"]]
)
def test_a_command_line_that_cannot_be_read(words: list[str]) -> None:
    done = rankscope(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_inspect_for_people(run: Path) -> None:
    done = rankscope("inspect", run)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "run: ranks 0-1, world size 2"
    assert lines[2].split() == ["0", "0", "rank0.json", "300", "us", "4-6", "0", "15", "3", "0"]


def test_inspect_as_data(run: Path) -> None:
    """Steps [400, 700): 3 annotations, 6 launches, 3 computing and 3 communicating kernels."""
    done = rankscope("inspect", run, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    facts = strict_json(done.stdout)
    assert (facts["world_size"], facts["ranks"], facts["missing_ranks"]) == (2, [0, 1], [])
    assert not facts["cpu_only"]
    window = facts["windows"][1]
    assert (window["rank"], window["rank_source"], window["file"]) == (1, "distributedInfo", "rank1.json")
    assert (window["backend"], window["steps"], window["devices"]) == ("nccl", [4, 5, 6], [0])
    assert window["events"] == {"kernel": 6, "runtime": 6, "user_annotation": 3}
    assert window["device_events"] == {"communication": 3, "compute": 3}
    assert window["span_ns"] == 300_000


def test_inspect_a_broken_run(tmp_path: Path) -> None:
    """A name with control characters and a terminal's commands stays harmless on the way."""
    folder = write_run(tmp_path / "run")
    (folder / "rank1.json").write_text(trace_text([kernel("a", 0, 1)])[:60])
    (folder / "evil\x1b[31m.json").write_text("")
    done = rankscope("inspect", folder)
    assert done.returncode == 2
    assert "missing ranks: 1" in done.stdout
    assert "error: rank1.json at byte " in done.stdout
    assert "\x1b" not in done.stdout
    facts = strict_json(rankscope("inspect", folder, "--format", "json").stdout)
    assert sorted(problem["kind"] for problem in facts["problems"]) == ["empty", "truncated"]


def test_a_file_name_that_is_not_utf8(run: Path, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    (folder / "rank1.json").rename(folder / "rank1_\udcff.json")
    commands: list[list[str | Path]] = [
        ["analyze", folder, "--format", "json"],
        ["analyze", folder, "--format", "html"],
        ["inspect", folder, "--format", "json"],
    ]
    for words in commands:
        assert rankscope(*words).returncode == 0, words


def test_on_a_terminal_progress_is_shown_beside_the_report(run: Path) -> None:
    """stderr is a terminal, stdout a pipe: the bar goes to the first and leaves the report alone."""
    parent, child = pty.openpty()
    done = subprocess.run(
        [*COMMAND, "analyze", str(run), "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=child,
        text=True,
        check=False,
        env={**ENVIRONMENT, "TERM": "xterm"},
    )
    os.close(child)
    shown = os.read(parent, 100_000).decode()
    os.close(parent)
    assert done.returncode == 0
    assert strict_json(done.stdout)["run"]["world_size"] == 2
    assert "reading" in shown
    assert "Traceback" not in shown

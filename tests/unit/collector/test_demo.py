"""The demo's way to run ranks: all of them end, whatever happens, and a failure is quoted."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from rankscope.collector import demo
from rankscope.errors import RankscopeError, UsageError

SLEEPER = "import time; time.sleep(60)"


def _python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def _logs(folder: Path, count: int) -> list[Path]:
    return [folder / f"log_{rank}" for rank in range(count)]


def _alive(pid_file: Path) -> bool:
    try:
        status = Path(f"/proc/{pid_file.read_text()}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.split()[2] != "Z"


def test_ranks_that_end_well_say_nothing(tmp_path: Path) -> None:
    demo.run_ranks([_python("")] * 2, _logs(tmp_path, 2), timeout_seconds=30)


def test_a_failing_rank_ends_the_others_and_is_quoted(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    sleeper = f"import os, pathlib; pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid())); {SLEEPER}"
    failer = (
        f"import pathlib, sys, time\nwhile not pathlib.Path({str(pid_file)!r}).exists(): time.sleep(0.01)\n"
        "time.sleep(0.1); sys.exit('no such bucket')"
    )
    with pytest.raises(RankscopeError, match="rank 1 last said:\nno such bucket") as caught:
        demo.run_ranks([_python(sleeper), _python(failer)], _logs(tmp_path, 2), timeout_seconds=50)
    assert "exit statuses [None, 1]" in str(caught.value)
    assert not _alive(pid_file)


def test_ranks_that_hang_are_killed_in_time(tmp_path: Path) -> None:
    with pytest.raises(RankscopeError, match="did not end within 0 s"):
        demo.run_ranks([_python(SLEEPER)], _logs(tmp_path, 1), timeout_seconds=0.2)


def test_ctrl_c_ends_the_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_file = tmp_path / "pid"
    script = f"import os, pathlib; pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid())); {SLEEPER}"
    sleep = time.sleep

    def interrupt(seconds: float) -> None:
        while not (pid_file.exists() and pid_file.read_text()):
            sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr("rankscope.collector.demo.time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        demo.run_ranks([_python(script)], _logs(tmp_path, 1), timeout_seconds=50)
    assert not _alive(pid_file)


def test_too_few_steps_are_refused_before_anything_starts(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the demo trains with torch")
    with pytest.raises(UsageError, match="steps=2 records nothing"):
        demo.run_demo(tmp_path, steps=2)


def test_without_torch_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    with pytest.raises(RankscopeError, match=r"pip install rankscope\[torch\]"):
        demo.run_demo(tmp_path)

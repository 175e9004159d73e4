"""The real command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.trace_text import Row, collective, kernel, launch, nccl, step, write_ranks

COMMAND = (sys.executable, "-m", "rankscope.cli.main")
ENVIRONMENT = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1", "PYTHONUTF8": "1", "RANKSCOPE_CACHE": "off"}


def rankscope(
    *words: str | Path, cwd: Path | None = None, timeout_seconds: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; a traceback on either stream is a failure."""
    done = subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=timeout_seconds,
        check=False,
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    assert "internal error" not in done.stderr, done.stderr
    return done


def strict_json(text: str) -> Any:
    """The value of a JSON text; NaN and Infinity, which JSON does not know, are failures."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    return json.loads(text, parse_constant=refuse)


def work(number: int) -> list[Row]:
    """Step `number` of 100 us: compute [3, 53) and an all-reduce [30, 90) of which 23 of 60 us are hidden."""
    at, first = 100 * number, 10 * number
    args = collective("allreduce", 8, 8, group="0", ranks="[0, 1]", size=2)
    return [
        step(number, at, 100),
        launch(first, at + 1),
        launch(first + 1, at + 2),
        kernel("gemm", at + 3, 50, correlation=first),
        nccl(at + 30, 60, correlation=first + 1, args=args),
    ]


def write_run(folder: Path) -> Path:
    """A run of two ranks and the steps 4, 5 and 6, all alike."""
    folder.mkdir()
    events = [row for number in (4, 5, 6) for row in work(number)]
    return write_ranks(folder, {0: events, 1: events})

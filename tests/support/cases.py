"""A case of ../shared/cases, and what the commands say of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankscope.model.report import Report
from support.command import COMMAND, rankscope


@dataclass(frozen=True)
class Case:
    """One folder: what it expects, and our answer."""

    folder: Path
    expect: dict[str, Any]
    report: Report | None


PEAK_OF_CHILD = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def compare_sides(case: Case, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit status and verdict of `rankscope compare` on the two sides of a case."""
    sides = [case.folder / side for side in ("baseline", "candidate")]
    done = rankscope("compare", "--format", "json", *sides, *words)
    return done.returncode, json.loads(done.stdout)


def peak_memory_mib(folder: Path) -> float:
    """Peak memory of `rankscope analyze`, of its largest process."""
    command = [sys.executable, "-c", PEAK_OF_CHILD, *COMMAND, "analyze", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return int(done.stdout) / 1024

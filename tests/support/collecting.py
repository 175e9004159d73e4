"""What the collector's tests do and look at: a training loop under a collector, steps of a trace, files of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankscope.collector import Collector

JOB_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
TWO_RANKS = ["rank_00000.0.pt.trace.json.gz", "rank_00001.0.pt.trace.json.gz"]


@dataclass(frozen=True)
class Ended:
    """How one rank ended."""

    status: int
    stdout: str
    stderr: str


ReadRun = Callable[[], dict[str, Any]]
RunJob = Callable[[str], list[Ended]]


def run_under(collector: Collector, train: Callable[[], None], steps: int) -> None:
    """So many training steps, each of them ended by `collector.step()`."""
    with collector:
        for _ in range(steps):
            train()
            collector.step()


def step_names(trace: dict[str, Any]) -> list[str]:
    """The step annotations of a trace, in order of time."""
    rows = [event for event in trace["traceEvents"] if event.get("name", "").startswith("ProfilerStep#")]
    return [row["name"] for row in sorted(rows, key=lambda row: float(row["ts"]))]


def file_names(directory: Path) -> list[str]:
    """The names in a folder, sorted."""
    return sorted(path.name for path in directory.iterdir())

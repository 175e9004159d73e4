"""Synthetic runs whose answers are given, not computed: choose a scenario and write it as trace files.

    scenario = ddp_run(ranks=4, straggler=(3, 2_000_000, "input")).with_clocks({1: 5_000_000})
    expected = write_run(scenario, tmp_path, torch="2.8")
    expected.ranks[0].exposed_communication_ns

`expected` never comes from the files nor from rankscope's own analyses: each scenario works its answers out
by arithmetic on its parameters, and says how. `rankscope.testing.corrupt` damages written files.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rankscope.testing.expected import (
    Expected,
    ExpectedBucket,
    ExpectedCollective,
    ExpectedMeasures,
    ExpectedStraggler,
)
from rankscope.testing.scenario import RankClock, Scenario
from rankscope.testing.scenarios.ddp import ddp_run
from rankscope.testing.scenarios.fsdp import fsdp_run
from rankscope.testing.scenarios.hosts import host_slow
from rankscope.testing.scenarios.pipeline import pipeline_data_parallel
from rankscope.testing.scenarios.tensor import tensor_data_parallel
from rankscope.testing.trace_style import TorchRelease, TraceStyle
from rankscope.testing.trace_writer import write_scenario

__all__ = [
    "Expected",
    "ExpectedBucket",
    "ExpectedCollective",
    "ExpectedMeasures",
    "ExpectedStraggler",
    "RankClock",
    "Scenario",
    "TraceStyle",
    "ddp_run",
    "fsdp_run",
    "host_slow",
    "pipeline_data_parallel",
    "tensor_data_parallel",
    "write_run",
]


def write_run(
    scenario: Scenario,
    directory: str | Path,
    *,
    torch: TorchRelease | None = None,
    style: TraceStyle | None = None,
) -> Expected:
    """Write a scenario as one trace file per rank.

    Args:
        scenario: the run.
        directory: where to; made if absent.
        torch: release that writes the files, if all else is to be as usual.
        style: everything else about how the files look.

    Returns:
        The answers.

    Raises:
        UsageError: a release that writes whole microseconds would round times of this run.
    """
    chosen = style or TraceStyle()
    return write_scenario(scenario, Path(directory), replace(chosen, torch=torch) if torch else chosen)

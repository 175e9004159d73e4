"""Runs of a real DDP job with a fault hidden in one rank, and what rankscope says of them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rankscope.collector.demo import run_ranks
from rankscope.model.report import Straggler
from rankscope.pipeline import analyze

JOB = Path(__file__).with_name("fault_job.py")
STAGES = ("data loading", "forward", "backward", "communication hook", "optimizer", "callback")
DELAYS_MS = (10, 20, 40)


@dataclass(frozen=True)
class Fault:
    """What is done to a run; `stage` None: nothing."""

    world_size: int
    stage: str | None
    delay_ms: float
    slow_rank: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What was found of a fault."""

    fault: Fault
    straggler: Straggler

    @property
    def rank_right(self) -> bool:
        """Whether the slow rank, or nobody in a run without a fault, is named."""
        return self.straggler.rank == (self.fault.slow_rank if self.fault.stage else None)

    @property
    def stage_right(self) -> bool:
        """Whether the stage is named; a callback lies outside the stages that PyTorch annotates."""
        wanted = "outside the training stages" if self.fault.stage == "callback" else self.fault.stage
        return self.rank_right and self.straggler.cause_stage == wanted

    @property
    def delay_right(self) -> bool:
        """Whether the time lost is within 20 % of what was injected."""
        found = (self.straggler.cause_ns_per_step or 0) / 1e6
        return abs(found - self.fault.delay_ms) <= 0.2 * self.fault.delay_ms


def run_fault(fault: Fault, directory: Path, *, steps: int, timeout_seconds: float = 120) -> Outcome:
    """Train with the fault, read the traces, and return the verdict."""
    with tempfile.TemporaryDirectory(prefix="rankscope-fault-") as scratch:
        options = {
            "output": directory,
            "world-size": fault.world_size,
            "init-file": Path(scratch, "store"),
            "stage": fault.stage or "none",
            "slow-rank": fault.slow_rank,
            "delay-ms": fault.delay_ms,
            "seed": fault.seed,
            "steps": steps,
        }
        command = [sys.executable, str(JOB), *(f"--{name}={value}" for name, value in options.items())]
        ranks = range(fault.world_size)
        run_ranks(
            [[*command, f"--rank={rank}"] for rank in ranks],
            [Path(scratch, f"log_{rank}") for rank in ranks],
            timeout_seconds=timeout_seconds,
        )
    straggler = analyze(directory).straggler
    assert straggler is not None
    return Outcome(fault, straggler)


def all_faults(world_size: int, seed: int) -> Iterable[Fault]:
    """36 rows with a fault (6 stages x 3 delays x 2 ranks) and 12 without."""
    ranks = (0, world_size - 1) if seed % 2 else (1, world_size - 2 if world_size > 2 else 0)
    for stage in STAGES:
        for delay_ms in DELAYS_MS:
            for rank in ranks:
                yield Fault(world_size, stage, delay_ms, rank, seed)
    for row in range(12):
        yield Fault(world_size, None, 0, -1, seed + row)

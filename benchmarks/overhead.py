"""What the collector costs a real DDP training on this machine: idle, recording, and writing a window.

    python benchmarks/overhead.py [--seconds 120] [--windows 20]

Two ranks train over gloo. Idle: pairs of neighbouring steps, one with an idle collector's `step()` and one without, in
random order, the same on both ranks. Recording: windows of recorded steps between as many unrecorded ones. All
comparisons are paired and stay within one process, so that the machine's other load hits both sides about alike. Wall
time, and the processor time of the training thread, which other processes disturb less.

Confidence intervals of 95 %: percentile bootstrap of the median of paired differences over 4,000 resamples. Differences
are divided by the median step without the collector.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from measuring import load_note
from rankscope.collector import Collector
from rankscope.collector.demo import run_ranks

_WORLD_SIZE = 2
_LAYERS, _WIDTH, _BATCH = 4, 512, 128
_WARM_UP_STEPS = 50
_PAIRS_AT_ONCE = 100
_NEVER = 10**9
_BLOCK_STEPS = 10  # recorded steps of a window, and unrecorded ones before it
_DIRECT_CALLS = 200_000
_RESAMPLES = 4_000
Times = tuple[int, int]  # wall, and processor time of the thread, in ns
_CLOCKS = ("wall time", "processor time")
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A median with its 95 % confidence interval, and from how many pairs."""

    median: float
    low: float
    high: float
    pairs: int


def estimate(differences: Float64, seed: int = 0) -> Estimate:
    """The median of `differences` and its bootstrap interval."""
    random = np.random.default_rng(seed)
    medians = [float(np.median(random.choice(differences, len(differences)))) for _ in range(_RESAMPLES)]
    low, high = np.percentile(medians, (2.5, 97.5))
    return Estimate(
        median=float(np.median(differences)), low=float(low), high=float(high), pairs=len(differences)
    )


# One rank


def build_training(options: argparse.Namespace) -> Callable[[], None]:
    """Join the process group; return one training step of a small DDP model."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(
        "gloo", init_method=f"file://{options.store}", rank=options.rank, world_size=_WORLD_SIZE
    )
    layers = [torch.nn.Linear(_WIDTH, _WIDTH) for _ in range(_LAYERS)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    samples = torch.randn(_BATCH, _WIDTH)

    def train() -> None:
        optimizer.zero_grad()
        model(samples).square().mean().backward()
        optimizer.step()

    for _ in range(_WARM_UP_STEPS):
        train()
    return train


def measure_idle(train: Callable[[], None], options: argparse.Namespace) -> list[tuple[Times, Times]]:
    """Pairs of steps (without, with an idle collector), until time is up on some rank."""
    random = np.random.default_rng(7)  # the same order on both ranks
    pairs: list[tuple[Times, Times]] = []
    with Collector(Path(options.scratch, "idle"), skip_first=_NEVER, repeat=1) as collector:

        def train_and_step() -> None:
            train()
            collector.step()

        began = perf_counter_ns()
        while share_largest(perf_counter_ns() - began) < options.seconds * 1e9:
            for is_first in random.random(_PAIRS_AT_ONCE) < 0.5:
                if is_first:
                    with_collector, without = take_time(train_and_step), take_time(train)
                else:
                    without, with_collector = take_time(train), take_time(train_and_step)
                pairs.append((without, with_collector))
        collector._is_off = True  # nothing was recorded, on purpose: no warning about it
    return pairs


def take_time(action: Callable[[], None]) -> Times:
    """Wall and processor time of `action`."""
    wall, processor = perf_counter_ns(), thread_time_ns()
    action()
    processor_end, wall_end = thread_time_ns(), perf_counter_ns()
    return wall_end - wall, processor_end - processor


def measure_direct(options: argparse.Namespace) -> float:
    """Time of one idle `step()` in ns, from a loop of nothing else."""
    with Collector(Path(options.scratch, "direct"), skip_first=_NEVER) as collector:
        start = perf_counter_ns()
        for _ in range(_DIRECT_CALLS):
            collector.step()
        took = perf_counter_ns() - start
        collector._is_off = True
    return took / _DIRECT_CALLS


def measure_windows(train: Callable[[], None], options: argparse.Namespace) -> dict[str, Any]:
    """Times of each window: unrecorded steps, recorded ones, and what the last `step()` took to write it."""
    wait, warmup = _BLOCK_STEPS, 1
    unrecorded, recorded, writing = [], [], []
    collector = Collector(
        Path(options.scratch, "windows"),
        wait=wait,
        warmup=warmup,
        active=_BLOCK_STEPS,
        repeat=options.windows,
    )

    def train_and_step() -> None:
        train()
        collector.step()

    with collector:
        for _ in range(options.windows):
            block = [take_time(train_and_step) for _ in range(wait + warmup + _BLOCK_STEPS - 1)]
            train()
            writing.append(take_time(collector.step))
            unrecorded.append(block[:wait])
            recorded.append(block[wait + warmup :])
    sizes = [file.stat().st_size for file in collector.files]
    return {"unrecorded": unrecorded, "recorded": recorded, "writing": writing, "trace_bytes": sizes}


def share_largest(value: int) -> int:
    """The largest `value` of all ranks, so that they stop together."""
    import torch
    import torch.distributed as dist

    shared = torch.tensor([value])
    dist.all_reduce(shared, dist.ReduceOp.MAX)
    return int(shared.item())


def run_rank(options: argparse.Namespace) -> None:
    """Train, measure, and write the times of this rank."""
    import torch.distributed as dist

    train = build_training(options)
    result = {
        "idle": measure_idle(train, options),
        "direct_ns": measure_direct(options),
        "windows": measure_windows(train, options),
    }
    Path(options.scratch, f"times_{options.rank}.json").write_text(json.dumps(result))
    dist.destroy_process_group()


# The table


def summarise(results: Sequence[dict[str, Any]]) -> str:
    """A Markdown table of all figures, over both ranks."""
    # Axes: pair; without, with; wall, processor
    idle = np.array([pair for result in results for pair in result["idle"]], np.float64)
    step_ns = np.median(idle[:, 0], axis=0)
    direct_ns = float(np.mean([result["direct_ns"] for result in results]))
    windows = [result["windows"] for result in results]
    # Axes: window; wall, processor
    unrecorded = np.concatenate([np.median(np.array(w["unrecorded"], np.float64), axis=1) for w in windows])
    recorded = np.concatenate([np.median(np.array(w["recorded"], np.float64), axis=1) for w in windows])
    writing = np.concatenate([np.array(w["writing"], np.float64) for w in windows])
    trace_kb = float(np.median([size for w in windows for size in w["trace_bytes"]])) / 1e3
    lines = ["| what | clock | cost | 95 % interval | from |", "|---|---|--:|--:|---|"]
    for i, clock in enumerate(_CLOCKS):
        lines.append(
            f"| a step without the collector | {clock} | {step_ns[i] / 1e6:.2f} ms | | {len(idle)} steps |"
        )
        share = estimate((idle[:, 1, i] - idle[:, 0, i]) / step_ns[i])
        lines.append(
            f"| idle, paired on/off steps | {clock} | {share.median:+.3%} of the step "
            f"| {share.low:+.3%} to {share.high:+.3%} | {share.pairs} pairs |"
        )
    lines.append(
        f"| idle, `step()` alone | wall time | {direct_ns:.0f} ns = {direct_ns / step_ns[0]:.4%} of the step "
        f"| | {_DIRECT_CALLS} calls on each rank |"
    )
    for i, clock in enumerate(_CLOCKS):
        slower = estimate((recorded[:, i] - unrecorded[:, i]) / unrecorded[:, i])
        lines.append(
            f"| recording | {clock} | {slower.median:+.1%} of the step | {slower.low:+.1%} to {slower.high:+.1%} "
            f"| {slower.pairs} windows of {_BLOCK_STEPS} steps |"
        )
    for i, clock in enumerate(_CLOCKS):
        took = estimate(writing[:, i] / 1e6)
        lines.append(
            f"| writing a window ({trace_kb:.0f} kB) | {clock} | {took.median:.0f} ms "
            f"| {took.low:.0f} to {took.high:.0f} ms | {took.pairs} windows |"
        )
    return "\n".join(lines)


def main() -> None:
    """Start the ranks, or be one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=120.0, help="time for the idle pairs")
    parser.add_argument("--windows", type=int, default=20, help="recorded windows")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("--scratch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        run_rank(options)
        return
    load_before = load_note()
    with tempfile.TemporaryDirectory() as scratch:
        given = [f"--seconds={options.seconds}", f"--windows={options.windows}"]
        given += [f"--store={scratch}/store", f"--scratch={scratch}"]
        commands = [[sys.executable, __file__, *given, f"--rank={rank}"] for rank in range(_WORLD_SIZE)]
        logs = [Path(scratch, f"log_{rank}") for rank in range(_WORLD_SIZE)]
        run_ranks(commands, logs, timeout_seconds=600 + 2 * options.seconds)
        results = [json.loads(Path(scratch, f"times_{rank}.json").read_text()) for rank in range(_WORLD_SIZE)]
    print(f"{_WORLD_SIZE} ranks, {_LAYERS} x Linear({_WIDTH}), batch {_BATCH}")
    print(f"{load_before} before, {load_note()} after\n")
    print(summarise(results))


if __name__ == "__main__":
    main()

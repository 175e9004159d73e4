"""A small real DDP training on CPU under the collector: something true to analyse, without a GPU.

`run_demo` starts one process per rank; each of them runs this module with `python -m`. One thread per rank and
gloo's own worker threads make communication run beside compute, as it does on GPUs.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rankscope.collector.collector import Collector
from rankscope.collector.trace_file import SUFFIX
from rankscope.errors import RankscopeError, UsageError

_MODULE = "rankscope.collector.demo"
_WAIT_STEPS, _WARMUP_STEPS = 1, 1
_UNRECORDED_STEPS = _WAIT_STEPS + _WARMUP_STEPS
_POLL_SECONDS = 0.05
_STDERR_TAIL_CHARS = 2_000


def run_demo(
    directory: str | os.PathLike[str],
    *,
    world_size: int = 2,
    bucket_cap_mb: float = 10.0,
    steps: int = 6,
    layers: int = 8,
    width: int = 1024,
    batch: int = 256,
    seed: int = 0,
    scrub: bool = False,
    timeout_seconds: float = 120.0,
) -> list[Path]:
    """Train with DDP in `world_size` processes on this host; return the traces, one per rank.

    Args:
        directory: folder of the run.
        world_size: number of ranks.
        bucket_cap_mb: DDP's `bucket_cap_mb`, in MiB.
        steps: training steps in all; the first two are not recorded.
        layers: number of linear layers.
        width: features of each layer.
        batch: samples per rank and step.
        seed: seed of the weights and of the data.
        scrub: whether the traces go without host name and paths.
        timeout_seconds: time in seconds after which every process is killed.

    Raises:
        RankscopeError: torch is missing, a rank failed (its last words are in the message), a trace is missing,
            or time ran out.
    """
    if find_spec("torch") is None:
        raise RankscopeError("the demo trains with torch; install it: `pip install rankscope[torch]`")
    if steps <= _UNRECORDED_STEPS:
        raise UsageError(f"steps={steps} records nothing: recording begins with step {_UNRECORDED_STEPS}")
    before = _list_traces(directory)
    with tempfile.TemporaryDirectory(prefix="rankscope_demo_") as scratch:
        options = {
            "output": os.fspath(directory),
            "init-file": Path(scratch, "store"),
            "world-size": world_size,
            "bucket-cap-mb": bucket_cap_mb,
            "steps": steps,
            "layers": layers,
            "width": width,
            "batch": batch,
            "seed": seed,
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        if scrub:
            arguments.append("--scrub")
        commands = [[sys.executable, "-m", _MODULE, *arguments, f"--rank={r}"] for r in range(world_size)]
        logs = [Path(scratch, f"stderr_{rank}") for rank in range(world_size)]
        run_ranks(commands, logs, timeout_seconds=timeout_seconds)
        traces = sorted(_list_traces(directory) - before)
        if len(traces) < world_size:
            raise RankscopeError(f"{len(traces)} traces of {world_size} ranks in {directory}\n{_quote(logs)}")
    return traces


def run_ranks(commands: Sequence[Sequence[str]], logs: Sequence[Path], *, timeout_seconds: float) -> None:
    """Run one command per rank side by side until all have ended; none outlives this call.

    Args:
        commands: the command of each rank.
        logs: files for what each rank writes.
        timeout_seconds: time in seconds after which all are killed.

    Raises:
        RankscopeError: a rank failed, or time ran out.
    """
    deadline = time.monotonic() + timeout_seconds
    with _processes(commands, logs) as processes:
        while None in (statuses := [process.poll() for process in processes]) and not any(statuses):
            if time.monotonic() > deadline:
                raise RankscopeError(
                    f"the ranks did not end within {timeout_seconds:.0f} s and were killed\n{_quote(logs)}"
                )
            time.sleep(_POLL_SECONDS)
        if any(statuses):
            raise RankscopeError(f"a rank failed; exit statuses {statuses}\n{_quote(logs)}")


@contextmanager
def _processes(
    commands: Sequence[Sequence[str]], logs: Sequence[Path]
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The started processes; whatever ends the block, Ctrl-C included, they end too."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command, log in zip(commands, logs, strict=True):
            with log.open("wb") as stderr:
                started.append(
                    subprocess.Popen(  # noqa: S603 - our own interpreter and module
                        command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, env=_environment()
                    )
                )
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    """The ranks' environment: gloo on the loopback device, since a host's own name may not resolve."""
    loopback = find_loopback()
    defaults = {} if loopback is None else {"GLOO_SOCKET_IFNAME": loopback}
    return {**defaults, **os.environ, "OMP_NUM_THREADS": "1"}


def find_loopback() -> str | None:
    """Name of the loopback device; None if it has no usual name."""
    return next((name for _, name in socket.if_nameindex() if name in ("lo", "lo0")), None)


def _list_traces(directory: str | os.PathLike[str]) -> set[Path]:
    return set(Path(directory).glob(f"rank_*{SUFFIX}"))


def _quote(logs: Sequence[Path]) -> str:
    """The last words of every rank: the one that failed first is not always the one seen first."""
    tails = [log.read_text(errors="replace")[-_STDERR_TAIL_CHARS:].strip() for log in logs]
    return "\n".join(f"--- rank {rank} last said:\n{tail or '(nothing)'}" for rank, tail in enumerate(tails))


def train(options: argparse.Namespace) -> None:
    """Train one rank under the collector."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    dist.init_process_group(
        "gloo", init_method=f"file://{options.init_file}", rank=options.rank, world_size=options.world_size
    )
    linear_layers = [torch.nn.Linear(options.width, options.width) for _ in range(options.layers)]
    model = DistributedDataParallel(torch.nn.Sequential(*linear_layers), bucket_cap_mb=options.bucket_cap_mb)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.Generator().manual_seed(options.seed + options.rank)
    active = options.steps - _UNRECORDED_STEPS
    labels = {"bucket_cap_mb": options.bucket_cap_mb, "job": "rankscope demo"}
    with Collector(
        options.output,
        wait=_WAIT_STEPS,
        warmup=_WARMUP_STEPS,
        active=active,
        labels=labels,
        scrub=options.scrub,
        calibrate=options.world_size > 1,
    ) as collector:
        collector.watch(model)
        for _ in range(options.steps):
            samples = torch.randn(options.batch, options.width, generator=data)
            optimizer.zero_grad()
            model(samples).square().mean().backward()
            optimizer.step()
            collector.step()
    dist.destroy_process_group()


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of one rank."""
    parser = argparse.ArgumentParser(prog="python -m rankscope.collector.demo", description=train.__doc__)
    parser.add_argument("--output", required=True, help="folder of the run")
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world-size", type=int, required=True)
    parser.add_argument(
        "--init-file", required=True, type=os.path.abspath, help="file of torch's file:// store"
    )
    parser.add_argument("--bucket-cap-mb", type=float, default=10.0, help="DDP's bucket_cap_mb, in MiB")
    parser.add_argument("--steps", type=int, default=6, help="training steps; the first two are not recorded")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=256, help="samples per rank and step")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scrub", action="store_true", help="leave out host name and paths")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    train(parse_arguments())

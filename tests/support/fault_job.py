"""One rank of a small real DDP job in which one rank is slow in a known way (run as a script).

No `from __future__ import annotations` here: DDP checks the types of a hook's annotations.
"""

import argparse
import time
from collections import defaultdict

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import GradBucket  # type: ignore[attr-defined]
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from rankscope.collector import Collector

LAYERS, WIDTH, BATCH = 6, 256, 8
BUCKET_CAP_MB = 0.5
PAUSE_S = 0.003


class Samples(Dataset[torch.Tensor]):
    """Samples of no meaning; loading the first of a batch takes longer on a slow rank."""

    def __init__(self, size: int, delay_s: float) -> None:
        self._size, self._delay_s = size, delay_s

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> torch.Tensor:
        if self._delay_s and index % BATCH == 0:
            time.sleep(self._delay_s)
        return torch.full((WIDTH,), float(index % 7))


class Pause(nn.Module):
    """A layer whose compute is a wait of known length, so that two cores hold four ranks."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(self._seconds)
        return x


def build_model(extra_s: float) -> nn.Sequential:
    """Layers with a pause after each; that of the middle one is `extra_s` longer."""
    layers: list[nn.Module] = []
    for i in range(LAYERS):
        extra = extra_s if i == LAYERS // 2 else 0.0
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU(), Pause(PAUSE_S + extra)]
    return nn.Sequential(*layers)


def train(args: argparse.Namespace) -> None:
    slow = args.rank == args.slow_rank
    delay = defaultdict(float, {args.stage: args.delay_ms / 1000} if slow else {})  # stage -> seconds
    torch.manual_seed(args.seed)
    model = build_model(delay["forward"])
    ddp = DistributedDataParallel(model, bucket_cap_mb=BUCKET_CAP_MB)
    add_hooks(model, ddp, delay)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    if delay["optimizer"]:
        optimizer.register_step_pre_hook(lambda *_: time.sleep(delay["optimizer"]))
    loader = DataLoader(Samples(args.steps * BATCH, delay["data loading"]), BATCH)
    with Collector(args.output, wait=2, warmup=1, active=args.steps - 3) as collector:
        collector.watch(ddp)
        for batch in loader:
            ddp(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if delay["callback"]:
                time.sleep(delay["callback"])
            collector.step()


def add_hooks(model: nn.Sequential, ddp: DistributedDataParallel, delay: dict[str, float]) -> None:
    """A gradient hook in the middle of the model, and a communication hook on all ranks that may be slow on one."""
    middle = [p for p in model.parameters() if p.ndim == 2][LAYERS // 2]
    if delay["backward"]:
        middle.register_hook(lambda _grad: time.sleep(delay["backward"]))  # type: ignore[no-untyped-call]

    def hook(group: dist.ProcessGroup | None, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        if delay["communication hook"] and bucket.is_last():
            time.sleep(delay["communication hook"])
        return default_hooks.allreduce_hook(group, bucket)  # type: ignore[arg-type]

    ddp.register_comm_hook(None, hook)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, kind in (
        ("output", str), ("rank", int), ("world-size", int), ("init-file", str),
        ("stage", str), ("slow-rank", int), ("delay-ms", float), ("seed", int), ("steps", int),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=kind, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{args.init_file}", rank=args.rank, world_size=args.world_size
    )
    try:
        train(args)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""One rank of a small real DDP job in which one rank is slow in a known way (run as a script).

No `from __future__ import annotations` here: DDP checks the types of a hook's annotations.
"""

import argparse
import random
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import GradBucket  # type: ignore[attr-defined]
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from rankscope.collector import Collector

STAGES = ("data loading", "forward", "backward", "communication hook", "optimizer", "callback")


class Samples(Dataset[torch.Tensor]):
    """Random samples; loading the first of a batch takes longer on a slow rank."""

    def __init__(self, size: int, width: int, delay_s: float, batch: int) -> None:
        self._size, self._width, self._delay_s, self._batch = size, width, delay_s, batch

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> torch.Tensor:
        if self._delay_s and index % self._batch == 0:
            time.sleep(self._delay_s)
        return torch.full((self._width,), float(index % 7))


class Pause(nn.Module):
    """A layer whose compute is a wait of known length, so that two cores hold four ranks."""

    def __init__(self, forward_s: float, extra_s: float) -> None:
        super().__init__()
        self._seconds = forward_s + extra_s

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(self._seconds)
        return x


def build_model(args: argparse.Namespace, delay: dict[str, float]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i in range(args.layers):
        layers += [nn.Linear(args.width, args.width), nn.ReLU()]
        extra = delay["forward"] if i == args.layers // 2 else 0.0
        layers.append(Pause(args.pause_ms / 1000, extra))
    return nn.Sequential(*layers)


def train(args: argparse.Namespace) -> None:
    slow = args.rank == args.slow_rank
    delay = {stage: args.delay_ms / 1000 if slow and stage == args.stage else 0.0 for stage in STAGES}
    torch.manual_seed(args.seed)
    random.seed(args.seed + args.rank)
    model = build_model(args, delay)
    ddp = DistributedDataParallel(model, bucket_cap_mb=args.bucket_cap_mb)
    add_hooks(model, ddp, delay, args)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    if delay["optimizer"]:
        optimizer.register_step_pre_hook(lambda *_: time.sleep(delay["optimizer"]))
    loader = DataLoader(
        Samples(args.steps * args.batch, args.width, delay["data loading"], args.batch), args.batch
    )
    with Collector(args.output, wait=2, warmup=1, active=args.steps - 3) as collector:
        collector.watch(ddp)
        for batch in loader:
            ddp(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if delay["callback"]:
                time.sleep(delay["callback"])
            collector.step()


def add_hooks(
    model: nn.Sequential, ddp: DistributedDataParallel, delay: dict[str, float], args: argparse.Namespace
) -> None:
    """A gradient hook in the middle of the model, and a communication hook on all ranks that may be slow on one."""
    middle = [p for p in model.parameters() if p.ndim == 2][args.layers // 2]
    if delay["backward"]:
        middle.register_hook(lambda grad: time.sleep(delay["backward"]))

    def hook(group: dist.ProcessGroup | None, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        if delay["communication hook"] and bucket.is_last():
            time.sleep(delay["communication hook"])
        return default_hooks.allreduce_hook(group, bucket)  # type: ignore[arg-type]

    if args.stage == "communication hook" or args.with_hook:
        ddp.register_comm_hook(None, hook)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, kind, default in (
        ("output", str, None), ("rank", int, None), ("world-size", int, None), ("init-file", str, None),
        ("stage", str, "none"), ("slow-rank", int, -1), ("delay-ms", float, 0.0), ("seed", int, 0), ("steps", int, 15),
        ("layers", int, 6), ("width", int, 256), ("batch", int, 8), ("pause-ms", float, 3.0),
        ("bucket-cap-mb", float, 0.5),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=kind, default=default)
    parser.add_argument("--with-hook", action="store_true")
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

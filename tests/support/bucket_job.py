"""Two ranks that use DDP in every way that changes what is sent, and when; one run directory each (run as a script).

Models of four Linear(128): 66,048 bytes each; a cap of 0.1 MiB = 104,857 bytes holds two of them.
"""

import sys
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from rankscope.collector import Collector

CAP_MB = 0.1


class Unused(nn.Module):
    """A model half of whose parameters get no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(128, 128)
        self.extra = nn.Linear(128, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.used(x)
        return y


def build(
    layers: int = 4, *, cap: float = CAP_MB, view: bool = False, static: bool = False
) -> DistributedDataParallel:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(128, 128) for _ in range(layers)))
    return DistributedDataParallel(
        model, bucket_cap_mb=cap, gradient_as_bucket_view=view, static_graph=static
    )


def record(folder: str, models: list[DistributedDataParallel], step: Callable[..., None]) -> None:
    with Collector(folder, wait=2, warmup=1, active=2) as collector:
        for model in models:
            collector.watch(model)
        for _ in range(5):
            step(*models)
            collector.step()


def train(model: nn.Module) -> None:
    model(torch.ones(4, 128)).square().mean().backward()


def accumulate(model: DistributedDataParallel) -> None:
    with model.no_sync():
        train(model)
    train(model)


def both(first: nn.Module, second: nn.Module) -> None:
    first(second(torch.ones(4, 128))).square().mean().backward()


def train_and_reduce(model: nn.Module) -> None:
    train(model)
    dist.all_reduce(torch.ones(7))


def main(run: str, store: str, rank: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
    record(f"{run}/plain", [build()], train)
    record(f"{run}/view", [build(view=True)], train)
    record(f"{run}/static", [build(static=True)], train)
    record(f"{run}/no_sync", [build()], accumulate)
    record(f"{run}/metrics", [build()], train_and_reduce)
    unused = DistributedDataParallel(Unused(), bucket_cap_mb=0.01, find_unused_parameters=True)
    record(f"{run}/unused", [unused], train)
    record(f"{run}/two", [build(), build(2, cap=0.01)], both)
    hooked = build()
    hooked.register_comm_hook(None, default_hooks.fp16_compress_hook)
    record(f"{run}/hook", [hooked], train)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])

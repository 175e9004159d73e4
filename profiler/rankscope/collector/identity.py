"""Who this process is among the ranks: asked of torch.distributed, else of torchrun's environment."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Place of this process in the job.

    Attributes:
        rank, world_size: of the default process group; 0 of 1 without any sign of others.
        local_rank: rank on this host; None if nothing tells.
        backend: backend of the default process group, "" while there is none.
        certain: whether the process group or the environment told; False means "alone, as far as one can see",
            which a process group initialised later may correct.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int | None = None
    backend: str = ""
    certain: bool = False


def read_identity() -> Identity:
    """The identity of this process as it can be known now, without talking to any other rank."""
    import torch.distributed as dist

    local_rank = read_number("LOCAL_RANK")
    if dist.is_available() and dist.is_initialized():
        return Identity(
            rank=dist.get_rank(),
            world_size=dist.get_world_size(),
            local_rank=local_rank,
            backend=str(dist.get_backend()),
            certain=True,
        )
    rank, world_size = read_number("RANK"), read_number("WORLD_SIZE")
    if rank is None or world_size is None or rank >= world_size:
        return Identity(local_rank=local_rank)
    return Identity(rank=rank, world_size=world_size, local_rank=local_rank, certain=True)


def read_number(variable: str) -> int | None:
    """The whole number in an environment variable; None where there is none."""
    text = os.environ.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() else None

"""How much memory a joint action may use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rankscope.collector.identity import read_number

if TYPE_CHECKING:
    import torch

_MEMINFO = Path("/proc/meminfo")
_UNKNOWN_BYTES = 256 << 20  # where the system does not say
_BYTES_PER_KIB = 1024


def find_free_bytes(device: torch.device) -> int:
    """Bytes that are free on `device`; 256 MiB where the system does not say.

    >>> import torch
    >>> find_free_bytes(torch.device("cpu")) > 0
    True
    """
    import torch

    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return _UNKNOWN_BYTES
    kib = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return kib[0] * _BYTES_PER_KIB if kib else _UNKNOWN_BYTES


def count_ranks_on_host(world_size: int) -> int:
    """Ranks that share this host's memory: as torchrun says, else all of them."""
    return read_number("LOCAL_WORLD_SIZE") or world_size

"""What the collector's tests share: a process group of one, training in small, and reading traces back."""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rankscope.collector import RankscopeWarning
from rankscope.collector.demo import find_loopback
from support.collecting import JOB_VARIABLES

Trace = dict[str, Any]


@pytest.fixture(autouse=True)
def _outside_any_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a plain `python train.py`, whatever starts the tests."""
    for variable in JOB_VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def read_trace() -> Callable[[Path], Trace]:
    """Reads a trace file strictly: whole gzip, valid JSON."""

    def read(path: Path) -> Trace:
        with gzip.open(path, "rt", encoding="utf-8") as text:
            trace: Trace = json.load(text)
        return trace

    return read


@pytest.fixture
def said() -> Iterator[Callable[[], list[str]]]:
    """The texts of the RankscopeWarnings so far; the test sees them instead of pytest."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [str(w.message) for w in caught if issubclass(w.category, RankscopeWarning)]


@pytest.fixture
def train() -> Callable[[], None]:
    """One training step: a little work for the profiler to see."""
    torch = pytest.importorskip("torch", reason="the collector records torch")

    def train_step() -> None:
        torch.ones(8, 8) @ torch.ones(8, 8)

    return train_step


@pytest.fixture
def process_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Initialises a gloo process group of this process alone, and destroys it after the test."""
    pytest.importorskip("torch", reason="the process group is torch's")
    import torch.distributed as dist

    if loopback := find_loopback():
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", loopback)

    def initialise() -> None:
        dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)

    yield initialise
    if dist.is_initialized():
        dist.destroy_process_group()

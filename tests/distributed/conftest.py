"""Starts real ranks on this host: gloo over the loopback device, one thread each."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankscope.collector import demo
from support.collecting import JOB_VARIABLES, Ended, RunJob

TIMEOUT_SECONDS = 60
WORLD_SIZE = 2
# What every script begins with; argv: run directory, and unless torchrun starts it rank, world size, store file.
PRELUDE = """
import json, pathlib, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import rankscope

torch.set_num_threads(1)
run = sys.argv[1]
if len(sys.argv) > 2:
    rank, world_size, store = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

def join():
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world_size)

def build(layers=4, width=128, **options):
    torch.manual_seed(0)
    linear = [torch.nn.Linear(width, width) for _ in range(layers)]
    return DistributedDataParallel(torch.nn.Sequential(*linear), **options)

def train(model, width=128):
    model(torch.ones(4, width)).square().mean().backward()
"""


def environment() -> dict[str, str]:
    """The environment of a rank started outside any job."""
    return {name: value for name, value in demo._environment().items() if name not in JOB_VARIABLES}


@pytest.fixture
def write_script(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a training script: the prelude, then the text given."""

    def write(text: str) -> Path:
        path = tmp_path / "job.py"
        path.write_text(PRELUDE + textwrap.dedent(text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def run_job(tmp_path: Path, write_script: Callable[[str], Path]) -> RunJob:
    """Runs a script on two ranks and returns how each ended; the run directory is `tmp_path / "run"`."""

    def run(text: str) -> list[Ended]:
        script = write_script(text)
        processes = [
            subprocess.Popen(
                [sys.executable, script, tmp_path / "run", str(rank), str(WORLD_SIZE), tmp_path / "store"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment(),
            )
            for rank in range(WORLD_SIZE)
        ]
        try:
            outputs = [process.communicate(timeout=TIMEOUT_SECONDS) for process in processes]
        finally:
            for process in processes:
                process.kill()
        return [Ended(p.returncode, *output) for p, output in zip(processes, outputs, strict=True)]

    return run


@pytest.fixture
def read_run(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    """Reads every file of the run directory: name -> trace."""

    def read() -> dict[str, Any]:
        return {
            path.name: json.loads(gzip.decompress(path.read_bytes()))
            for path in sorted((tmp_path / "run").iterdir())
        }

    return read


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The traces of one run of the demo: 8 x Linear(1024), bucket_cap_mb=10, 4 recorded steps."""
    pytest.importorskip("torch", reason="the ranks train with torch")
    return demo.run_demo(tmp_path_factory.mktemp("demo"), bucket_cap_mb=10, steps=6, batch=64)

"""The wheel without dependencies beside torch alone, with a decoy `profiler.py` (run by .ci/test_wheel)."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path.cwd()
pytestmark = pytest.mark.skipif(
    not (HERE / "profiler.py").is_file(), reason="needs the place that .ci/test_wheel prepares"
)


def test_the_environment_is_lean() -> None:
    # Not jinja2 and fsspec: torch brings them
    absent = ("pandas", "pyarrow", "msgspec", "isal", "typer", "rich", "plotly")
    assert [name for name in absent if importlib.util.find_spec(name)] == []


def test_a_training_loop_is_recorded(tmp_path: Path) -> None:
    code = (
        "import torch, rankscope\n"
        f"with rankscope.Collector({str(tmp_path)!r}, wait=1, warmup=1, active=2) as collector:\n"
        "    for _ in range(5):\n"
        "        torch.ones(64, 64) @ torch.ones(64, 64)\n"
        "        collector.step()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    (trace,) = tmp_path.glob("*.pt.trace.json.gz")
    content = json.loads(gzip.decompress(trace.read_bytes()))
    assert content["rankscope"]["rank"] == 0
    assert any(event.get("name") == "aten::matmul" for event in content["traceEvents"])

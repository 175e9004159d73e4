"""The collector beside torch alone: what it imports, and that nothing else need be installed."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rankscope.collector

HOME = Path(rankscope.collector.__file__).parent
SOURCES = [*sorted(HOME.glob("*.py")), HOME.parent / "upload.py"]
OWN = (
    "rankscope.collector",
    "rankscope.errors",
    "rankscope.units",
    "rankscope.model.manifest",
    "rankscope.upload",  # sends a run with the standard library alone
)
BLOCKER = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in BLOCKED else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""


def _imports(source: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.name))
def test_only_the_standard_library_torch_and_the_lowest_layers_are_imported(source: Path) -> None:
    for name in _imports(source):
        top = name.split(".")[0]
        if top == "rankscope":
            assert name.startswith(OWN), name
        else:
            assert top == "torch" or top in sys.stdlib_module_names, name


def _run(blocked: set[str], script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    text = f"BLOCKED = {blocked!r}\n{BLOCKER}\n{textwrap.dedent(script)}"
    return subprocess.run(
        [sys.executable, "-c", text, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_torch_it_can_be_imported_and_says_what_is_missing(tmp_path: Path) -> None:
    script = """
    import rankscope.collector
    assert "torch" not in sys.modules
    from rankscope.errors import RankscopeError
    try:
        rankscope.Collector(sys.argv[1])
    except RankscopeError as error:
        print(error)
    """
    done = _run({"torch", "numpy"}, script, str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "needs torch" in done.stdout


def test_beside_torch_alone_it_records(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the collector records torch")
    script = """
    import torch
    import rankscope
    with rankscope.Collector(sys.argv[1]) as collector:
        for _ in range(5):
            torch.ones(4, 4) @ torch.ones(4, 4)
            collector.step()
    print([path.name for path in collector.files])
    """
    blocked = {"pandas", "msgspec", "pyarrow", "typer", "rich", "isal", "jinja2", "plotly", "fsspec"}
    done = _run(blocked, script, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['rank_00000.0.pt.trace.json.gz']\n", done.stderr
    assert "Warning" not in done.stderr


def test_a_full_disk_is_one_warning_and_training_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the collector records torch")
    pytest.importorskip("resource", reason="file sizes can be limited on POSIX only")
    script = """
    import resource
    import torch
    import rankscope
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))  # as if 8 kB of disk were left
    with rankscope.Collector(sys.argv[1], active=1, repeat=3) as collector:
        for step in range(12):
            for _ in range(50):
                torch.ones(4, 4) @ torch.ones(4, 4)
            collector.step()
    print("trained", step + 1)
    """
    done = _run(set(), script, str(tmp_path))
    assert done.stdout == "trained 12\n", done.stderr
    assert done.stderr.count("RankscopeWarning") == 1, done.stderr
    assert list(tmp_path.iterdir()) == []

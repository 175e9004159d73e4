"""The runs in sample_traces: what the script makes is what lies there, small and complete."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rankscope.testing.trace_file import read_text_bytes

SAMPLES = Path(__file__).resolve().parents[3] / "sample_traces"
SYNTHETIC = (
    "synthetic_broken",
    "synthetic_clock_skew",
    "synthetic_full_overlap",
    "synthetic_no_overlap",
    "synthetic_straggler",
)

pytestmark = pytest.mark.skipif(
    not (SAMPLES / "regenerate.py").is_file(), reason="sample_traces is part of the repository only"
)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("regenerate_samples", SAMPLES / "regenerate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    script.regenerate(folder)
    return folder


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_tree_holds_what_the_script_makes(made: Path, name: str) -> None:
    there, here = SAMPLES / name, made / name
    assert sorted(p.name for p in there.iterdir()) == sorted(p.name for p in here.iterdir())
    for path in there.iterdir():
        # The text, since another zlib may compress the same text into other bytes.
        assert read_text_bytes(path) == read_text_bytes(here / path.name), (
            f"{path} differs from what sample_traces/regenerate.py makes: run it and look at the difference"
        )


def test_a_second_run_writes_the_same_bytes(script: ModuleType, made: Path, tmp_path: Path) -> None:
    script.regenerate(tmp_path)
    files = sorted(p.relative_to(made) for p in made.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert all((made / name).read_bytes() == (tmp_path / name).read_bytes() for name in files)


def test_it_replaces_its_own_folders_and_no_other(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "gloo_2rank_cap1").mkdir()
    (tmp_path / "gloo_2rank_cap1" / "rank0.json").write_text("{}")
    (tmp_path / "synthetic_broken").mkdir()
    (tmp_path / "synthetic_broken" / "left_over.json").write_text("{}")
    script.regenerate(tmp_path)
    assert (tmp_path / "gloo_2rank_cap1" / "rank0.json").read_text() == "{}"
    assert not (tmp_path / "synthetic_broken" / "left_over.json").exists()


def test_every_run_is_listed_explained_and_small() -> None:
    readme = (SAMPLES / "README.md").read_text()
    for name in SYNTHETIC:
        assert f"`{name}`" in readme
    size = sum(p.stat().st_size for name in SYNTHETIC for p in (SAMPLES / name).iterdir())
    assert size < 1_500_000


@pytest.mark.parametrize("name", SYNTHETIC)
def test_answers_name_the_files_and_keep_the_identity(name: str) -> None:
    expected = json.loads((SAMPLES / name / "expected.json").read_text())
    traces = sorted(p.name for p in (SAMPLES / name).iterdir() if p.name != "expected.json")
    assert expected["files"] == traces
    for rank in expected["expect"]["per_rank"].values():
        parts = ("compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns")
        assert sum(rank[part] for part in parts) == rank["window_ns"]


def test_answers_by_hand() -> None:
    def expect(name: str) -> dict[str, object]:
        answers: dict[str, object] = json.loads((SAMPLES / name / "expected.json").read_text())["expect"]
        return answers

    straggler = expect("synthetic_straggler")
    assert straggler["straggler"] == {
        "verdict": "found",
        "scope": "rank",
        "ranks": [2],
        "cause": "input",
        "cost_ns_per_step": 3_000_000,
    }
    skew = expect("synthetic_clock_skew")
    assert skew["clock_offset_ns"] == {"0": 0, "1": 0, "2": 5_000_000, "3": 5_000_400}
    assert skew["straggler"] == {"verdict": "none"}
    broken = expect("synthetic_broken")
    assert (broken["ranks_analysed"], broken["ranks_failed"]) == ([0], [1, 2])


def test_the_overlap_that_the_names_promise() -> None:
    for name, ratio in (("synthetic_full_overlap", 1.0), ("synthetic_no_overlap", 0.0)):
        expected = json.loads((SAMPLES / name / "expected.json").read_text())["expect"]
        assert {rank["overlap_ratio"] for rank in expected["per_rank"].values()} == {ratio}


def test_the_broken_run_is_broken_where_it_says() -> None:
    folder = SAMPLES / "synthetic_broken"
    truncated, empty = json.loads((folder / "expected.json").read_text())["expect"]["errors"]
    text = read_text_bytes(folder / truncated["file"]).decode()
    with pytest.raises(json.JSONDecodeError) as failure:
        json.loads(text)
    first, last = truncated["byte_offset_range"]
    assert first <= failure.value.pos <= last == len(text)
    assert read_text_bytes(folder / empty["file"]) == b""

"""`on_trace_ready`: the same files and facts for people who keep their own torch.profiler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankscope.collector import on_trace_ready

torch = pytest.importorskip("torch", reason="the profiler is torch's")

Said = Callable[[], list[str]]
Read = Callable[[Path], dict[str, Any]]
Train = Callable[[], None]


def _profile(handler: Callable[[Any], None], train: Train, steps: int, **options: Any) -> None:
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=2, **options)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=handler) as profiler:
        for _ in range(steps):
            train()
            profiler.step()


@pytest.fixture(autouse=True)
def _ignore_torchs_word_on_cycles(recwarn: pytest.WarningsRecorder) -> None:
    """Recording warnings keeps torch's "Profiler clears events at the end of each cycle" from failing a test."""


def test_every_window_has_the_collectors_name_and_facts(
    tmp_path: Path, train: Train, read_trace: Read
) -> None:
    _profile(on_trace_ready(tmp_path, labels={"commit": "1a2b"}), train, steps=6, repeat=2)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["rank_00000.0.pt.trace.json.gz", "rank_00000.1.pt.trace.json.gz"]
    for window, name in enumerate(names):
        facts = read_trace(tmp_path / name)["rankscope"]
        assert (facts["rank"], facts["world_size"], facts["window"]) == (0, 1, window)
        assert facts["labels"] == {"commit": "1a2b"}
        assert facts["steps"] == []
        assert "own torch.profiler" in facts["notes"][0]
        start, end = facts["clock_samples"]
        assert start["unix_ns"] < end["unix_ns"]


def test_models_are_explained_one_or_several(
    tmp_path: Path, read_trace: Read, said: Said, process_group: Callable[[], None]
) -> None:
    process_group()
    models = [torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, n)) for n in (2, 3)]

    def train() -> None:
        for model in models:
            model(torch.ones(1, 4)).sum().backward()

    _profile(on_trace_ready(tmp_path / "one", model=models[0]), train, steps=3)
    _profile(on_trace_ready(tmp_path / "two", model=models), train, steps=3)
    assert said() == []
    sizes = [
        [[bucket["size_bytes"] for bucket in ddp["buckets"]] for ddp in read_trace(path)["rankscope"]["ddp"]]
        for path in sorted(tmp_path.glob("*/*"))
    ]
    assert sizes == [[[40]], [[40], [60]]]  # 4 x n weights and n biases of 4 bytes


def test_a_module_that_can_be_iterated_is_one_module(tmp_path: Path, said: Said) -> None:
    on_trace_ready(tmp_path, model=torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)))
    assert len(said()) == 1
    assert "not Sequential" in said()[0]


def test_a_fault_is_one_warning_and_training_goes_on(tmp_path: Path, train: Train, said: Said) -> None:
    (tmp_path / "file").write_text("in the way")
    _profile(on_trace_ready(tmp_path / "file" / "run"), train, steps=9, repeat=3)
    assert len(said()) == 1
    assert "NotADirectoryError" in said()[0]


def test_a_profiler_without_schedule_works_too(tmp_path: Path, train: Train, read_trace: Read) -> None:
    handler = on_trace_ready(tmp_path, scrub=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], on_trace_ready=handler):
        train()
    trace = read_trace(tmp_path / "rank_00000.0.pt.trace.json.gz")
    assert trace["rankscope"]["host"] == ""
    assert any(event.get("name") == "aten::mm" for event in trace["traceEvents"])


@pytest.mark.parametrize("fails", [False, True])
def test_a_rank_that_leaves_with_an_exception_waits_for_nobody(
    fails: bool, tmp_path: Path, train: Train, read_trace: Read
) -> None:
    handler = on_trace_ready(tmp_path, calibrate=True)

    def run() -> None:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], on_trace_ready=handler):
            train()
            if fails:
                raise ValueError("loss is nan")

    if fails:
        with pytest.raises(ValueError, match="loss is nan"):
            run()
    else:
        run()
    notes = read_trace(tmp_path / "rank_00000.0.pt.trace.json.gz")["rankscope"]["notes"]
    assert any("no calibration" in note for note in notes) is not fails

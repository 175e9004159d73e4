"""What goes wrong round a Collector in one process: training never notices, and each fault is told once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankscope.collector import Collector
from rankscope.collector import recording as recording_module
from rankscope.collector.trace_file import SUFFIX
from support.collecting import file_names, run_under, step_names

torch = pytest.importorskip("torch", reason="the collector records torch")

Said = Callable[[], list[str]]
Read = Callable[[Path], dict[str, Any]]
Train = Callable[[], None]


def _fail(self: object, *arguments: object, **options: object) -> None:
    raise OSError("injected fault")


class TrainingError(Exception):
    """The training's own fault."""


@pytest.mark.parametrize("error", [TrainingError("loss is nan"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_of_the_training_passes_and_the_record_is_kept(
    error: BaseException, tmp_path: Path, train: Train, read_trace: Read, said: Said
) -> None:
    def run(collector: Collector) -> None:
        with collector:
            for step in range(5):
                train()
                if step == 3:
                    raise error
                collector.step()

    collector = Collector(tmp_path, wait=1, warmup=1, active=3)
    with pytest.raises(type(error)) as caught:
        run(collector)
    assert caught.value is error
    assert said() == []
    trace = read_trace(collector.files[0])
    assert step_names(trace) == ["ProfilerStep#2", "ProfilerStep#3"]
    assert trace["rankscope"]["unfinished_step"] == 3
    assert trace["rankscope"]["notes"] == ["recording ended after 1 of 3 steps"]
    assert [step["step"] for step in trace["rankscope"]["steps"]] == [0, 1, 2]


def test_an_exception_before_recording_leaves_no_file_and_no_second_message(
    tmp_path: Path, train: Train, said: Said
) -> None:
    def run(collector: Collector) -> None:
        with collector:
            train()
            collector.step()
            raise TrainingError

    with pytest.raises(TrainingError):
        run(Collector(tmp_path))
    assert said() == []
    assert file_names(tmp_path) == []


def test_an_interrupt_while_writing_loses_nothing(
    tmp_path: Path, train: Train, read_trace: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def interrupt_first(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1:
            raise KeyboardInterrupt

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("rankscope.collector.trace_file.time.sleep", interrupt_first)
    collector = Collector(tmp_path, stagger_seconds=4)
    with pytest.raises(KeyboardInterrupt):
        run_under(collector, train, steps=6)
    assert waits == [2.0, 0.0]
    assert file_names(tmp_path) == ["rank_00001.0.pt.trace.json.gz"]
    trace = read_trace(tmp_path / "rank_00001.0.pt.trace.json.gz")
    assert trace["rankscope"]["unfinished_step"] is None


def test_a_loop_that_ends_early_keeps_whole_steps(tmp_path: Path, train: Train, read_trace: Read) -> None:
    collector = Collector(tmp_path, wait=1, warmup=1, active=3)
    run_under(collector, train, steps=4)
    facts = read_trace(collector.files[0])["rankscope"]
    assert facts["notes"] == ["recording ended after 2 of 3 steps"]
    assert facts["unfinished_step"] == 4


@pytest.mark.parametrize("steps", [1, 2])
def test_too_few_steps_are_told_with_both_numbers(
    steps: int, tmp_path: Path, train: Train, said: Said
) -> None:
    run_under(Collector(tmp_path, wait=1, warmup=1, active=3), train, steps=steps)
    assert file_names(tmp_path) == []
    assert len(said()) == 1
    assert f"after {steps} steps" in said()[0]
    assert "begins with step 2" in said()[0]
    assert "needs 5 steps" in said()[0]


def test_a_forgotten_step_is_told(tmp_path: Path, train: Train, said: Said) -> None:
    with Collector(tmp_path):
        train()
    assert len(said()) == 1
    assert "step() was never called" in said()[0]


def test_step_without_start_is_told_once(tmp_path: Path, train: Train, said: Said) -> None:
    collector = Collector(tmp_path)
    for _ in range(6):
        train()
        collector.step()
    assert len(said()) == 1
    assert "before start()" in said()[0]


def test_start_and_stop_do_without_with(tmp_path: Path, train: Train, said: Said) -> None:
    collector = Collector(tmp_path)
    collector.start()
    for _ in range(5):
        train()
        collector.step()
    collector.stop()
    collector.stop()
    collector.step()
    assert said() == []
    assert len(collector.files) == 1


def test_a_directory_that_cannot_be_made_is_one_early_warning(
    tmp_path: Path, train: Train, said: Said
) -> None:
    (tmp_path / "file").write_text("in the way")
    collector = Collector(tmp_path / "file" / "run")
    with collector:
        assert len(said()) == 1
        for _ in range(7):
            train()
            collector.step()
    assert len(said()) == 1
    assert "NotADirectoryError" in said()[0]


def test_a_directory_without_permission_is_one_warning(
    tmp_path: Path, train: Train, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    run_under(Collector(tmp_path), train, steps=6)
    assert len(said()) == 1
    assert "cannot be written" in said()[0]


@pytest.mark.parametrize("place", ["__init__", "start", "step", "stop", "export_chrome_trace"])
def test_a_fault_in_torchs_profiler_is_one_warning(
    place: str, tmp_path: Path, train: Train, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(torch.profiler.profile, place, _fail)
        collector = Collector(tmp_path, repeat=2)
        trained = 0
        with collector:
            for _ in range(12):
                train()
                collector.step()
                trained += 1
    assert trained == 12
    assert len(said()) == 1
    assert "OSError: injected fault" in said()[0]
    assert file_names(tmp_path) == []
    if place == "stop":
        torch.autograd._disable_profiler()  # it could not be stopped; the next test would meet it


def test_after_a_fault_torchs_profiler_is_free_again(
    tmp_path: Path, train: Train, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(torch.profiler.profile, "step", _fail)
        run_under(Collector(tmp_path / "a"), train, steps=6)
    run_under(Collector(tmp_path / "b"), train, steps=5)
    assert len(said()) == 1
    assert file_names(tmp_path / "b") == ["rank_00000.0.pt.trace.json.gz"]


def test_a_second_profiler_in_the_process_is_one_warning(tmp_path: Path, train: Train, said: Said) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        run_under(Collector(tmp_path), train, steps=6)
    theirs.export_chrome_trace(str(tmp_path.parent / "theirs.json"))
    assert len(said()) == 1
    assert "another torch.profiler" in said()[0]
    assert '"aten::mm"' in (tmp_path.parent / "theirs.json").read_text()
    assert file_names(tmp_path) == []


def test_a_trace_above_the_limit_is_one_warning_and_the_end(tmp_path: Path, train: Train, said: Said) -> None:
    collector = Collector(tmp_path, repeat=3, max_trace_mb=0.001)
    run_under(collector, train, steps=15)
    assert len(said()) == 1
    assert "max_trace_mb" in said()[0]
    assert file_names(tmp_path) == []
    assert collector.files == ()


def test_an_existing_trace_stays_and_the_new_one_is_kept_beside_it(
    tmp_path: Path, train: Train, said: Said
) -> None:
    old = [tmp_path / f"rank_00000.{window}{SUFFIX}" for window in (0, 1)]
    for path in old:
        path.write_bytes(b"older run")
    collector = Collector(tmp_path, repeat=2)
    run_under(collector, train, steps=10)
    assert [path.name for path in collector.files] == [
        f"rank_00000.{window}.copy1{SUFFIX}" for window in (0, 1)
    ]
    assert [path.read_bytes() for path in old] == [b"older run"] * 2
    assert len(said()) == 1
    assert "own directory" in said()[0]


def test_modules_that_are_not_ddp_are_told_once(tmp_path: Path, train: Train, said: Said) -> None:
    collector = Collector(tmp_path)
    linear = torch.nn.Linear(2, 2)
    assert collector.watch(linear) is linear
    collector.watch(torch.compile(linear, backend="eager"))
    run_under(collector, train, steps=5)
    assert len(said()) == 1
    assert "not Linear" in said()[0]
    assert len(collector.files) == 1


def test_a_ddp_run_without_collectives_is_told(
    tmp_path: Path, train: Train, said: Said, process_group: Callable[[], None]
) -> None:
    process_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    collector = Collector(tmp_path, repeat=2)
    collector.watch(model)
    run_under(collector, train, steps=10)
    assert len(collector.files) == 2
    assert len(said()) == 1
    assert "No collective was recorded" in said()[0]


def test_a_cuda_run_without_kernels_is_told(
    tmp_path: Path, train: Train, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankscope.collector.saving.is_cuda_run", lambda: True)
    run_under(Collector(tmp_path, repeat=2), train, steps=10)
    assert len(said()) == 1
    assert "No GPU kernel was recorded" in said()[0]


def test_a_gpu_that_never_comes_to_rest_does_not_hold_up_the_exception(
    tmp_path: Path, train: Train, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    forever = threading.Event()
    monkeypatch.setattr(recording_module, "_DEVICE_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(recording_module, "_synchronize", lambda device: forever.wait(20))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)

    def run(collector: Collector) -> None:
        with collector:
            for _ in range(4):
                train()
                collector.step()
            monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
            monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
            raise TrainingError

    with pytest.raises(TrainingError):
        run(Collector(tmp_path))
    forever.set()
    assert len(said()) == 1
    assert "still busy" in said()[0]
    assert file_names(tmp_path) == []
    torch.autograd._disable_profiler()  # left running on purpose: stopping it would have waited for the GPU

"""A Collector in one process: which files appear, what they say, and that training never notices a fault."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankscope.collector import Collector, RankscopeWarning
from rankscope.collector import recording as recording_module
from rankscope.collector.trace_file import SUFFIX

torch = pytest.importorskip("torch", reason="the collector records torch")

Said = Callable[[], list[str]]
Read = Callable[[Path], dict[str, Any]]
Train = Callable[[], None]
FAULT = OSError("injected fault")


def _steps(trace: dict[str, Any]) -> list[str]:
    """The step annotations of a trace, in order of time."""
    rows = [event for event in trace["traceEvents"] if event.get("name", "").startswith("ProfilerStep#")]
    return [row["name"] for row in sorted(rows, key=lambda row: float(row["ts"]))]


def _run(collector: Collector, train: Train, steps: int) -> None:
    with collector:
        for _ in range(steps):
            train()
            collector.step()


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# What is recorded


def test_one_process_without_torch_distributed_is_rank_0_of_1(
    tmp_path: Path, train: Train, read_trace: Read, said: Said
) -> None:
    collector = Collector(tmp_path, wait=1, warmup=1, active=3, labels={"commit": 17})
    _run(collector, train, steps=5)
    assert said() == []
    assert _names(tmp_path) == ["rank_00000.0.pt.trace.json.gz"]
    assert collector.files == (tmp_path / "rank_00000.0.pt.trace.json.gz",)
    facts = read_trace(collector.files[0])["rankscope"]
    assert (facts["rank"], facts["world_size"], facts["local_rank"]) == (0, 1, None)
    assert (facts["backend"], facts["groups"], facts["ddp"]) == ("", [], [])
    assert facts["labels"] == {"commit": "17"}
    assert facts["host"] == os.uname().nodename
    assert facts["versions"]["torch"] == str(torch.__version__)
    assert set(facts["versions"]) >= {"rankscope", "python"}
    assert (facts["notes"], facts["unfinished_step"]) == ([], None)


def test_steps_are_numbered_as_torch_numbers_them(tmp_path: Path, train: Train, read_trace: Read) -> None:
    profiler = torch.profiler
    schedule = profiler.schedule(skip_first=4, wait=2, warmup=1, active=2, repeat=1)
    theirs = profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        schedule=schedule,
        on_trace_ready=lambda p: p.export_chrome_trace(str(tmp_path / "theirs.json.gz")),
    )
    with theirs:
        for _ in range(9):
            train()
            theirs.step()
    ours = Collector(tmp_path / "run", skip_first=4, wait=2, warmup=1, active=2)
    _run(ours, train, steps=9)
    expected = _steps(read_trace(tmp_path / "theirs.json.gz"))
    assert expected == ["ProfilerStep#7", "ProfilerStep#8"]
    assert _steps(read_trace(ours.files[0])) == expected


def test_every_window_has_its_file_and_its_steps(
    tmp_path: Path, train: Train, read_trace: Read, said: Said
) -> None:
    collector = Collector(tmp_path, wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    _run(collector, train, steps=12)
    assert said() == []
    assert _names(tmp_path) == ["rank_00000.0.pt.trace.json.gz", "rank_00000.1.pt.trace.json.gz"]
    first, second = (read_trace(path) for path in collector.files)
    assert _steps(first) == ["ProfilerStep#3", "ProfilerStep#4"]
    assert _steps(second) == ["ProfilerStep#7", "ProfilerStep#8"]
    assert [facts["rankscope"]["window"] for facts in (first, second)] == [0, 1]
    times = [[(s["step"], s["recorded"]) for s in facts["rankscope"]["steps"]] for facts in (first, second)]
    assert times[0] == [(0, False), (1, False), (2, False), (3, True), (4, True)]
    assert times[1] == [(5, False), (6, False), (7, True), (8, True)]


def test_windows_may_follow_without_a_gap(tmp_path: Path, train: Train, read_trace: Read) -> None:
    collector = Collector(tmp_path, wait=0, warmup=0, active=1, repeat=3)
    _run(collector, train, steps=3)
    assert [_steps(read_trace(path)) for path in collector.files] == [
        ["ProfilerStep#0"],
        ["ProfilerStep#1"],
        ["ProfilerStep#2"],
    ]


def test_step_times_and_trace_share_one_clock(tmp_path: Path, train: Train, read_trace: Read) -> None:
    collector = Collector(tmp_path)
    _run(collector, train, steps=5)
    trace = read_trace(collector.files[0])
    facts = trace["rankscope"]
    start, end = facts["clock_samples"]
    assert start["unix_ns"] < end["unix_ns"]
    for row in trace["traceEvents"]:
        if row.get("name", "").startswith("ProfilerStep#"):
            time = next(s for s in facts["steps"] if row["name"] == f"ProfilerStep#{s['step']}")
            began_ns = trace["baseTimeNanoseconds"] + round(float(row["ts"]) * 1000)
            assert abs(began_ns - time["started_unix_ns"]) < 50_000_000
            assert start["unix_ns"] - 50_000_000 < began_ns < end["unix_ns"]


def test_time_of_a_step_leaves_out_the_writing_of_the_window_before(
    tmp_path: Path, train: Train, read_trace: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    collector = Collector(tmp_path, wait=0, warmup=1, active=1, repeat=2, stagger_seconds=0)
    collector._saver.save = _slow(collector._saver.save, lambda: time.sleep(0.5))  # type: ignore[method-assign]
    _run(collector, train, steps=4)
    steps = read_trace(collector.files[1])["rankscope"]["steps"]
    assert [step["step"] for step in steps] == [2, 3]
    assert steps[0]["duration_ns"] < 400_000_000


def _slow(action: Callable[..., None], wait: Callable[[], None]) -> Callable[..., None]:
    def act(*arguments: Any, **options: Any) -> None:
        wait()
        action(*arguments, **options)

    return act


def test_shapes_are_kept_on_cpu_unless_refused(tmp_path: Path, train: Train, read_trace: Read) -> None:
    for shapes, expected in ((None, True), (False, False)):
        collector = Collector(tmp_path / str(shapes), record_shapes=shapes)
        _run(collector, train, steps=5)
        rows = read_trace(collector.files[0])["traceEvents"]
        products = [row for row in rows if row.get("name") == "aten::mm"]
        assert len(products) == 3
        assert all(("Input Dims" in row["args"]) is expected for row in products)


@pytest.mark.parametrize(
    ("has_cuda", "version", "expected"),
    [
        (False, "2.13.0", True),
        (True, "2.11.1+cu128", True),
        (True, "2.12.0+cu130", False),
        (True, "3.0.0a0+git1", False),
    ],
)
def test_shapes_are_kept_where_kernels_do_not_say_sizes(
    has_cuda: bool, version: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_cuda)
    monkeypatch.setattr(torch, "__version__", version)
    assert recording_module.needs_shapes() is expected


def test_shapes_are_kept_for_gloo_beside_cuda(
    process_group: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "__version__", "2.13.0")
    process_group()
    assert recording_module.needs_shapes() is True


def test_scrubbed_run_names_neither_host_nor_folder(tmp_path: Path, train: Train, read_trace: Read) -> None:
    collector = Collector(tmp_path, scrub=True, with_stack=True)
    _run(collector, train, steps=5)
    trace = read_trace(collector.files[0])
    assert trace["rankscope"]["host"] == ""
    text = repr(trace)
    assert os.uname().nodename not in {trace.get("host_name"), trace["rankscope"]["host"]}
    assert str(Path(__file__).parent) not in text
    assert "test_collector.py" in text


# Who records


def test_torchrun_environment_tells_the_rank(
    tmp_path: Path, train: Train, read_trace: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("RANK", "9"), ("WORLD_SIZE", "16"), ("LOCAL_RANK", "1")):
        monkeypatch.setenv(name, value)
    collector = Collector(tmp_path)
    _run(collector, train, steps=5)
    assert _names(tmp_path) == ["rank_00009.0.pt.trace.json.gz"]
    facts = read_trace(collector.files[0])["rankscope"]
    assert (facts["rank"], facts["world_size"], facts["local_rank"]) == (9, 16, 1)


@pytest.mark.parametrize(("rank", "world_size"), [("x", "2"), ("3", "2"), ("1", "")])
def test_an_environment_without_sense_is_ignored(
    rank: str, world_size: str, tmp_path: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", world_size)
    _run(Collector(tmp_path), train, steps=5)
    assert _names(tmp_path) == ["rank_00000.0.pt.trace.json.gz"]


def test_a_rank_left_out_touches_nothing(
    tmp_path: Path, train: Train, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "16")
    for collector in (Collector(tmp_path / "run", ranks=[0, 7]), Collector(tmp_path / "run", ranks=8)):
        _run(collector, train, steps=6)
        assert collector.files == ()
    assert not (tmp_path / "run").exists()
    assert said() == []


def test_a_rank_that_is_selected_records(
    tmp_path: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "8")
    monkeypatch.setenv("WORLD_SIZE", "16")
    for collector in (Collector(tmp_path / "a", ranks=[0, 8]), Collector(tmp_path / "b", ranks=8)):
        _run(collector, train, steps=5)
        assert [path.name for path in collector.files] == ["rank_00008.0.pt.trace.json.gz"]


def test_process_group_may_be_initialised_after_entering(
    tmp_path: Path, train: Train, read_trace: Read, process_group: Callable[[], None]
) -> None:
    with Collector(tmp_path, wait=0, warmup=1, active=1) as collector:
        train()
        collector.step()
        process_group()
        train()
        collector.step()
    facts = read_trace(collector.files[0])["rankscope"]
    assert facts["backend"] == "gloo"
    assert facts["groups"] == [{"name": "0", "description": "default_pg", "backend": "gloo", "ranks": [0]}]


def test_waiting_steps_ask_nothing_of_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(torch.profiler, "profile", lambda **options: calls.append("made"))
    collector = Collector(tmp_path, skip_first=1_000)
    collector.start()
    for _ in range(1_000):
        collector.step()
    assert calls == []
    with pytest.warns(RankscopeWarning):  # what stands in for the profiler can do nothing
        collector.step()
    assert calls == ["made"]


# What goes wrong


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
    assert _steps(trace) == ["ProfilerStep#2", "ProfilerStep#3"]
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
    assert _names(tmp_path) == []


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
        _run(collector, train, steps=6)
    assert waits == [2.0, 0.0]
    assert _names(tmp_path) == ["rank_00001.0.pt.trace.json.gz"]
    trace = read_trace(tmp_path / "rank_00001.0.pt.trace.json.gz")
    assert trace["rankscope"]["unfinished_step"] is None


def test_a_loop_that_ends_early_keeps_whole_steps(tmp_path: Path, train: Train, read_trace: Read) -> None:
    collector = Collector(tmp_path, wait=1, warmup=1, active=3)
    _run(collector, train, steps=4)
    facts = read_trace(collector.files[0])["rankscope"]
    assert facts["notes"] == ["recording ended after 2 of 3 steps"]
    assert facts["unfinished_step"] == 4


@pytest.mark.parametrize("steps", [1, 2])
def test_too_few_steps_are_told_with_both_numbers(
    steps: int, tmp_path: Path, train: Train, said: Said
) -> None:
    _run(Collector(tmp_path, wait=1, warmup=1, active=3), train, steps=steps)
    assert _names(tmp_path) == []
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
    _run(Collector(tmp_path), train, steps=6)
    assert len(said()) == 1
    assert "cannot be written" in said()[0]


@pytest.mark.parametrize("place", ["__init__", "start", "step", "stop", "export_chrome_trace"])
def test_a_fault_in_torchs_profiler_is_one_warning(
    place: str, tmp_path: Path, train: Train, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, *arguments: object, **options: object) -> None:
        raise FAULT

    with monkeypatch.context() as patch:
        patch.setattr(torch.profiler.profile, place, fail)
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
    assert _names(tmp_path) == []
    if place == "stop":
        torch.autograd._disable_profiler()  # it could not be stopped; the next test would meet it


def test_after_a_fault_torchs_profiler_is_free_again(
    tmp_path: Path, train: Train, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(torch.profiler.profile, "step", _raise_fault)
        _run(Collector(tmp_path / "a"), train, steps=6)
    _run(Collector(tmp_path / "b"), train, steps=5)
    assert len(said()) == 1
    assert _names(tmp_path / "b") == ["rank_00000.0.pt.trace.json.gz"]


def _raise_fault(self: object) -> None:
    raise FAULT


def test_a_second_profiler_in_the_process_is_one_warning(tmp_path: Path, train: Train, said: Said) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        _run(Collector(tmp_path), train, steps=6)
    theirs.export_chrome_trace(str(tmp_path.parent / "theirs.json"))
    assert len(said()) == 1
    assert "another torch.profiler" in said()[0]
    assert '"aten::mm"' in (tmp_path.parent / "theirs.json").read_text()
    assert _names(tmp_path) == []


def test_a_trace_above_the_limit_is_one_warning_and_the_end(tmp_path: Path, train: Train, said: Said) -> None:
    collector = Collector(tmp_path, repeat=3, max_trace_mb=0.001)
    _run(collector, train, steps=15)
    assert len(said()) == 1
    assert "max_trace_mb" in said()[0]
    assert _names(tmp_path) == []
    assert collector.files == ()


def test_an_existing_trace_stays_and_the_new_one_is_kept_beside_it(
    tmp_path: Path, train: Train, said: Said
) -> None:
    (tmp_path / f"rank_00000.0{SUFFIX}").write_bytes(b"older run")
    collector = Collector(tmp_path)
    _run(collector, train, steps=5)
    assert [path.name for path in collector.files] == [f"rank_00000.0.copy1{SUFFIX}"]
    assert (tmp_path / f"rank_00000.0{SUFFIX}").read_bytes() == b"older run"
    assert len(said()) == 1
    assert "own directory" in said()[0]


def test_modules_that_are_not_ddp_are_told_once(tmp_path: Path, train: Train, said: Said) -> None:
    collector = Collector(tmp_path)
    linear = torch.nn.Linear(2, 2)
    assert collector.watch(linear) is linear
    collector.watch(torch.compile(linear, backend="eager"))
    _run(collector, train, steps=5)
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
    _run(collector, train, steps=10)
    assert len(collector.files) == 2
    assert len(said()) == 1
    assert "No collective was recorded" in said()[0]


def test_a_cuda_run_without_kernels_is_told(
    tmp_path: Path, train: Train, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankscope.collector.saving.is_cuda_run", lambda: True)
    _run(Collector(tmp_path, repeat=2), train, steps=10)
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
    assert _names(tmp_path) == []
    torch.autograd._disable_profiler()  # left running on purpose: stopping it would have waited for the GPU

"""A Collector in one process: which ranks record, which files appear, and what they say."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankscope.collector import Collector, RankscopeWarning
from rankscope.collector import recording as recording_module
from support.collecting import file_names, run_under, step_names

torch = pytest.importorskip("torch", reason="the collector records torch")

Said = Callable[[], list[str]]
Read = Callable[[Path], dict[str, Any]]
Train = Callable[[], None]
SECOND_NS = 1_000_000_000


# What is recorded


def test_one_process_without_torch_distributed_is_rank_0_of_1(
    tmp_path: Path, train: Train, read_trace: Read, said: Said
) -> None:
    collector = Collector(tmp_path, wait=1, warmup=1, active=3, labels={"commit": 17})
    run_under(collector, train, steps=5)
    assert said() == []
    assert file_names(tmp_path) == ["rank_00000.0.pt.trace.json.gz"]
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
    run_under(ours, train, steps=9)
    expected = step_names(read_trace(tmp_path / "theirs.json.gz"))
    assert expected == ["ProfilerStep#7", "ProfilerStep#8"]
    assert step_names(read_trace(ours.files[0])) == expected


def test_every_window_has_its_file_and_its_steps(
    tmp_path: Path, train: Train, read_trace: Read, said: Said
) -> None:
    collector = Collector(tmp_path, wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    run_under(collector, train, steps=12)
    assert said() == []
    assert file_names(tmp_path) == ["rank_00000.0.pt.trace.json.gz", "rank_00000.1.pt.trace.json.gz"]
    first, second = (read_trace(path) for path in collector.files)
    assert step_names(first) == ["ProfilerStep#3", "ProfilerStep#4"]
    assert step_names(second) == ["ProfilerStep#7", "ProfilerStep#8"]
    assert [facts["rankscope"]["window"] for facts in (first, second)] == [0, 1]
    times = [[(s["step"], s["recorded"]) for s in facts["rankscope"]["steps"]] for facts in (first, second)]
    assert times[0] == [(0, False), (1, False), (2, False), (3, True), (4, True)]
    assert times[1] == [(5, False), (6, False), (7, True), (8, True)]


def test_windows_may_follow_without_a_gap(tmp_path: Path, train: Train, read_trace: Read) -> None:
    collector = Collector(tmp_path, wait=0, warmup=0, active=1, repeat=3)
    run_under(collector, train, steps=3)
    assert [step_names(read_trace(path)) for path in collector.files] == [
        ["ProfilerStep#0"],
        ["ProfilerStep#1"],
        ["ProfilerStep#2"],
    ]


def test_step_times_and_trace_share_one_clock(tmp_path: Path, train: Train, read_trace: Read) -> None:
    collector = Collector(tmp_path)
    run_under(collector, train, steps=5)
    trace = read_trace(collector.files[0])
    facts = trace["rankscope"]
    start, end = facts["clock_samples"]
    assert start["unix_ns"] < end["unix_ns"]
    for row in trace["traceEvents"]:
        if row.get("name", "").startswith("ProfilerStep#"):
            stated = next(s for s in facts["steps"] if row["name"] == f"ProfilerStep#{s['step']}")
            began_ns = trace["baseTimeNanoseconds"] + round(float(row["ts"]) * 1000)
            # The two are some code apart: a busy machine may stop the process there, but not for ever
            assert abs(began_ns - stated["started_unix_ns"]) < SECOND_NS
            assert start["unix_ns"] - SECOND_NS < began_ns < end["unix_ns"]


def test_time_of_a_step_leaves_out_the_writing_of_the_window_before(
    tmp_path: Path, train: Train, read_trace: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = Collector(tmp_path, wait=0, warmup=1, active=1, repeat=2)
    save, written_at_ns = collector._saver.save, []

    def save_slowly(*arguments: Any, **options: Any) -> None:
        save(*arguments, **options)
        time.sleep(0.5)
        written_at_ns.append(time.time_ns())

    monkeypatch.setattr(collector._saver, "save", save_slowly)
    run_under(collector, train, steps=4)
    steps = read_trace(collector.files[1])["rankscope"]["steps"]
    assert [step["step"] for step in steps] == [2, 3]
    # Both are read from the wall clock, the one by way of the monotonic clock: 0.1 s is for that
    assert steps[0]["started_unix_ns"] > written_at_ns[0] - 100_000_000


def test_shapes_are_kept_on_cpu_unless_refused(tmp_path: Path, train: Train, read_trace: Read) -> None:
    for shapes, expected in ((None, True), (False, False)):
        collector = Collector(tmp_path / str(shapes), record_shapes=shapes)
        run_under(collector, train, steps=5)
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
    run_under(collector, train, steps=5)
    trace = read_trace(collector.files[0])
    assert trace["rankscope"]["host"] == ""
    text = repr(trace)
    assert trace.get("host_name", "") == ""
    assert str(Path(__file__).parent) not in text
    assert "test_collector.py" in text


# Who records


def test_torchrun_environment_tells_the_rank(
    tmp_path: Path, train: Train, read_trace: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("RANK", "9"), ("WORLD_SIZE", "16"), ("LOCAL_RANK", "1")):
        monkeypatch.setenv(name, value)
    collector = Collector(tmp_path)
    run_under(collector, train, steps=5)
    assert file_names(tmp_path) == ["rank_00009.0.pt.trace.json.gz"]
    facts = read_trace(collector.files[0])["rankscope"]
    assert (facts["rank"], facts["world_size"], facts["local_rank"]) == (9, 16, 1)


@pytest.mark.parametrize(("rank", "world_size"), [("x", "2"), ("3", "2"), ("1", "")])
def test_an_environment_without_sense_is_ignored(
    rank: str, world_size: str, tmp_path: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", world_size)
    run_under(Collector(tmp_path), train, steps=5)
    assert file_names(tmp_path) == ["rank_00000.0.pt.trace.json.gz"]


def test_a_rank_left_out_touches_nothing(
    tmp_path: Path, train: Train, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "16")
    for collector in (Collector(tmp_path / "run", ranks=[0, 7]), Collector(tmp_path / "run", ranks=8)):
        run_under(collector, train, steps=6)
        assert collector.files == ()
    assert not (tmp_path / "run").exists()
    assert said() == []


def test_a_rank_that_is_selected_records(
    tmp_path: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "8")
    monkeypatch.setenv("WORLD_SIZE", "16")
    for collector in (Collector(tmp_path / "a", ranks=[0, 8]), Collector(tmp_path / "b", ranks=8)):
        run_under(collector, train, steps=5)
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

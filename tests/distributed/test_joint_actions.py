"""Calibration and clock samples in real two-rank jobs, also where one rank fails."""

from __future__ import annotations

from typing import Any

import pytest

from support.collecting import TWO_RANKS, ReadRun, RunJob

pytest.importorskip("torch", reason="the ranks train with torch")
pytestmark = pytest.mark.distributed

# 4 x Linear(128) in float32: 4 x (128 x 128 + 128) x 4 bytes
GRADIENT_BYTES = 264_192


def _facts(read_run: ReadRun) -> dict[str, dict[str, Any]]:
    return {name: trace["rankscope"] for name, trace in read_run().items()}


def test_both_ranks_hold_the_same_sweep_and_training_goes_on(run_job: RunJob, read_run: ReadRun) -> None:
    ended = run_job(
        """
        join()
        with rankscope.Collector(run, active=2, repeat=2, calibrate=True, sync_clocks=True) as collector:
            model = collector.watch(build(bucket_cap_mb=0.1))
            for step in range(8):
                train(model)
                collector.step()
        print(step == 7)
        dist.destroy_process_group()
        """
    )
    for end in ended:
        assert (end.status, end.stdout) == (0, "True\n"), end.stderr
        assert "RankscopeWarning" not in end.stderr
    facts = _facts(read_run)
    sweeps = [facts[name]["calibration"] for name in TWO_RANKS]
    assert sweeps[0] == sweeps[1]
    sweep = sweeps[0]
    assert [sweep[key] for key in ("op", "group", "ranks", "dtype", "device", "limited_by")] == [
        "all_reduce", "0", [0, 1], "float32", "cpu", "",
    ]  # fmt: skip
    # Doubled from 64 KiB while below two thirds of all gradients, then all of them
    assert [point["size_bytes"] for point in sweep["points"]] == [65_536, 131_072, GRADIENT_BYTES]
    for point in sweep["points"]:
        assert 1 <= len(point["durations_ns"]) <= 8
        assert min(point["durations_ns"]) > 0
    assert [facts[name]["calibration"] for name in facts if ".1." in name] == [None, None]
    for name, window in facts.items():
        assert window["notes"] == []
        samples = window["clock_offsets"]
        assert len(samples) == (2 if name.startswith("rank_00001") else 0)
        for sample in samples:
            assert (sample["rank"], sample["reference"]) == (1, 0)
            # Both ranks read the clock of one host: the true offset is 0
            assert abs(sample["offset_ns"]) <= sample["uncertainty_ns"]


def test_ranks_that_do_not_record_take_part(run_job: RunJob, read_run: ReadRun) -> None:
    ended = run_job(
        """
        join()
        with rankscope.Collector(run, active=2, ranks=[1], calibrate=True, sync_clocks=True) as collector:
            model = collector.watch(build())
            for step in range(5):
                train(model)
                collector.step()
        dist.destroy_process_group()
        """
    )
    for end in ended:
        assert end.status == 0, end.stderr
        assert "RankscopeWarning" not in end.stderr
    facts = _facts(read_run)
    assert list(facts) == [TWO_RANKS[1]]
    assert len(facts[TWO_RANKS[1]]["clock_offsets"]) == 2
    assert facts[TWO_RANKS[1]]["calibration"]["ranks"] == [0, 1]


def test_a_rank_whose_collector_fails_calls_the_sweep_off_for_both(
    run_job: RunJob, read_run: ReadRun
) -> None:
    failing = 1  # the other role, and every role of three ranks: tests/unit/collector/test_rendezvous.py
    ended = run_job(
        f"""
        join()
        if rank == {failing}:
            def fail(self, path):
                raise OSError("injected fault")
            torch.profiler.profile.export_chrome_trace = fail
        with rankscope.Collector(run, active=1, calibrate=True) as collector:
            model = collector.watch(build())
            for step in range(6):
                train(model)
                collector.step()
        print("trained", step + 1)
        dist.destroy_process_group()
        """
    )
    assert [end.stdout for end in ended] == ["trained 6\n"] * 2, ended[0].stderr + ended[1].stderr
    assert [end.stderr.count("RankscopeWarning:") for end in ended] == [1, 1]
    assert "could not calibrate" in ended[1 - failing].stderr
    facts = _facts(read_run)
    assert list(facts) == [TWO_RANKS[1 - failing]]
    (window,) = facts.values()
    assert window["calibration"] is None
    assert ["could not calibrate" in note for note in window["notes"]] == [True]


def test_a_rank_that_is_gone_holds_up_the_other_for_a_known_time_only(
    run_job: RunJob, read_run: ReadRun
) -> None:
    dead = 0  # the reference of the clocks and the leader of the meeting
    ended = run_job(
        f"""
        import os
        from rankscope.collector import joint
        joint._MEETING_SECONDS, joint._CLOCK_SECONDS = 0.5, 0.5
        join()
        with rankscope.Collector(run, active=1, calibrate=True, sync_clocks=True) as collector:
            model = build()
            collector.watch(model)
            for step in range(5):
                with model.no_sync():
                    train(model)
                if step == 2 and rank == {dead}:
                    os._exit(7)
                collector.step()
        print("trained", step + 1)
        os._exit(0)
        """
    )
    assert ended[dead].status == 7
    left = ended[1 - dead]
    assert (left.status, left.stdout) == (0, "trained 5\n"), left.stderr
    assert "stopped comparing clocks" in left.stderr
    assert "could not calibrate" in left.stderr
    (window,) = _facts(read_run).values()
    assert len(window["notes"]) == 2
    assert len(window["clock_offsets"]) == (0 if dead else 1)


def test_the_rank_is_known_after_the_process_group_is_gone(run_job: RunJob, read_run: ReadRun) -> None:
    ended = run_job(
        """
        join()
        with rankscope.Collector(run, active=5) as collector:
            model = collector.watch(build())
            for step in range(4):
                train(model)
                collector.step()
            dist.destroy_process_group()
        """
    )
    assert [end.status for end in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    facts = _facts(read_run)
    assert list(facts) == TWO_RANKS
    assert [facts[name]["rank"] for name in TWO_RANKS] == [0, 1]
    assert [facts[name]["groups"][0]["ranks"] for name in TWO_RANKS] == [[0, 1]] * 2
    assert [len(facts[name]["ddp"][0]["buckets"]) for name in TWO_RANKS] == [1, 1]


def test_a_late_rank_leaves_no_waiting_and_a_fast_clock_its_offset(
    run_job: RunJob, read_run: ReadRun
) -> None:
    ended = run_job(
        """
        import time
        from rankscope.collector import calibration
        join()
        if rank == 1:
            true = time.time_ns
            time.time_ns = lambda: true() + 3_000_000_000
            run_one = calibration._run
            def run_late(*arguments):
                time.sleep(0.2)
                run_one(*arguments)
            calibration._run = run_late
        with rankscope.Collector(run, active=1, calibrate=3, sync_clocks=True) as collector:
            model = collector.watch(build())
            for step in range(3):
                train(model)
                collector.step()
        dist.destroy_process_group()
        """
    )
    assert [end.status for end in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    facts = _facts(read_run)
    sweeps = [facts[name]["calibration"] for name in TWO_RANKS]
    assert sweeps[0] == sweeps[1]
    # Rank 0's own durations are 200 ms and more each; those of rank 1, which arrives last, are kept.
    assert min(min(point["durations_ns"]) for point in sweeps[0]["points"]) < 200_000_000
    assert sweeps[0]["points"][0]["size_bytes"] == 65_536
    samples = facts[TWO_RANKS[1]]["clock_offsets"]
    assert len(samples) == 2
    for sample in samples:
        assert abs(sample["offset_ns"] - 3_000_000_000) <= sample["uncertainty_ns"] < 3_000_000_000


def test_a_job_that_records_no_collective_is_told_without_watching(run_job: RunJob) -> None:
    ended = run_job(
        """
        join()
        with rankscope.Collector(run, active=1) as collector:
            for step in range(3):
                torch.ones(4, 4) @ torch.ones(4, 4)
                collector.step()
        dist.destroy_process_group()
        """
    )
    for end in ended:
        assert end.status == 0, end.stderr
        assert end.stderr.count("No collective was recorded") == 1
        assert "2 ranks share a process group" in end.stderr


def test_an_own_profiler_may_ask_for_both(run_job: RunJob, read_run: ReadRun) -> None:
    ended = run_job(
        """
        from torch.profiler import ProfilerActivity, profile, schedule
        join()
        model = build()
        handler = rankscope.on_trace_ready(run, model=model, calibrate=True, sync_clocks=True)
        steps = schedule(wait=0, warmup=1, active=1, repeat=2)
        with profile(
            activities=[ProfilerActivity.CPU], schedule=steps, on_trace_ready=handler, record_shapes=True
        ) as profiler:
            for step in range(4):
                train(model)
                profiler.step()
        dist.destroy_process_group()
        """
    )
    for end in ended:
        assert end.status == 0, end.stderr
        assert "RankscopeWarning" not in end.stderr
    traces = read_run()
    assert len(traces) == 4
    first, second = traces[TWO_RANKS[1]], traces[TWO_RANKS[1].replace(".0.", ".1.")]
    assert first["rankscope"]["calibration"] == traces[TWO_RANKS[0]]["rankscope"]["calibration"]
    assert first["rankscope"]["calibration"]["points"][-1]["size_bytes"] == GRADIENT_BYTES
    assert second["rankscope"]["calibration"] is None
    for number, trace in ((1, first), (3, second)):
        assert len(trace["rankscope"]["clock_offsets"]) == 1
        # The sweep ran under a profiler of its own: the user's windows hold their steps and nothing of it.
        steps = [
            row["name"] for row in trace["traceEvents"] if row.get("name", "").startswith("ProfilerStep")
        ]
        assert steps == [f"ProfilerStep#{number}"]
        assert sum(row.get("name") == "gloo:all_reduce" for row in trace["traceEvents"]) == 1

"""The collector inside real two-rank DDP training over gloo."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.collecting import TWO_RANKS, Ended, ReadRun, RunJob

pytest.importorskip("torch", reason="the ranks train with torch")
pytestmark = pytest.mark.distributed


def _assert_well(ended: list[Ended]) -> None:
    for rank, end in enumerate(ended):
        assert end.status == 0, f"rank {rank}:\n{end.stderr}"
        assert "RankscopeWarning" not in end.stderr, f"rank {rank}:\n{end.stderr}"


@pytest.fixture(scope="module")
def demo_traces(demo_run: list[Path]) -> list[dict[str, Any]]:
    return [json.loads(gzip.decompress(path.read_bytes())) for path in demo_run]


def test_demo_writes_one_trace_per_rank(demo_run: list[Path]) -> None:
    assert [path.name for path in demo_run] == TWO_RANKS
    assert sorted(path.name for path in demo_run[0].parent.iterdir()) == TWO_RANKS


def test_demo_says_who_it_is(demo_traces: list[dict[str, Any]]) -> None:
    for rank, trace in enumerate(demo_traces):
        facts = trace["rankscope"]
        assert (facts["rank"], facts["world_size"], facts["backend"]) == (rank, 2, "gloo")
        assert facts["groups"] == [
            {"name": "0", "description": "default_pg", "backend": "gloo", "ranks": [0, 1]}
        ]
        assert trace["distributedInfo"]["rank"] == rank
        assert [(s["step"], s["recorded"]) for s in facts["steps"]] == [
            (0, False), (1, False), (2, True), (3, True), (4, True), (5, True),
        ]  # fmt: skip


def test_demo_has_the_bucket_layout_that_was_measured_before(demo_traces: list[dict[str, Any]]) -> None:
    for trace in demo_traces:
        (ddp,) = trace["rankscope"]["ddp"]
        assert ddp["has_rebuilt_buckets"] is True
        # Measured on shared/traces/gloo_ddp_caps: three layers reach 10 MiB, two are left
        assert [b["size_bytes"] for b in ddp["buckets"]] == [12_595_200, 12_595_200, 8_396_800]
        names = [[ddp["parameters"][i]["name"] for i in b["parameters"]] for b in ddp["buckets"]]
        assert names == [
            ["7.bias", "7.weight", "6.bias", "6.weight", "5.bias", "5.weight"],
            ["4.bias", "4.weight", "3.bias", "3.weight", "2.bias", "2.weight"],
            ["1.bias", "1.weight", "0.bias", "0.weight"],
        ]
        assert (ddp["bucket_cap_bytes"], ddp["group"]) == (10_485_760, "0")


def test_demo_rows_of_gloo_carry_the_sizes_of_the_buckets(demo_traces: list[dict[str, Any]]) -> None:
    for trace in demo_traces:
        rows = [row for row in trace["traceEvents"] if row.get("name") == "gloo:all_reduce"]
        rows.sort(key=lambda row: int(row["args"]["External id"]))
        elements = [row["args"]["Input Dims"][0][0] for row in rows]
        assert sorted(elements) == sorted([3_148_800, 3_148_800, 2_099_200] * 4)


def test_demo_communicates_beside_compute(demo_traces: list[dict[str, Any]]) -> None:
    for trace in demo_traces:
        rows = [row for row in trace["traceEvents"] if row.get("ph") == "X"]
        backward = [r for r in rows if "AccumulateGrad" in r["name"] and r["cat"] == "cpu_op"]
        first_all_reduce = min(float(r["ts"]) for r in rows if r["name"] == "gloo:all_reduce")
        first_step = next(r for r in rows if r["name"] == "ProfilerStep#2")
        within = [r for r in backward if float(r["ts"]) < float(first_step["ts"]) + float(first_step["dur"])]
        assert any(float(r["ts"]) > first_all_reduce for r in within)


TORCHRUN_JOB = """
rates = []
set_rate = DistributedDataParallel._set_ddp_runtime_logging_sample_rate
def note_rate(model, rate):
    rates.append(rate)
    set_rate(model, rate)
DistributedDataParallel._set_ddp_runtime_logging_sample_rate = note_rate
with rankscope.Collector(run, wait=1, warmup=1, active=2, repeat=2, labels={"job": "torchrun"}) as collector:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    alone = [dist.new_group([r]) for r in range(2)][rank]
    small, large = build(layers=4, bucket_cap_mb=0.1), build(layers=2)
    collector.watch(small)
    collector.watch(large)
    for step in range(8):
        train(small)
        train(large)
        collector.step()
own = [model._get_ddp_logging_data()["rebuilt_bucket_sizes"] for model in (small, large)]
pathlib.Path(run).with_name(f"own_{rank}.json").write_text(json.dumps({"sizes": own, "rates": rates}))
dist.destroy_process_group()
"""


def test_torchrun_with_two_windows_two_models_and_groups_made_late(
    tmp_path: Path, write_script: Callable[[str], Path], read_run: ReadRun
) -> None:
    script = write_script(TORCHRUN_JOB)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node=2",
            script,
            tmp_path / "run",
        ],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "RankscopeWarning" not in done.stderr
    traces = read_run()
    assert list(traces) == [f"rank_0000{r}.{w}.pt.trace.json.gz" for r in (0, 1) for w in (0, 1)]
    for name, trace in traces.items():
        facts = trace["rankscope"]
        rank, window = facts["rank"], facts["window"]
        assert name == f"rank_0000{rank}.{window}.pt.trace.json.gz"
        assert (facts["local_rank"], facts["world_size"], facts["notes"]) == (rank, 2, [])
        assert facts["labels"] == {"job": "torchrun"}
        assert [group["ranks"] for group in facts["groups"]] == [[0, 1], [rank]]
        assert [s["step"] for s in facts["steps"] if s["recorded"]] == [2 + 4 * window, 3 + 4 * window]
        own = json.loads((tmp_path / f"own_{rank}.json").read_text())
        sizes = [[bucket["size_bytes"] for bucket in ddp["buckets"]] for ddp in facts["ddp"]]
        assert [", ".join(map(str, model)) for model in sizes] == own["sizes"]
        assert len(sizes[0]) > 1
        assert own["rates"] == [1, 1, 100, 100, 1, 1, 100, 100]


def test_only_the_selected_rank_records_though_ranks_are_known_late(
    run_job: RunJob, read_run: ReadRun
) -> None:
    ended = run_job(
        """
        with rankscope.Collector(run, ranks=[1]) as collector:
            join()
            model = collector.watch(build())
            for step in range(6):
                train(model)
                collector.step()
        print(len(collector.files))
        dist.destroy_process_group()
        """
    )
    _assert_well(ended)
    assert [end.stdout for end in ended] == ["0\n", "1\n"]
    assert list(read_run()) == [TWO_RANKS[1]]


def test_training_that_fails_on_one_rank_keeps_the_record_of_both(run_job: RunJob, read_run: ReadRun) -> None:
    ended = run_job(
        """
        join()
        model = build()
        with rankscope.Collector(run, active=5) as collector:
            collector.watch(model)
            for step in range(7):
                if step == 4 and rank == 1:
                    raise ValueError("loss is nan")
                train(model)
                collector.step()
        """
    )
    assert ended[1].status == 1
    assert ended[1].stderr.rstrip().endswith("ValueError: loss is nan")
    assert ended[0].status != 0  # gloo lost its peer; what it says differs by version
    assert "RankscopeWarning" not in ended[0].stderr + ended[1].stderr
    traces = read_run()
    assert list(traces) == TWO_RANKS
    for trace in traces.values():
        assert trace["rankscope"]["unfinished_step"] == 4
        assert [s["step"] for s in trace["rankscope"]["steps"] if s["recorded"]] == [2, 3]
        assert len(trace["rankscope"]["ddp"][0]["buckets"]) == 1


@pytest.mark.parametrize("fault", ["directory", "export"])
def test_a_collector_that_fails_on_one_rank_holds_up_nobody(
    fault: str, tmp_path: Path, run_job: RunJob, read_run: ReadRun
) -> None:
    (tmp_path / "file").write_text("in the way")
    ended = run_job(
        f"""
        join()
        model = build()
        if rank == 0 and {fault!r} == "directory":
            run = str(pathlib.Path(run).with_name("file") / "run")
        if rank == 0 and {fault!r} == "export":
            def fail(self, path):
                pathlib.Path(path).write_text('{{"traceEvents": [')
            torch.profiler.profile.export_chrome_trace = fail
        with rankscope.Collector(run, active=2, repeat=2) as collector:
            collector.watch(model)
            for step in range(8):
                train(model)
                collector.step()
        print("trained", step + 1)
        dist.destroy_process_group()
        """
    )
    assert [end.status for end in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    assert [end.stdout for end in ended] == ["trained 8\n"] * 2
    assert [end.stderr.count("RankscopeWarning:") for end in ended] == [1, 0]
    assert list(read_run()) == [f"rank_00001.{window}.pt.trace.json.gz" for window in (0, 1)]


def test_own_profiler_gets_the_same_facts(run_job: RunJob, read_run: ReadRun) -> None:
    ended = run_job(
        """
        from torch.profiler import ProfilerActivity, profile, schedule
        join()
        model = build(layers=4, bucket_cap_mb=0.1)
        handler = rankscope.on_trace_ready(run, model=model)
        steps = schedule(wait=1, warmup=1, active=2, repeat=1)
        with profile(
            activities=[ProfilerActivity.CPU], schedule=steps, on_trace_ready=handler, record_shapes=True
        ) as profiler:
            for step in range(4):
                train(model)
                profiler.step()
        dist.destroy_process_group()
        """
    )
    _assert_well(ended)
    traces = read_run()
    assert list(traces) == TWO_RANKS
    for rank, trace in enumerate(traces.values()):
        facts = trace["rankscope"]
        assert (facts["rank"], facts["world_size"]) == (rank, 2)
        assert facts["groups"][0]["ranks"] == [0, 1]
        # 128 x 128 weights and 128 biases of 4 bytes: two layers (132,096 bytes) reach the cap of 104,857
        assert [bucket["size_bytes"] for bucket in facts["ddp"][0]["buckets"]] == [132_096, 132_096]
        assert any(row.get("name") == "ProfilerStep#2" for row in trace["traceEvents"])

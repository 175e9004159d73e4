"""Trace files: valid JSON, the layout of each torch release, ids that join, clocks that shift everything."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rankscope.errors import UsageError
from rankscope.readers.run_reader import read_run
from rankscope.testing.synth import (
    Scenario,
    TraceStyle,
    ddp_run,
    fsdp_run,
    pipeline_data_parallel,
    tensor_data_parallel,
    write_run,
)
from rankscope.testing.trace_style import RELEASES

BACKENDS = ("nccl", "rccl", "gloo")
ORIGIN_NS = 1_733_000_009_000_000_000


def small(**parameters: Any) -> Scenario:
    return ddp_run(**{"steps": 2, "buckets": ([600, 400], 2_000_000), **parameters})


def written(scenario: Scenario, folder: Path, rank: int = 0, **style: Any) -> dict[str, Any]:
    """The file of one rank as strict JSON, uncompressed and under a plain name."""
    write_run(scenario, folder, style=TraceStyle(compress=False, file_names="plain", **style))
    text = (folder / f"rank{rank}.json").read_text()
    whole: dict[str, Any] = json.loads(text, parse_constant=lambda token: pytest.fail(f"bare {token}"))
    return whole


def rows(trace: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event.get("cat") == category]


def communications(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [kernel for kernel in rows(trace, "kernel") if "ccl" in kernel["name"]]


def absolute_ns(trace: dict[str, Any], event: dict[str, Any]) -> tuple[int, int]:
    base_ns = trace.get("baseTimeNanoseconds", 0)
    start_ns = base_ns + round(event["ts"] * 1_000)
    return start_ns, start_ns + round(event["dur"] * 1_000)


@pytest.mark.parametrize("pretty", [True, False])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("torch", RELEASES)
def test_every_style_is_strict_json_with_the_same_times(
    tmp_path: Path, torch: Any, backend: Any, pretty: bool
) -> None:
    scenario = small(backend=backend)
    trace = written(scenario, tmp_path, 1, torch=torch, pretty=pretty)
    steps = [e for e in rows(trace, "user_annotation") if e["name"].startswith("ProfilerStep#")]
    expected = [scenario.expected.step_duration_ns[n][1] for n in (0, 1)]
    times = [absolute_ns(trace, event) for event in steps]
    assert times[0][0] == ORIGIN_NS
    assert [end - start for start, end in times] == expected
    assert times[0][1] == times[1][0]


def test_kernel_times_by_hand(tmp_path: Path) -> None:
    scenario = ddp_run(
        ranks=1,
        steps=1,
        buckets=(1_000,),
        backward_ns=(400_000,),
        transfer_ns=(50_001,),
        forward_ns=1_000_007,
        input_ns=50_000,
        optimizer_ns=100_000,
    )
    trace = written(scenario, tmp_path)
    # 55 + 1000.007 + 400 + 50.001 + 100 us; 1 733 000 009 s = 219 periods of 7 889 238 s + 5 256 887 s
    times = [(e["tid"], e["ts"], e["dur"]) for e in rows(trace, "kernel")]
    second = 5_256_887_000_000.0
    assert times == [
        (7, second + 55.0, 1_000.007),
        (7, second + 1_055.007, 400.0),
        (20, second + 1_455.007, 50.001),
        (7, second + 1_505.008, 100.0),
    ]
    assert '"ts": 5256887001455.007, "dur": 50.001' in (tmp_path / "rank0.json").read_text()
    assert trace["baseTimeNanoseconds"] == 219 * 7_889_238 * 10**9


@pytest.mark.parametrize(
    ("torch", "key", "is_before"),
    [
        ("2.4", "distributedInfo", True),
        ("2.4", "baseTimeNanoseconds", False),
        ("2.8", "baseTimeNanoseconds", True),
        ("2.12", "baseTimeNanoseconds", True),
    ],
)
def test_where_top_level_keys_stand(tmp_path: Path, torch: Any, key: str, is_before: bool) -> None:
    keys = list(written(small(), tmp_path, torch=torch))
    assert (keys.index(key) < keys.index("traceEvents")) is is_before


def test_distributed_info_can_stand_behind_the_events_or_lack_the_rank(tmp_path: Path) -> None:
    late = written(small(), tmp_path / "a", distributed_info_place="after")
    assert list(late).index("distributedInfo") > list(late).index("traceEvents")
    assert "rank" not in written(small(), tmp_path / "b", distributed_info="no rank")["distributedInfo"]
    assert "distributedInfo" not in written(small(), tmp_path / "c", distributed_info="none")


def test_old_releases_write_whole_microseconds_since_the_epoch(tmp_path: Path) -> None:
    trace = written(small(), tmp_path, torch="2.1")
    assert "baseTimeNanoseconds" not in trace
    assert all(isinstance(event["ts"], int) for event in trace["traceEvents"])
    assert trace["traceEvents"][0]["ts"] == ORIGIN_NS // 1_000
    assert trace["distributedInfo"] == {"backend": "nccl", "rank": 0, "world_size": 2}


def test_old_releases_refuse_times_that_they_would_round(tmp_path: Path) -> None:
    for scenario in (small(forward_ns=2_000_001), small().with_clocks({1: 10})):
        with pytest.raises(UsageError, match="no whole microseconds"):
            write_run(scenario, tmp_path, torch="2.2")


@pytest.mark.parametrize(
    ("torch", "present", "absent"),
    [
        ("2.1", set(), {"Collective name", "In msg nelems"}),
        ("2.2", {"Collective name", "In msg size", "Group size"}, {"Process Group Name", "In msg nelems"}),
        ("2.4", {"In msg nelems", "Process Group Name", "Process Group Ranks"}, {"Seq"}),
        ("2.8", {"In msg nelems", "Process Group Description"}, {"Seq"}),
        ("2.12", {"Seq", "Is asynchronized op"}, set()),
    ],
)
def test_communication_arguments_of_each_release(
    tmp_path: Path, torch: Any, present: set[str], absent: set[str]
) -> None:
    kernels = communications(written(small(), tmp_path, torch=torch))
    assert len(kernels) == 4
    for kernel in kernels:
        assert present <= set(kernel["args"])
        assert not absent & set(kernel["args"])


def test_sequence_numbers_count_per_group(tmp_path: Path) -> None:
    kernels = communications(written(tensor_data_parallel(), tmp_path, torch="2.12"))
    numbers = [(k["args"]["Process Group Name"], k["args"]["Seq"]) for k in kernels]
    assert numbers == [("3", 1), ("1", 1), ("3", 2), ("1", 2), ("3", 3), ("1", 3)]


def test_sizes_of_gathers_and_scatters(tmp_path: Path) -> None:
    kernels = communications(written(fsdp_run(ranks=4, elements=4_000), tmp_path))
    sizes = {
        k["args"]["Collective name"]: (k["args"]["In msg nelems"], k["args"]["Out msg nelems"])
        for k in kernels
    }
    assert sizes == {"_allgather_base": (1_000, 4_000), "_reduce_scatter_base": (4_000, 1_000)}
    assert {k["args"]["dtype"] for k in kernels} == {"BFloat16"}


def test_messages_number_their_ends_globally_in_arguments_and_within_the_group_in_annotations(
    tmp_path: Path,
) -> None:
    trace = written(pipeline_data_parallel(steps=1), tmp_path, 3, torch="2.8")
    found = {
        (k["args"]["Collective name"], k["args"]["Src Rank"], k["args"]["Dst Rank"])
        for k in communications(trace)
        if "Src Rank" in k["args"]
    }
    assert found == {("recv", 1, 3), ("send", 3, 5), ("recv", 5, 3), ("send", 3, 1)}
    names = {e["name"] for e in rows(trace, "user_annotation") if e["name"].startswith("nccl:")}
    # Rank 3 is the second of ranks 1, 3, 5, 7.
    assert {"nccl:send 1->2", "nccl:recv 1<-0", "nccl:recv 1<-2", "nccl:send 1->0"} <= names
    copies = {e["name"] for e in rows(trace, "gpu_user_annotation")}
    assert {"nccl:send 1->2", "nccl:recv 1<-0"} <= copies


@pytest.mark.parametrize("torch", ["2.4", "2.8", "2.12"])
def test_kernels_join_their_launch_and_operator(tmp_path: Path, torch: Any) -> None:
    trace = written(small(copy_ns=50_000), tmp_path, torch=torch)
    launches = {e["args"]["correlation"]: e for e in rows(trace, "cuda_runtime")}
    operators = {e["args"]["External id"]: e for e in rows(trace, "cpu_op")}
    work = [*rows(trace, "kernel"), *rows(trace, "gpu_memcpy")]
    assert len({e["args"]["correlation"] for e in work}) == len(work) == 2 * (1 + 1 + 3 + 2 + 1)
    for event in work:
        launch = launches[event["args"]["correlation"]]
        assert absolute_ns(trace, launch)[1] <= absolute_ns(trace, event)[0]
        operator = operators[event["args"]["External id"]]
        assert operator["ts"] <= launch["ts"] <= operator["ts"] + operator["dur"]
    names = {operators[k["args"]["External id"]]["name"] for k in communications(trace)}
    assert names == {"record_param_comms"}


def test_in_old_files_a_kernel_joins_no_operator(tmp_path: Path) -> None:
    trace = written(small(), tmp_path, torch="2.1")
    operators = {e["args"]["External id"] for e in rows(trace, "cpu_op")}
    for kernel in communications(trace):
        assert kernel["args"]["External id"] == kernel["args"]["correlation"]
        assert kernel["args"]["External id"] not in operators
    annotations = [e for e in rows(trace, "user_annotation") if e["name"] == "nccl:all_reduce"]
    launches = [e for e in rows(trace, "cuda_runtime") if e["name"] == "cudaLaunchKernelExC"]
    for annotation, launch in zip(annotations, launches, strict=True):
        assert annotation["ts"] < launch["ts"] < annotation["ts"] + annotation["dur"]


def test_flows_tie_launches_to_device_rows(tmp_path: Path) -> None:
    trace = written(small(), tmp_path / "a")
    flows = rows(trace, "ac2g")
    assert sorted(f["id"] for f in flows if f["ph"] == "s") == sorted(
        f["id"] for f in flows if f["ph"] == "f"
    )
    assert len(flows) == 2 * len(rows(trace, "kernel"))
    assert rows(written(small(), tmp_path / "b", flows=False), "ac2g") == []


def test_annotations_are_copied_to_the_device_1_ns_wider(tmp_path: Path) -> None:
    trace = written(small(), tmp_path)
    kernel = absolute_ns(trace, communications(trace)[0])
    copies = [
        absolute_ns(trace, e) for e in rows(trace, "gpu_user_annotation") if e["name"].startswith("nccl")
    ]
    assert copies[0] == (kernel[0] - 1, kernel[1] + 1)


def test_kernel_names(tmp_path: Path) -> None:
    def names(folder: str, backend: Any, torch: Any) -> set[str]:
        trace = written(small(backend=backend), tmp_path / folder, torch=torch)
        return {kernel["name"] for kernel in communications(trace)}

    new = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    assert names("a", "nccl", "2.4") == {new}
    assert names("b", "nccl", "2.1") == {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"}
    assert names("c", "rccl", "2.8") == {"ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)"}


def test_rocm_computes_on_stream_0(tmp_path: Path) -> None:
    trace = written(small(backend="rccl"), tmp_path)
    assert {(k["tid"], "ccl" in k["name"]) for k in rows(trace, "kernel")} == {(0, False), (4, True)}
    assert {e["name"] for e in rows(trace, "cuda_runtime")} == {
        "hipLaunchKernel",
        "hipExtLaunchKernel",
        "hipDeviceSynchronize",
    }


def test_gloo_files_hold_annotations_on_workers_and_no_device(tmp_path: Path) -> None:
    trace = written(small(backend="gloo", workers=2), tmp_path / "a")
    assert not rows(trace, "kernel")
    assert not rows(trace, "cuda_runtime")
    assert not [e for e in rows(trace, "cpu_op") if e["name"] == "record_param_comms"]
    gloo = [e for e in rows(trace, "user_annotation") if e["name"] == "gloo:all_reduce"]
    assert [(e["tid"], e["args"]["Input Dims"]) for e in gloo[:2]] == [
        (4010, [[1_000]]),
        (4011, [[2_000_000]]),
    ]
    bare = written(small(backend="gloo"), tmp_path / "b", record_shapes=False)
    assert not [e for e in bare["traceEvents"] if "Input Dims" in e.get("args", {})]


def test_ready_order_stands_in_accumulate_rows(tmp_path: Path) -> None:
    trace = written(small(steps=1), tmp_path)
    found = [e for e in rows(trace, "cpu_op") if e["name"] == "torch::autograd::AccumulateGrad"]
    assert [e["args"]["Input Dims"] for e in found] == [[[600]], [[400]], [[2_000_000]]]
    assert {e["tid"] for e in found} == {4001}


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [("none", None), ("rank", ["", "", "", "1"]), ("sequence", ["", "1", "", "1"])],
)
def test_concrete_inputs(tmp_path: Path, inputs: Any, expected: list[str] | None) -> None:
    trace = written(small(), tmp_path, 1, concrete_inputs=inputs)
    record = next(e for e in rows(trace, "cpu_op") if e["name"] == "record_param_comms")
    found = record["args"].get("Concrete Inputs")
    assert (found if found is None else found[:4]) == expected


def test_an_offset_shifts_every_row_of_its_rank_and_no_other(tmp_path: Path) -> None:
    plain = [written(small(), tmp_path / "a", rank) for rank in (0, 1)]
    scenario = small().with_clocks({1: 5_000_007})
    shifted = [written(scenario, tmp_path / "b", rank) for rank in (0, 1)]
    assert shifted[0] == plain[0]
    moved = {
        round((late["ts"] - early["ts"]) * 1_000)
        for late, early in zip(shifted[1]["traceEvents"], plain[1]["traceEvents"], strict=True)
    }
    assert moved == {5_000_007}
    assert scenario.expected.clock_offsets_ns == {0: 0, 1: 5_000_007}
    assert scenario.expected.ranks == small().expected.ranks


def test_a_drift_grows_with_time(tmp_path: Path) -> None:
    plain = written(small(), tmp_path / "a", 1)
    fast = written(small().with_clocks(drift_ppm={1: 1_000}), tmp_path / "b", 1)
    first = plain["traceEvents"][0]["ts"]
    for late, early in zip(fast["traceEvents"], plain["traceEvents"], strict=True):
        # 1000 ppm of the time since the start, rounded down to 1 ns.
        assert late["ts"] - early["ts"] == pytest.approx((early["ts"] - first) / 1_000, abs=2.1e-3)
        if "dur" in early:
            assert late["dur"] - early["dur"] == pytest.approx(early["dur"] / 1_000, abs=3.1e-3)


def test_a_base_of_its_own_changes_no_absolute_time(tmp_path: Path) -> None:
    plain = written(small(), tmp_path / "a", 1, torch="2.8")
    shifted = written(small(), tmp_path / "b", 1, torch="2.8", base_shift_ns={1: 250_000_000})
    assert shifted["baseTimeNanoseconds"] - plain["baseTimeNanoseconds"] == 250_000_000
    times = [[absolute_ns(t, e) for e in t["traceEvents"] if "dur" in e] for t in (plain, shifted)]
    assert times[0] == times[1]


def test_groups_can_have_a_name_of_their_own_on_each_rank(tmp_path: Path) -> None:
    names = {1: {"0": "default", "3": "tensor"}}
    trace = written(tensor_data_parallel(), tmp_path, 1, group_names=names)
    listed = {g["pg_name"]: g["ranks"] for g in trace["distributedInfo"]["pg_config"]}
    assert listed == {"default": [0, 1, 2, 3], "2": [1, 3], "tensor": [0, 1]}
    assert {k["args"]["Process Group Name"] for k in communications(trace)} == {"tensor", "2"}


def test_file_names(tmp_path: Path) -> None:
    scenario = small(ranks_per_host=1).with_clocks({1: 1_000})
    write_run(scenario, tmp_path / "a")
    write_run(scenario, tmp_path / "b", style=TraceStyle(file_names="kineto", compress=False))
    write_run(scenario.without_files_of([0]), tmp_path / "c")
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == [
        "rank_00000.0.pt.trace.json.gz",
        "rank_00001.0.pt.trace.json.gz",
    ]
    assert sorted(p.name for p in (tmp_path / "b").iterdir()) == [
        "host0_4000.1733000009000000000.pt.trace.json",
        "host1_4000.1733000009000001000.pt.trace.json",
    ]
    assert [p.name for p in (tmp_path / "c").iterdir()] == ["rank_00001.0.pt.trace.json.gz"]


def test_files_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_run(small(), tmp_path / folder, torch="2.12")
    name = "rank_00000.0.pt.trace.json.gz"
    first = (tmp_path / "a" / name).read_bytes()
    assert first == (tmp_path / "b" / name).read_bytes()
    assert first[4:8] == b"\0\0\0\0"  # the time in a gzip header
    json.loads(gzip.decompress(first))


def test_the_manifest_says_what_the_collector_would(tmp_path: Path) -> None:
    manifest = written(small(), tmp_path, 1, manifest=True)["rankscope"]
    assert (manifest["rank"], manifest["world_size"], manifest["host"]) == (1, 2, "host0")
    assert [s["step"] for s in manifest["steps"]] == [0, 1]
    assert manifest["ddp"][0]["buckets"][0]["size_bytes"] == 4_000
    assert manifest["groups"][0]["ranks"] == [0, 1]


@pytest.mark.parametrize("torch", RELEASES)
def test_the_host_stands_where_the_collector_or_torch_writes_it(tmp_path: Path, torch: Any) -> None:
    run = small(ranks=4, ranks_per_host=2)
    write_run(run, tmp_path / "collected", torch=torch)
    write_run(run, tmp_path / "exported", style=TraceStyle(torch=torch, file_names="kineto"))
    collected = read_run(tmp_path / "collected")
    assert {w.rank: w.host for w in collected.windows} == run.expected.hosts
    # Kineto's own files name the host at the top (new releases) or in the file's name.
    exported = read_run(tmp_path / "exported")
    assert {w.rank: w.host for w in exported.windows} == {0: "host0", 1: "host0", 2: "host1", 3: "host1"}
    assert all(w.manifest is None for w in exported.windows)


def test_missing_ranks_leave_the_answers() -> None:
    expected = small(ranks=3, straggler=(2, 5_000, "compute")).without_files_of([1]).expected
    assert expected.missing_ranks == (1,)
    assert sorted(expected.ranks) == [0, 2]
    assert all(sorted(by_rank) == [0, 2] for by_rank in expected.steps.values())
    assert {b.rank for b in expected.buckets} == {0, 2}
    assert expected.straggler is None


def test_unknown_ranks_are_refused() -> None:
    with pytest.raises(UsageError, match=r"ranks 0 to 1, not \[4\]"):
        small().with_clocks({4: 1})
    with pytest.raises(UsageError, match=r"not \[2\]"):
        small().without_files_of([2])


def test_lines_break_where_kineto_breaks_them(tmp_path: Path) -> None:
    texts = {}
    for torch, pretty in (("2.4", True), ("2.12", True), ("2.4", False)):
        folder = tmp_path / f"{torch}{pretty}"
        written(small(), folder, torch=torch, pretty=pretty)
        texts[torch, pretty] = (folder / "rank0.json").read_text()
    assert '  },\n  {\n    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid"' in texts["2.4", True]
    assert '  },\n  {\n    "ph": "X",\n    "cat": "cpu_op",\n    "name": "aten::mm",\n' in texts["2.12", True]
    assert "\n" not in texts["2.4", False]

"""Damaged copies: what each kind of damage changes, and that it changes nothing else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankscope.errors import UsageError
from rankscope.testing import corrupt
from rankscope.testing.synth import TraceStyle, ddp_run, write_run
from rankscope.testing.trace_file import read_text_bytes

NAME = "rank_{:05d}.0.pt.trace.json.gz"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    style = TraceStyle(torch="2.12", concrete_inputs="sequence")
    write_run(ddp_run(steps=2, buckets=(1_000, 2_000, 3_000)), folder, style=style)
    return folder


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    return tmp_path / "damaged"


def load(folder: Path, rank: int) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(read_text_bytes(folder / NAME.format(rank)))
    return whole


def events(folder: Path, rank: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = load(folder, rank)["traceEvents"]
    return found


def is_communication(event: dict[str, Any]) -> bool:
    return event.get("cat") == "kernel" and event["name"].startswith("nccl")


def assert_other_rank_untouched(run: Path, damaged: Path) -> None:
    assert (run / NAME.format(0)).read_bytes() == (damaged / NAME.format(0)).read_bytes()


def test_shift_clock_moves_all_times(run: Path, damaged: Path) -> None:
    corrupt.shift_clock(run, damaged, rank=1, shift_ns=10_000_001)
    pairs = zip(events(damaged, 1), events(run, 1), strict=True)
    assert {round((late["ts"] - early["ts"]) * 1_000) for late, early in pairs} == {10_000_001}
    assert load(damaged, 1)["baseTimeNanoseconds"] == load(run, 1)["baseTimeNanoseconds"]
    assert_other_rank_untouched(run, damaged)


def test_shift_clock_of_the_base_only(run: Path, damaged: Path) -> None:
    corrupt.shift_clock(run, damaged, rank=1, shift_ns=-5, only_base=True)
    assert load(damaged, 1)["baseTimeNanoseconds"] == load(run, 1)["baseTimeNanoseconds"] - 5
    assert events(damaged, 1) == events(run, 1)


def test_whole_microseconds_stay_whole(tmp_path: Path, damaged: Path) -> None:
    write_run(ddp_run(steps=1), tmp_path / "old", torch="2.1")
    corrupt.shift_clock(tmp_path / "old", damaged, rank=1, shift_ns=7_000)
    assert all(isinstance(event["ts"], int) for event in events(damaged, 1))


def test_drift_stretches_from_the_first_event(run: Path, damaged: Path) -> None:
    corrupt.drift_clock(run, damaged, rank=1, ppm=500)
    first = min(event["ts"] for event in events(run, 1))
    for late, early in zip(events(damaged, 1), events(run, 1), strict=True):
        assert late["ts"] - early["ts"] == pytest.approx((early["ts"] - first) * 5e-4, abs=2.1e-3)
    longest = max(range(len(events(run, 1))), key=lambda i: events(run, 1)[i].get("dur", 0))
    before, after = events(run, 1)[longest]["dur"], events(damaged, 1)[longest]["dur"]
    assert after == pytest.approx(before * 1.0005, abs=2e-3)


@pytest.mark.parametrize(("place", "number"), [("head", 0), ("middle", 3), ("tail", 5), (1, 1)])
def test_drop_collective_loses_all_its_rows(run: Path, damaged: Path, place: Any, number: int) -> None:
    corrupt.drop_collective(run, damaged, rank=1, place=place)
    kernels = [event for event in events(run, 1) if is_communication(event)]
    left = [event for event in events(damaged, 1) if is_communication(event)]
    assert left == kernels[:number] + kernels[number + 1 :]
    # kernel, launch, two flows, c10d operator, record_param_comms, annotation and its device copy
    assert len(events(run, 1)) - len(events(damaged, 1)) == 8
    assert_other_rank_untouched(run, damaged)


def test_drop_collective_of_gloo(tmp_path: Path, damaged: Path) -> None:
    write_run(ddp_run(steps=2, backend="gloo"), tmp_path / "gloo")
    corrupt.drop_collective(tmp_path / "gloo", damaged, rank=1, place="middle")
    names = [event["name"] for event in events(damaged, 1)]
    assert (names.count("gloo:all_reduce"), names.count("c10d::allreduce_")) == (5, 5)


def test_drop_collective_that_is_not_there(run: Path, damaged: Path) -> None:
    with pytest.raises(UsageError, match="rank 1 has 6 communications, no number 6"):
        corrupt.drop_collective(run, damaged, rank=1, place=6)


def test_rename_groups_on_one_rank(run: Path, damaged: Path) -> None:
    corrupt.rename_groups(run, damaged, rank=1, names={"0": "17"})
    names = {e["args"]["Process Group Name"] for e in events(damaged, 1) if is_communication(e)}
    assert names == {"17"}
    assert [g["pg_name"] for g in load(damaged, 1)["distributedInfo"]["pg_config"]] == ["17"]
    assert_other_rank_untouched(run, damaged)


def test_keep_steps_keeps_what_they_launched(run: Path, damaged: Path) -> None:
    corrupt.keep_steps(run, damaged, rank=1, steps=[1])
    kept = events(damaged, 1)
    steps = {e["name"] for e in kept if e["name"].startswith("ProfilerStep#")}
    assert steps == {"ProfilerStep#1"}
    kernels = [event for event in events(run, 1) if event.get("cat") == "kernel"]
    assert [event for event in kept if event.get("cat") == "kernel"] == kernels[len(kernels) // 2 :]
    launched = {e["args"]["correlation"] for e in kept if e.get("cat") == "cuda_runtime"}
    assert {e["id"] for e in kept if e.get("cat") == "ac2g"} <= launched
    copies = [e for e in kept if e.get("cat") == "gpu_user_annotation"]
    assert len(copies) == 3 + 1
    assert_other_rank_untouched(run, damaged)


def test_remove_sequence_numbers_of_all_ranks(run: Path, damaged: Path) -> None:
    corrupt.remove_sequence_numbers(run, damaged)
    for rank in (0, 1):
        found = events(damaged, rank)
        assert not [event for event in found if "Seq" in event.get("args", {})]
        records = [event for event in found if event["name"] == "record_param_comms"]
        assert {event["args"]["Concrete Inputs"][1] for event in records} == {""}
        assert {event["args"]["Concrete Inputs"][3] for event in records} == {str(rank)}


def test_shuffle_events_changes_the_order_only(run: Path, damaged: Path) -> None:
    corrupt.shuffle_events(run, damaged, seed=1)
    before, after = events(run, 0), events(damaged, 0)
    assert before != after
    assert sorted(before, key=json.dumps) == sorted(after, key=json.dumps)


@pytest.mark.parametrize("token", ["NaN", "inf"])
def test_put_bad_numbers(run: Path, damaged: Path, token: str) -> None:
    corrupt.put_bad_numbers(run, damaged, rank=1, token=token)
    text = read_text_bytes(damaged / NAME.format(1)).decode()
    assert f'"memory bandwidth (GB/s)": {token}' in text
    mended = json.loads(text.replace(f": {token}", ": null"))["traceEvents"]
    assert [e for e in mended if e.get("dur") != 0] == [e for e in events(run, 1) if e.get("dur") != 0]


def test_put_control_characters(run: Path, damaged: Path) -> None:
    corrupt.put_control_characters(run, damaged, rank=1)
    text = read_text_bytes(damaged / NAME.format(1)).decode()
    with pytest.raises(json.JSONDecodeError, match="Invalid control character"):
        json.loads(text)
    lenient = json.loads(text, strict=False)["traceEvents"]
    assert [e for e in lenient if e.get("cat") != "python_function"] == events(run, 1)


def test_remove_rank(run: Path, damaged: Path) -> None:
    corrupt.remove_rank(run, damaged, rank=1)
    assert [path.name for path in damaged.iterdir()] == [NAME.format(0)]
    assert len(list(run.iterdir())) == 2


def test_swap_files(run: Path, damaged: Path) -> None:
    corrupt.swap_files(run, damaged, ranks=(0, 1))
    assert [load(damaged, r)["distributedInfo"]["rank"] for r in (0, 1)] == [1, 0]


def test_truncate_file_leaves_a_valid_gzip(run: Path, damaged: Path) -> None:
    length = corrupt.truncate_file(run, damaged, rank=1, share=0.5)
    left = read_text_bytes(damaged / NAME.format(1))
    assert len(left) == length
    assert read_text_bytes(run / NAME.format(1)).startswith(left)
    with pytest.raises(json.JSONDecodeError):
        json.loads(left)


def test_truncate_file_of_compressed_bytes(run: Path, damaged: Path) -> None:
    corrupt.truncate_file(run, damaged, rank=1, cut_gzip=True)
    with pytest.raises(EOFError):
        gzip.decompress((damaged / NAME.format(1)).read_bytes())


def test_empty_file(run: Path, damaged: Path) -> None:
    corrupt.empty_file(run, damaged, rank=1)
    assert len((damaged / NAME.format(1)).read_bytes()) == 20
    assert read_text_bytes(damaged / NAME.format(1)) == b""


def test_interleave_files(run: Path, damaged: Path) -> None:
    corrupt.interleave_files(run, damaged, ranks=(0, 1), block_bytes=100)
    mixed = read_text_bytes(damaged / NAME.format(0))
    first, second = (read_text_bytes(run / NAME.format(rank)) for rank in (0, 1))
    assert mixed[:300] == first[:100] + second[:100] + first[100:200]
    assert len(mixed) == len(first) + len(second)
    with pytest.raises(json.JSONDecodeError):
        json.loads(mixed)
    assert not (damaged / NAME.format(1)).exists()


EDITS: list[Callable[[Path, Path], object]] = [
    lambda a, b: corrupt.shift_clock(a, b, rank=1, shift_ns=0),
    lambda a, b: corrupt.drift_clock(a, b, rank=1, ppm=0),
    lambda a, b: corrupt.rename_groups(a, b, rank=1, names={}),
    lambda a, b: corrupt.keep_steps(a, b, rank=1, steps=[0, 1]),
]


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("torch", ["2.1", "2.4", "2.12"])
def test_an_edit_that_changes_nothing_keeps_every_byte(
    tmp_path: Path, damaged: Path, edit: Callable[[Path, Path], object], torch: Any
) -> None:
    write_run(ddp_run(steps=2), tmp_path / "run", torch=torch)
    edit(tmp_path / "run", damaged)
    assert read_text_bytes(damaged / NAME.format(1)) == read_text_bytes(tmp_path / "run" / NAME.format(1))


def test_the_rank_is_found_by_content_and_else_by_name(tmp_path: Path, damaged: Path) -> None:
    style = TraceStyle(distributed_info="no rank", file_names="plain")
    write_run(ddp_run(steps=1), tmp_path / "plain", style=style)
    corrupt.remove_rank(tmp_path / "plain", damaged, rank=1)
    assert [path.name for path in damaged.iterdir()] == ["rank0.json.gz"]


def test_a_rank_that_is_not_there_is_refused(run: Path, damaged: Path) -> None:
    with pytest.raises(UsageError, match=r"no trace file in .* is of rank 9"):
        corrupt.remove_rank(run, damaged, rank=9)


def test_the_source_is_never_written_to(run: Path) -> None:
    with pytest.raises(UsageError, match="is not empty"):
        corrupt.remove_rank(run, run, rank=1)

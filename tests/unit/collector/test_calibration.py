"""The sweep's sizes, its limits, and that it abstains where the profiler did not see every operation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankscope.collector import calibration, memory
from rankscope.collector.calibration import Sweep, list_sizes, make_profile, run_sweep
from rankscope.errors import RankscopeError

torch = pytest.importorskip("torch", reason="the sweep runs torch's collectives")


def test_sizes_double_from_64_kib_and_end_with_the_largest() -> None:
    # 327,680 would be reached by 262,144 x 1.25: too near to be worth a size of its own
    assert list_sizes(327_680, 4) == [65_536, 131_072, 327_680]
    assert list_sizes(393_216, 4) == [65_536, 131_072, 262_144, 393_216]
    assert list_sizes(10, 4) == [8]


@pytest.mark.parametrize(
    ("name", "is_operation"),
    [
        ("gloo:all_reduce", True),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", True),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", True),
        ("ncclSymkDevKernel_AllReduce_RSxLD_AGxST", True),
        ("rcclKernel_AllReduce", True),
        ("nccl:all_reduce", False),  # the annotation round the launch, and its copy on the GPU's rows
        ("c10d::allreduce_", False),
        ("gloo:all_reduce_coalesced", False),
    ],
)
def test_the_rows_of_an_all_reduce_are_known_by_name(name: str, is_operation: bool) -> None:
    assert (calibration._ROWS.match(name) is not None) is is_operation


def _sweep(elements: int, seconds: float, wanted_bytes: int) -> Any:
    return Sweep(
        group=torch.distributed.distributed_c10d._get_default_group(),
        group_name="0",
        ranks=[0],
        buffer=torch.zeros(elements),
        wanted_bytes=wanted_bytes,
        seconds=seconds,
    )


def test_each_repeat_of_each_size_has_its_duration(process_group: Callable[[], None]) -> None:
    process_group()
    profiler = make_profile()
    profiler.start()
    found = run_sweep(_sweep(100_000, 60, 400_000), profiler)
    assert [(point.size_bytes, len(point.durations_ns)) for point in found.points] == [
        (65_536, 8), (131_072, 8), (262_144, 8), (400_000, 8),
    ]  # fmt: skip
    assert all(min(point.durations_ns) > 0 for point in found.points)
    assert (found.op, found.device, found.dtype, found.limited_by) == ("all_reduce", "cpu", "float32", "")


def test_a_profiler_that_saw_another_number_of_operations_leaves_no_figures(
    process_group: Callable[[], None],
) -> None:
    process_group()
    profiler = make_profile()
    profiler.start()
    torch.distributed.all_reduce(torch.ones(1))
    with pytest.raises(RankscopeError, match="did not record each operation"):
        run_sweep(_sweep(100_000, 3, 400_000), profiler)


def test_time_that_is_up_ends_the_first_round(process_group: Callable[[], None]) -> None:
    process_group()
    sweep = _sweep(100_000, 1e-9, 400_000)
    log = calibration._Log()
    assert calibration._run_first_round(sweep, list_sizes(400_000, 4), log) == [65_536]
    calibration._run_other_rounds(sweep, [65_536], log)
    # Warming up, one size, and two agreements to stop
    assert log.sizes == [0, 65_536, 0, 0]


def test_the_limit_is_named(process_group: Callable[[], None]) -> None:
    process_group()
    assert calibration._find_limit(_sweep(100, 1, 400), is_complete=True) == ""
    assert calibration._find_limit(_sweep(100, 1, 403), is_complete=True) == ""  # a part of an element
    assert calibration._find_limit(_sweep(100, 1, 404), is_complete=True) == "memory"
    assert calibration._find_limit(_sweep(100, 1, 404), is_complete=False) == "time"


def test_free_memory_is_what_the_system_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    meminfo = tmp_path / "meminfo"
    monkeypatch.setattr(memory, "_MEMINFO", meminfo)
    assert memory.find_free_bytes(cpu) == 268_435_456
    meminfo.write_text("MemTotal:  900 kB\nMemAvailable:     500 kB\n")
    assert memory.find_free_bytes(cpu) == 512_000
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    assert memory.count_ranks_on_host(32) == 8
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "x")
    assert memory.count_ranks_on_host(32) == 32

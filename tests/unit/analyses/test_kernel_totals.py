from __future__ import annotations

from pathlib import Path

from rankscope.analyses.kernel_totals import KernelTotal, total_kernels
from rankscope.correlate.device_events import device_events
from rankscope.pipeline import read_run
from support.trace_text import kernel, launch, memcpy, nccl, write_ranks


def test_nothing() -> None:
    assert total_kernels([]) == ()


def test_time_and_count_per_name_over_ranks(tmp_path: Path) -> None:
    """gemm 5 + 7 us on rank 0 and 3 on rank 1; one copy of 4; communication is not listed."""
    first = [
        launch(1, 0),
        kernel("gemm", 1, 5, correlation=1),
        kernel("gemm", 10, 7),
        memcpy(20, 4),
        nccl(30, 9),
    ]
    second = [kernel("gemm", 1, 3), kernel("relu", 5, 1)]
    write_ranks(tmp_path, {0: first, 1: second})
    totals = total_kernels(device_events(read_run(tmp_path)))
    copy = next(total.name for total in totals if total.kind == "memory")
    assert totals == (
        KernelTotal(kind="compute", name="gemm", count=3, time_ns=15_000),
        KernelTotal(kind="memory", name=copy, count=1, time_ns=4_000),
        KernelTotal(kind="compute", name="relu", count=1, time_ns=1_000),
    )

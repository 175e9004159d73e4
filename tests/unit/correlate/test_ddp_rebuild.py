"""Where DDP rebuilt its buckets: two small int32 broadcasts in one forward, and nothing else."""

from __future__ import annotations

import pytest

from rankscope.correlate.communications import resolve_communications
from rankscope.correlate.ddp_rebuild import find_rebuild
from rankscope.correlate.device_events import device_events
from rankscope.correlate.steps import find_steps
from rankscope.model.run import Run
from rankscope.pipeline import analyze_run
from support.reading import run_of
from support.trace_text import Row, annotation, collective, cpu_op, gloo, kernel, launch, nccl, step

FORWARD = "DistributedDataParallel.forward"
PARAMETERS, BUCKETS = 16, 3


def rebuild_step(run: Run) -> int | None:
    (events,) = device_events(run)
    found = find_rebuild(resolve_communications(events, run.world_size), find_steps(events.table))
    return None if found is None else found.step


def ddp_step(number: int, *in_forward: Row, forward: bool = True) -> list[Row]:
    """A step of 1000 us: forward in its first 500, then the gradients' all-reduce."""
    start = number * 1000
    rows = [
        step(number, start, 1000),
        cpu_op("aten::mm", start + 10, 400),
        gloo("all_reduce", start + 600, 100, dims=[[900]]),
    ]
    return [*rows, *in_forward] + ([annotation(FORWARD, start, 500)] if forward else [])


def order_broadcasts(number: int, dtype: str = "int", at: int = 5) -> list[Row]:
    """What DDP sends when it rebuilds: an entry per parameter and one more, then an entry per bucket."""
    start = number * 1000 + at
    return [
        gloo("broadcast", start, 3, dims=[[PARAMETERS + 1]], dtype=dtype),
        gloo("broadcast", start + 4, 3, dims=[[BUCKETS]], dtype=dtype),
    ]


def gloo_run(*steps: list[Row]) -> Run:
    return run_of({0: [row for rows in steps for row in rows]}, world_size=2)


def test_no_communication() -> None:
    assert rebuild_step(run_of({0: [cpu_op("aten::mm", 0, 1)]})) is None


def test_the_forward_with_the_two_broadcasts_is_in_the_first_step_with_the_new_buckets() -> None:
    assert rebuild_step(gloo_run(ddp_step(4), ddp_step(5, *order_broadcasts(5)), ddp_step(6))) == 5


def test_of_two_modules_the_later_counts() -> None:
    steps = [ddp_step(4), ddp_step(5, *order_broadcasts(5)), ddp_step(6, *order_broadcasts(6))]
    assert rebuild_step(gloo_run(*steps)) == 6


def test_buffers_are_int64_and_do_not_count() -> None:
    """BatchNorm's counters (num_batches_tracked) are broadcast in every forward."""
    assert (
        rebuild_step(gloo_run(*(ddp_step(n, *order_broadcasts(n, dtype="long int")) for n in (4, 5)))) is None
    )


def test_one_int32_buffer_in_every_forward_does_not_count() -> None:
    """A broadcast in one forward and its like in the next are no pair."""
    steps = [ddp_step(n, gloo("broadcast", n * 1000 + 5, 3, dims=[[4]], dtype="int")) for n in (4, 5, 6)]
    assert rebuild_step(gloo_run(*steps)) is None


def test_the_bitmap_of_unused_parameters_does_not_count() -> None:
    """find_unused_parameters: one int32 all-reduce per iteration."""
    bitmaps = [gloo("all_reduce", 4000 + at, 3, dims=[[PARAMETERS]], dtype="int") for at in (5, 9)]
    assert rebuild_step(gloo_run(ddp_step(4, *bitmaps), ddp_step(5))) is None


def test_the_first_broadcast_is_the_larger() -> None:
    small_first = [
        gloo("broadcast", 4005, 3, dims=[[BUCKETS]], dtype="int"),
        gloo("broadcast", 4009, 3, dims=[[PARAMETERS + 1]], dtype="int"),
    ]
    assert rebuild_step(gloo_run(ddp_step(4, *small_first))) is None


@pytest.mark.parametrize("kept", [0, 1])
def test_one_broadcast_alone_is_no_rebuild(kept: int) -> None:
    assert rebuild_step(gloo_run(ddp_step(4), ddp_step(5, order_broadcasts(5)[kept]))) is None


def test_broadcasts_outside_a_forward_do_not_count() -> None:
    """DDP's constructor broadcasts too."""
    assert rebuild_step(gloo_run(ddp_step(4), ddp_step(5, *order_broadcasts(5, at=800)))) is None
    assert rebuild_step(gloo_run(ddp_step(4), ddp_step(5, *order_broadcasts(5), forward=False))) is None


def test_a_forward_outside_the_steps_does_not_count() -> None:
    before = [annotation(FORWARD, 0, 500), *order_broadcasts(0)]
    assert rebuild_step(gloo_run(before, ddp_step(4), ddp_step(5))) is None


def nccl_step(number: int, *broadcasts: tuple[int, str]) -> list[Row]:
    """A step whose kernels run 700 us after their launches: in the next step, as real ones do."""
    start = number * 1000
    rows = [step(number, start, 1000), annotation(FORWARD, start, 500)]
    for i, (elements, dtype) in enumerate(broadcasts):
        correlation, at = 10 * number + i, start + 5 + 4 * i
        args = collective("broadcast", elements, elements, dtype=dtype)
        rows += [launch(correlation, at), nccl(at + 700, 3, correlation=correlation, args=args)]
    return [
        *rows,
        launch(10 * number + 9, start + 400),
        kernel("gemm", start + 1100, 100, correlation=10 * number + 9),
    ]


def nccl_run(*steps: list[Row]) -> Run:
    return run_of({0: [row for rows in steps for row in rows]}, world_size=2)


def test_on_the_gpu_the_launch_decides() -> None:
    pair = ((PARAMETERS + 1, "Int"), (BUCKETS, "Int"))
    assert rebuild_step(nccl_run(nccl_step(4), nccl_step(5, *pair), nccl_step(6))) == 5
    assert rebuild_step(nccl_run(nccl_step(4), nccl_step(5, (17, "Long"), (3, "Long")))) is None


def test_steps_before_the_rebuild_are_not_steady() -> None:
    report = analyze_run(gloo_run(ddp_step(3), ddp_step(4), ddp_step(5, *order_broadcasts(5)), ddp_step(6)))
    assert report.run.steps == [3, 4, 5, 6]
    assert report.run.steady_steps == [5, 6]
    assert [row.steady for row in report.steps] == [False, False, True, True]
    assert "before-rebuild" in [problem.kind for problem in report.problems]


def test_the_broadcasts_close_the_step_before_them() -> None:
    """They belong to the old layout: step 5 keeps its all-reduce of 100 us alone, step 4 has 2 x 3 us more."""
    report = analyze_run(gloo_run(ddp_step(4), ddp_step(5, *order_broadcasts(5))))
    assert [(row.step, row.communication_ns) for row in report.steps] == [(4, 106_000), (5, 100_000)]


def test_the_broadcasts_of_a_rebuild_in_the_first_recorded_step_belong_to_none() -> None:
    report = analyze_run(gloo_run(ddp_step(5, *order_broadcasts(5)), ddp_step(6)))
    assert [(row.step, row.communication_ns) for row in report.steps] == [
        (5, 100_000),
        (6, 100_000),
        (None, 6_000),
    ]
    assert report.run.steady_steps == [5, 6]

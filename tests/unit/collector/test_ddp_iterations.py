"""Which step an iteration of DDP belongs to, from what DDP publishes at the end of each step."""

from __future__ import annotations

from rankscope.collector.ddp_iterations import IterationLog
from rankscope.model.manifest import DdpIteration


def _published(iteration: int) -> dict[str, object]:
    return {
        "iteration": iteration,
        "forward_compute_time": 1,
        "backward_compute_time": 20,
        "backward_comm_time": 30,
        "backward_compute_comm_overlap_time": 4 * iteration,
    }


def _read(readings: list[tuple[int | None, dict[str, object]]]) -> list[tuple[int, int]]:
    log = IterationLog()
    for ended, logged in readings:
        log.note_published(logged, ended)
    return [(row.step, row.iteration) for row in log.iterations]


def test_without_readings_there_are_none() -> None:
    assert _read([]) == []
    assert _read([(None, {}), (7, {}), (8, {})]) == []


def test_an_iteration_is_published_in_the_step_after_its_own() -> None:
    # 6 ended before step 7 began: iteration 7 runs in step 7 and is published when iteration 8 begins, in step 8.
    assert _read([(None, _published(5)), (7, _published(6)), (8, _published(7)), (9, _published(8))]) == [
        (7, 7), (8, 8),
    ]  # fmt: skip


def test_the_first_reading_may_jump_since_ddp_published_only_every_hundredth_before() -> None:
    # Iteration 57 ran before the window, whatever was published last.
    assert _read([(None, _published(10)), (7, _published(57)), (8, _published(58))]) == [(7, 58)]


def test_several_iterations_in_one_step_keep_their_step() -> None:
    # Steps of two: 6 and 7 in step 3, 8 and 9 in step 4; at a step's end the first of its two is public.
    assert _read([(None, _published(4)), (3, _published(6)), (4, _published(8)), (5, _published(10))]) == [
        (4, 8), (5, 10),
    ]  # fmt: skip


def test_a_step_without_synchronisation_publishes_nothing() -> None:
    # Iteration 7 runs in step 7; step 8 accumulates; iteration 8 begins in step 9 and publishes 7.
    readings: list[tuple[int | None, dict[str, object]]] = [
        (None, _published(5)), (7, _published(6)), (8, _published(6)), (9, _published(7)), (10, _published(8)),
    ]  # fmt: skip
    assert _read(readings) == [(7, 7), (9, 8)]


def test_times_that_ddp_did_not_take_are_left_out() -> None:
    assert (
        _read([(None, _published(5)), (7, _published(6)), (8, _published(7) | {"backward_comm_time": 0})])
        == []
    )


def test_times_are_kept_under_their_own_names() -> None:
    log = IterationLog()
    for ended, iteration in ((None, 1), (3, 2), (4, 3)):
        log.note_published(_published(iteration), ended)
    assert log.iterations == [
        DdpIteration(
            step=3,
            iteration=3,
            forward_compute_ns=1,
            backward_compute_ns=20,
            backward_communication_ns=30,
            overlap_ns=12,
        )
    ]

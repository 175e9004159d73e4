"""The ring's arithmetic, against numbers worked by hand."""

from __future__ import annotations

import pytest

from rankscope.model.ring import plan_ring


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather() -> None:
    """8 ranks, 800 MB: 2 x 7 steps of 100 MB are 1,400 MB; over 100 GB/s that is 14 ms."""
    ring = plan_ring("all_reduce", 8, 800_000_000)
    assert ring is not None
    assert (ring.steps, ring.step_bytes, ring.traffic_bytes) == (14, 100_000_000, 1_400_000_000)
    assert ring.transfer_ns(100) == 14_000_000


@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter"])
def test_each_half_takes_half_the_steps(op: str) -> None:
    ring = plan_ring(op, 4, 400)
    assert ring is not None
    assert (ring.steps, ring.step_bytes, ring.traffic_bytes) == (3, 100, 300)


def test_a_broadcast_sends_everything_once_in_no_fixed_number_of_steps() -> None:
    ring = plan_ring("broadcast", 4, 1000)
    assert ring is not None
    assert (ring.steps, ring.step_bytes, ring.traffic_bytes) == (None, None, 1000)


@pytest.mark.parametrize(("op", "ranks"), [("all_reduce", 1), ("barrier", 8), ("something", 8)])
def test_there_is_no_ring_without_traffic_that_is_known(op: str, ranks: int) -> None:
    assert plan_ring(op, ranks, 1000) is None

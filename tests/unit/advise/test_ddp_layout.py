"""The layout rule on layouts that were measured on real DDP (../shared/FACTS.md)."""

from __future__ import annotations

import pytest

from rankscope.advise.ddp_layout import Gradient, caps_of, initial_layout, rebuilt_layout


def linear_layers(number: int, width: int) -> list[Gradient]:
    """Gradients of `number` square linear layers in ready order: the last layer first, bias before weight."""
    sizes = [width, width * width] * number
    return [Gradient(elements=n, dtype="float32", size_bytes=4 * n) for n in sizes]


@pytest.mark.parametrize(
    ("layers", "width", "cap", "sizes"),
    [
        (40, 512, None, [1050624, 26265600, 14708736]),
        (40, 512, 25, [26265600, 15759360]),
        (40, 512, 4, [4202496] * 10),
        (8, 1024, 10, [12595200, 12595200, 8396800]),
        (8, 1024, 1, [4198400] * 8),
    ],
)
def test_measured_layouts(layers: int, width: int, cap: float | None, sizes: list[int]) -> None:
    found = rebuilt_layout(linear_layers(layers, width), caps_of(cap))
    assert [bucket.size_bytes for bucket in found] == sizes


def test_leftovers_of_two_dtypes_follow_the_last_that_appeared_first() -> None:
    """FACTS.md: fp64 ready first, yet the fp32 leftover becomes bucket 0."""
    double = Gradient(elements=4, dtype="float64", size_bytes=32)
    single = Gradient(elements=4, dtype="float32", size_bytes=16)
    found = rebuilt_layout([double, single], caps_of(25))
    assert [(bucket.dtype, bucket.gradients) for bucket in found] == [("float32", (1,)), ("float64", (0,))]


def test_every_dtype_walks_through_the_caps_by_itself() -> None:
    """Caps 16 and 64 bytes: the first bucket of either dtype closes at 16 bytes, the second at 64."""
    double = Gradient(elements=2, dtype="float64", size_bytes=16)
    single = Gradient(elements=4, dtype="float32", size_bytes=16)
    found = rebuilt_layout([double, single, double, single, single], (16, 64))
    assert [bucket.gradients for bucket in found] == [(0,), (1,), (3, 4), (2,)]


def test_without_a_rebuild_the_last_parameters_go_first() -> None:
    """4 parameters of 16 bytes, cap 32: (0, 1) and (2, 3), launched from the end."""
    single = Gradient(elements=4, dtype="float32", size_bytes=16)
    assert [b.gradients for b in initial_layout([single] * 4, (32,))] == [(2, 3), (0, 1)]
    assert [b.gradients for b in initial_layout([single] * 3, (16, 32))] == [(1, 2), (0,)]


def test_no_gradients_no_buckets() -> None:
    assert rebuilt_layout([], caps_of(None)) == []
    assert initial_layout([], caps_of(None)) == []

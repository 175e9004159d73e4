"""The layout rule against real DDP: any model, any cap, equal to the byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankscope.advise.ddp_layout import MIB, Gradient, caps_of, initial_layout, rebuilt_layout
from rankscope.collector.ddp import parse_number_lists, parse_numbers, read_ddp_facts

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

DTYPES = ("float32", "float64", "bfloat16")
SHAPES = st.tuples(
    st.integers(1, 90_000),  # elements: some below, some above the smaller caps
    st.sampled_from(DTYPES),
)
CAPS = st.one_of(st.none(), st.floats(0.001, 2.0), st.sampled_from([0.25, 1, 25, 100]))


@pytest.fixture(scope="module", autouse=True)
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A process group of one gloo rank in this process."""
    import torch.distributed as dist

    store: Path = tmp_path_factory.mktemp("store") / "file"
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


Module: Any = torch.nn.Module


class Sum(Module):  # type: ignore[misc]
    """Parameters of any sizes and dtypes, used one after another."""

    def __init__(self, shapes: list[tuple[int, str]]) -> None:
        super().__init__()
        self.all = torch.nn.ParameterList(
            torch.nn.Parameter(torch.ones(n, dtype=getattr(torch, dtype))) for n, dtype in shapes
        )

    def forward(self, x: Any) -> Any:
        for parameter in self.all:
            x = x + parameter.sum().to(torch.float32)
        return x


def train(shapes: list[tuple[int, str]], **options: Any) -> Any:
    """DDP after three iterations, in which it has rebuilt its buckets if it ever does."""
    model = torch.nn.parallel.DistributedDataParallel(Sum(shapes), **options)
    for _ in range(3):
        model(torch.zeros(1)).sum().backward()
    return model


def gradients_of(model: Any) -> list[Gradient]:
    facts = read_ddp_facts(model, [])
    return [Gradient(elements=p.elements, dtype=p.dtype, size_bytes=p.size_bytes) for p in facts.parameters]


def ready_order(model: Any) -> list[int]:
    return parse_numbers(model._get_ddp_logging_data()["prev_iteration_grad_ready_order_indices"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SHAPES, min_size=1, max_size=12), CAPS)
def test_rebuilt_layout_is_that_of_ddp(shapes: list[tuple[int, str]], cap: float | None) -> None:
    model = train(shapes, bucket_cap_mb=cap)
    logged = model._get_ddp_logging_data()
    order, gradients = ready_order(model), gradients_of(model)
    found = rebuilt_layout([gradients[i] for i in order], caps_of(cap))
    assert [b.size_bytes for b in found] == parse_numbers(logged["rebuilt_bucket_sizes"])
    members = [[order[i] for i in b.gradients] for b in found]
    assert members == parse_number_lists(logged["rebuilt_per_bucket_param_indices"])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SHAPES, min_size=1, max_size=10), st.lists(st.floats(0.01, 0.5), min_size=1, max_size=4))
def test_caps_per_bucket(shapes: list[tuple[int, str]], caps: list[float]) -> None:
    if "bucket_cap_mb_list" not in torch.nn.parallel.DistributedDataParallel.__init__.__annotations__:
        pytest.skip("bucket_cap_mb_list came with torch 2.13")
    model = train(shapes, bucket_cap_mb_list=caps)
    order, gradients = ready_order(model), gradients_of(model)
    found = rebuilt_layout([gradients[i] for i in order], caps_of(None, bucket_cap_mb_list=caps))
    sizes = parse_numbers(model._get_ddp_logging_data()["rebuilt_bucket_sizes"])
    assert [b.size_bytes for b in found] == sizes


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SHAPES, min_size=1, max_size=10), CAPS)
def test_layout_without_a_rebuild(shapes: list[tuple[int, str]], cap: float | None) -> None:
    model = train(shapes, bucket_cap_mb=cap, find_unused_parameters=True)
    found = initial_layout(gradients_of(model), caps_of(cap))
    logged = model._get_ddp_logging_data()
    assert not logged.get("has_rebuilt_buckets")
    assert [b.size_bytes for b in found] == parse_numbers(logged["bucket_sizes"])


@settings(max_examples=200, deadline=None)
@given(st.lists(SHAPES, min_size=1, max_size=20), st.integers(1, 4 * MIB))
def test_every_gradient_is_in_one_bucket_of_its_dtype(shapes: list[tuple[int, str]], cap: int) -> None:
    sizes = {"float32": 4, "float64": 8, "bfloat16": 2}
    gradients = [Gradient(elements=n, dtype=d, size_bytes=n * sizes[d]) for n, d in shapes]
    found = rebuilt_layout(gradients, (cap,))
    assert sorted(i for bucket in found for i in bucket.gradients) == list(range(len(gradients)))
    for bucket in found:
        assert {gradients[i].dtype for i in bucket.gradients} == {bucket.dtype}
        assert bucket.size_bytes - gradients[bucket.gradients[-1]].size_bytes < cap

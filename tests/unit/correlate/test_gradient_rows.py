"""Gradients in ready order, and the copies back from the buckets, in real runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankscope.correlate.device_events import device_events
from rankscope.correlate.gradient_rows import count_forwards, find_copies_back, find_gradients
from rankscope.correlate.steps import find_steps
from rankscope.model.table import empty_table
from rankscope.pipeline import read_run

PARAMETERS = 161
ELEMENTS = 1_257_572 + 6_822_912 + 6_563_840 + 6_637_568 + 2_431_040
"""INDEX.md: elements of the five buckets of ResNet-50; FACTS.md: 161 AccumulateGrad rows per backward."""


def test_gradients_of_a_real_run(shared_traces: Path) -> None:
    window = read_run(shared_traces / "amd_resnet_ddp_4rank" / "rank0.json.gz").windows[0]
    gradients = find_gradients(window.table, find_steps(window.table))
    assert len(gradients) == 3 * PARAMETERS
    assert set(gradients.dtype) == {"float32"}
    for step in (9, 10, 11):
        assert int(gradients.elements[gradients.step == step].sum()) == ELEMENTS
        assert len(set(gradients.backward[gradients.step == step].tolist())) == 1
    assert len(set(gradients.backward.tolist())) == 3
    assert sorted(gradients.rows.tolist()) == gradients.rows.tolist()


@pytest.mark.parametrize(
    "name", ["amd_resnet_ddp_4rank/rank0.json.gz", "nccl_ddp_buckets_1of2/nccl_data.json.gz"]
)
def test_every_gradient_is_copied_back_on_the_device(shared_traces: Path, name: str) -> None:
    (events,) = device_events(read_run(shared_traces / name))
    copies = find_copies_back(events)
    assert len(copies) == 3 * PARAMETERS
    assert (events.table.device[copies] >= 0).all()


def test_every_gradient_is_copied_back_on_the_host(shared_traces: Path) -> None:
    """8 x Linear: 16 parameters, 4 steps."""
    events = device_events(read_run(shared_traces / "gloo_ddp_caps" / "cap10"))[0]
    assert len(find_copies_back(events)) == 4 * 16


def test_an_empty_window_has_no_gradients() -> None:
    table = empty_table()
    gradients = find_gradients(table, find_steps(table))
    assert len(gradients) == 0
    assert count_forwards(table, gradients.elements).tolist() == []

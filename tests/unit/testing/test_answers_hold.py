"""Every scenario: its stated answers equal interval arithmetic on its schedule, and the laws hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise, product
from typing import Any

import pytest

from rankscope.testing.expected import ExpectedMeasures
from rankscope.testing.program import Collective
from rankscope.testing.synth import (
    Scenario,
    ddp_run,
    fsdp_run,
    host_slow,
    pipeline_data_parallel,
    tensor_data_parallel,
)
from rankscope.testing.timeline import Timeline

Figures = Callable[[Timeline, int], dict[str, int]]

_VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"end_jitter_ns": {1: 7_000, 2: 12_345}},
    {"workers": 2},
    {"initial_transfer_ns": 4_000_000},
    {"buckets": [[1_000, 20_000], [300_000, 5], [7_000_000]], "workers": 2},
    {"steps": 1, "first_step": 7, "optimizer_ns": 0, "input_ns": 0},
)
_STRAGGLERS = (None, (1, 3_000_017, "compute"), (0, 3_000_000, "input"), (2, 1_000_000, "work"))


def _ddp_runs() -> list[Scenario]:
    return [
        ddp_run(ranks=3, overlap=overlap, backend=backend, straggler=straggler, **variant)
        for overlap, backend, straggler, variant in product(
            ("full", "partial", "none"), ("nccl", "gloo"), _STRAGGLERS, _VARIANTS
        )
    ]


def _other_runs() -> list[Scenario]:
    return [
        ddp_run(copy_ns=50_000, straggler=(1, 70_000, "memory")),
        host_slow(steps=1),
        host_slow(ranks=6, ranks_per_host=3, slow_host=0, where="host", backend="gloo"),
        tensor_data_parallel(slow={0: 10_000_000}),
        tensor_data_parallel(tp=3, dp=2, layers=3, slow={4: 999_999}),
        pipeline_data_parallel(slow={0: 700_001, 1: 700_001}),
        pipeline_data_parallel(slow={5: 500_000}),
        pipeline_data_parallel(pp=3, dp=3, microbatches=1),
        fsdp_run(),
        fsdp_run(layers=6, gather_ns=1_300_000, scatter_ns=300_000),
    ]


def _check_measures(scenario: Scenario, figures: Figures) -> None:
    timeline = scenario.lay_out()
    for rank, expected in scenario.expected.ranks.items():
        found = figures(timeline, rank)
        stated = {f.name: getattr(expected, f.name) for f in fields(ExpectedMeasures)}
        assert {k: v for k, v in stated.items() if v is not None} == {
            k: found[k] for k, v in stated.items() if v is not None
        }
        markers = timeline.ranks[rank].steps()
        durations = {s: by_rank[rank] for s, by_rank in scenario.expected.step_duration_ns.items()}
        assert durations == {s: row.end_ns - row.start_ns for s, row in markers.items()}


def _check_collectives(scenario: Scenario) -> None:
    met: dict[tuple[str, int | None], dict[int, tuple[int, int]]] = defaultdict(dict)
    for rank, rows in scenario.lay_out().ranks.items():
        for span in rows.device:
            if isinstance(span.item, Collective):
                end_ns = span.end_ns - span.item.end_jitter_ns
                met[span.item.group, span.sequence][rank] = (span.start_ns, end_ns)
    for times in met.values():
        assert len({end_ns for _, end_ns in times.values()}) == 1
    numbers: dict[str, int] = defaultdict(int)
    for expected in scenario.expected.collectives:
        times = met[expected.group, numbers[expected.group]]
        numbers[expected.group] += 1
        assert {rank: (start, expected.end_ns) for rank, start in expected.arrivals_ns.items()} == times


def _check_lanes(scenario: Scenario) -> None:
    for rows in scenario.lay_out().ranks.values():
        streams = defaultdict(list)
        for span in rows.device:
            assert span.start_ns <= span.end_ns
            streams[span.stream].append(span)
        for spans in streams.values():
            assert all(before.end_ns <= after.start_ns for before, after in pairwise(spans))
        for thread in ("main", "backward"):
            open_ends: list[int] = []
            for row in (r for r in rows.host if r.thread == thread):
                while open_ends and open_ends[-1] <= row.start_ns:
                    open_ends.pop()
                assert not open_ends or row.end_ns <= open_ends[-1], row
                open_ends.append(row.end_ns)


def test_ddp_answers_equal_the_schedule(figures: Figures) -> None:
    for scenario in _ddp_runs():
        _check_measures(scenario, figures)
        _check_collectives(scenario)


@pytest.mark.parametrize("scenario", _other_runs(), ids=lambda s: s.name)
def test_answers_equal_the_schedule(scenario: Scenario, figures: Figures) -> None:
    _check_measures(scenario, figures)
    _check_collectives(scenario)


@pytest.mark.parametrize("scenario", [*_other_runs(), *_ddp_runs()[::17]], ids=lambda s: s.name)
def test_streams_are_serial_and_host_rows_nest(scenario: Scenario) -> None:
    _check_lanes(scenario)


@pytest.mark.parametrize("scenario", _ddp_runs()[::7], ids=lambda s: s.name)
def test_steps_add_up_and_the_identity_holds(scenario: Scenario) -> None:
    expected = scenario.expected
    for rank, whole in expected.ranks.items():
        for name in ("compute_ns", "communication_ns", "overlap_ns", "exposed_communication_ns", "memory_ns"):
            assert getattr(whole, name) == sum(getattr(m[rank], name) for m in expected.steps.values())
        parts = (whole.compute_ns, whole.exposed_communication_ns, whole.exposed_memory_ns, whole.idle_ns)
        assert sum(part or 0 for part in parts) == whole.window_ns


def test_bucket_times_equal_the_schedule() -> None:
    for scenario in _ddp_runs()[::5]:
        rows = scenario.lay_out().ranks
        spans = {
            (rank, place): span
            for rank, timeline in rows.items()
            for place, span in enumerate(s for s in timeline.device if isinstance(s.item, Collective))
        }
        hosts = {
            (rank, place): row.start_ns
            for rank, timeline in rows.items()
            for place, row in enumerate(r for r in timeline.host if r.name == "c10d::allreduce_")
        }
        numbers: dict[int, int] = defaultdict(int)
        for bucket in scenario.expected.buckets:
            key = (bucket.rank, numbers[bucket.rank])
            numbers[bucket.rank] += 1
            assert (spans[key].start_ns, spans[key].end_ns) == (bucket.started_ns, bucket.finished_ns)
            assert hosts[key] == bucket.operator_ns

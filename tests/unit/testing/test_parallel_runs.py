"""Chained groups, pipelines, slow hosts and sharded runs: answers worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rankscope.errors import UsageError
from rankscope.testing.expected import ExpectedStraggler
from rankscope.testing.program import Collective
from rankscope.testing.synth import (
    Scenario,
    fsdp_run,
    host_slow,
    pipeline_data_parallel,
    tensor_data_parallel,
)

MS = 1_000_000


def straggler_of(scenario: Scenario) -> ExpectedStraggler:
    assert scenario.expected.straggler is not None
    return scenario.expected.straggler


def test_lateness_blames_the_innocent_neighbour_of_a_slow_rank() -> None:
    run = tensor_data_parallel(slow={0: 10 * MS}, steps=1)
    assert run.expected.lateness_ns() == {0: 20 * MS, 1: 10 * MS}
    assert straggler_of(run).cost_by_rank_ns == {0: 10 * MS, 1: 0, 2: 0, 3: 0}


def test_chained_groups_by_hand() -> None:
    run = tensor_data_parallel(slow={0: 10 * MS}, steps=1)
    # layer 4, tensor transfer 0.3, tail 2, data transfer 2, optimizer 0.5 ms.
    # Rank 1 waits 10 ms for rank 0; ranks 2 and 3 wait 10 ms for ranks 0 and 1.
    communication = {rank: m.communication_ns for rank, m in run.expected.ranks.items()}
    assert communication == {0: 2_300_000, 1: 12_300_000, 2: 12_300_000, 3: 12_300_000}
    assert run.expected.ranks[0].compute_ns == 16_500_000
    assert run.expected.ranks[3].compute_ns == 6_500_000
    assert run.expected.step_duration_ns[0][2] == 105_000 + 18_800_000


def test_two_slow_ranks_of_a_tensor_group() -> None:
    straggler = straggler_of(tensor_data_parallel(slow={0: 10 * MS, 1: 8 * MS}))
    assert (straggler.scope, straggler.ranks, straggler.cost_ns_per_step) == ("tensor group", (0, 1), 10 * MS)
    assert straggler.cost_by_rank_ns == {0: 2 * MS, 1: 0, 2: 0, 3: 0}


def test_a_slow_stage_costs_its_time_for_every_microbatch() -> None:
    straggler = straggler_of(pipeline_data_parallel(slow={2: 500_000, 3: 500_000}, microbatches=4))
    assert (straggler.scope, straggler.ranks, straggler.cost_ns_per_step) == ("stage", (2, 3), 2 * MS)
    # One of its two ranks alone changes nothing: the other one still holds up its pipeline.
    assert set(straggler.cost_by_rank_ns.values()) == {0}


def test_a_slow_rank_makes_its_whole_pipeline_late() -> None:
    run = pipeline_data_parallel(slow={3: 500_000}, microbatches=4, steps=1)
    assert run.expected.lateness_ns() == {1: 2 * MS, 3: 2 * MS, 5: 2 * MS, 7: 2 * MS}
    assert straggler_of(run).cost_by_rank_ns == {r: 2 * MS if r == 3 else 0 for r in range(8)}


def test_a_pipeline_by_hand() -> None:
    run = pipeline_data_parallel(pp=2, dp=2, microbatches=2, steps=1)
    # Forward 1, backward 2, message 0.1 ms: last forward of stage 1 ends at A + 2 x 1 + 0.1 + 1 = A + 3.1,
    # backward of stage 0 at A + 3.1 + 2 x 2 + 0.1 + 2 = A + 9.2; gradients 2, norm 0.05, optimizer 0.5.
    assert run.expected.step_duration_ns[0][0] == 105_000 + 9_200_000 + 2_550_000
    assert run.expected.ranks[0].compute_ns == 2 * 3_000_000 + 500_000
    ends = {c.group: c.end_ns for c in run.expected.collectives}
    assert ends == {"1": 11_305_000, "2": 9_205_000, "0": 11_355_000}


def test_a_slow_host_hides_from_lateness() -> None:
    run = host_slow(ranks=16, ranks_per_host=2, slow_host=3, steps=2)
    straggler = straggler_of(run)
    assert (straggler.scope, straggler.ranks, straggler.cost_ns_per_step) == ("host", (6, 7), 60 * MS)
    assert straggler.cost_by_rank_ns == {r: 100_000 if r == 7 else 0 for r in range(16)}
    assert run.expected.lateness_ns(0) == {7: 100_000}
    assert run.expected.hosts[7] == "host3"


def test_a_slow_host_of_eight() -> None:
    straggler = straggler_of(host_slow(ranks_per_host=8, slow_host=0))
    assert straggler.ranks == tuple(range(8))
    assert straggler.cost_ns_per_step == 60 * MS


def test_a_sharded_step_by_hand() -> None:
    run = fsdp_run(layers=2, steps=1)
    # all-gather 0.6, forward 1, backward 2, reduce-scatter 0.8 ms; first event at 100 + 1 + 50 + 4 us.
    begin = 155_000
    spans = [(s.stream, s.start_ns - begin, s.end_ns - begin) for s in run.lay_out().ranks[0].device]
    assert spans == [
        ("all_gather", 0, 600_000),
        ("all_gather", 600_000, 1_200_000),
        ("compute", 600_000, 1_600_000),
        ("compute", 1_600_000, 2_600_000),
        ("all_gather", 2_600_000, 3_200_000),
        ("compute", 2_600_000, 4_600_000),
        ("reduce_scatter", 4_600_000, 5_400_000),
        ("compute", 4_600_000, 6_600_000),
        ("reduce_scatter", 6_600_000, 7_400_000),
        ("compute", 7_400_000, 7_900_000),
    ]
    measures = run.expected.ranks[3]
    assert measures.exposed_communication_ns == 600_000 + 800_000
    assert measures.overlap_ns == 600_000 + 600_000 + 800_000
    assert measures.window_ns == 7_900_000
    assert run.expected.operations == {"all_gather": 3, "reduce_scatter": 2}


def test_forward_too_short_to_hide_an_all_gather() -> None:
    measures = fsdp_run(layers=3, steps=1, gather_ns=1_400_000).expected.ranks[0]
    # Each of the two later all-gathers sticks out by 0.4 ms.
    assert measures.exposed_communication_ns == 1_400_000 + 2 * 400_000 + 800_000


REFUSED: list[tuple[Callable[[], Scenario], str]] = [
    (lambda: tensor_data_parallel(tp=1), "needs tp and dp of at least 2"),
    (lambda: tensor_data_parallel(slow={9: 1}), "has no such slow rank"),
    (lambda: tensor_data_parallel(layer_ns=10_000), "the device would wait"),
    (lambda: pipeline_data_parallel(slow={8: 1}), "has no such slow rank"),
    (lambda: pipeline_data_parallel(slow={1: -1}), "slow_ns must not be negative: -1"),
    (lambda: pipeline_data_parallel(message_ns=5_000_000), "needs messages shorter than compute"),
    (lambda: pipeline_data_parallel(forward_ns=120_000, message_ns=1), "which a microbatch costs the host"),
    (lambda: host_slow(slow_host=8), "choose a host that exists"),
    (lambda: host_slow(slow_ns=10, spread_ns=100), "a spread that leaves every delay positive"),
    (lambda: fsdp_run(layers=1), "needs at least two layers"),
    (lambda: fsdp_run(gather_ns=3_000_000), "needs transfers up to backward_ns"),
    (lambda: fsdp_run(elements=7), "needs elements that the ranks can share"),
    (lambda: fsdp_run(backend="gloo"), "needs a device backend"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_parameters_without_meaning_are_refused(make: Callable[[], Scenario], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_slow_ranks_of_two_stages_are_no_stage() -> None:
    straggler = straggler_of(pipeline_data_parallel(slow={2: 500_000, 5: 500_000}))
    assert (straggler.scope, straggler.ranks) == (None, (2, 5))


@pytest.mark.parametrize("backend", ["nccl", "rccl"])
def test_backends_change_no_answer(backend: Any) -> None:
    assert fsdp_run(backend=backend).expected == fsdp_run().expected
    items = [s.item for s in fsdp_run(backend=backend).lay_out().ranks[0].device]
    assert sum(isinstance(item, Collective) for item in items) == 3 * (7 + 4)

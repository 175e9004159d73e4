"""DDP scenarios: their answers against numbers worked by hand, and against the schedule."""

from __future__ import annotations

from typing import Any

import pytest

from rankscope.errors import UsageError
from rankscope.testing.expected import ExpectedBucket
from rankscope.testing.synth import ddp_run

# input 50 us, launch delay 5: A = 55. forward 1000, backward 400 and 300: gradients at 1455 and 1755.
# Bucket 1: 1455 + 500 = 1955. Bucket 2 waits for it: 1955 + 200 = 2155. Optimizer 100: 2255.
TINY: dict[str, Any] = {
    "buckets": (1_000, 2_000),
    "backward_ns": (400_000, 300_000),
    "transfer_ns": (500_000, 200_000),
    "forward_ns": 1_000_000,
    "optimizer_ns": 100_000,
    "input_ns": 50_000,
    "steps": 1,
}


def test_tiny_run() -> None:
    measures = ddp_run(**TINY).expected.ranks[0]
    assert measures.compute_ns == 1_800_000
    assert measures.communication_ns == 700_000
    assert measures.exposed_communication_ns == 2_155_000 - 1_755_000
    assert measures.overlap_ns == 300_000
    assert measures.overlap_ratio == pytest.approx(3 / 7)
    assert measures.window_ns == 2_255_000 - 55_000
    assert measures.idle_ns == 0


def test_the_gap_between_steps_is_idle() -> None:
    expected = ddp_run(**TINY | {"steps": 2}).expected
    assert expected.ranks[1].window_ns == 2 * 2_200_000 + 55_000
    assert expected.ranks[1].idle_ns == 55_000
    assert expected.step_duration_ns == {0: {0: 2_255_000, 1: 2_255_000}, 1: {0: 2_255_000, 1: 2_255_000}}


def test_a_slow_rank_by_hand() -> None:
    expected = ddp_run(**TINY, straggler=(1, 250_000, "compute")).expected
    # Rank 1 is ready at 1705 and 2005. Bucket 1 ends at 2205 everywhere, bucket 2 at 2405.
    fast, slow = expected.ranks[0], expected.ranks[1]
    assert (fast.communication_ns, fast.exposed_communication_ns) == (950_000, 650_000)
    assert (slow.communication_ns, slow.exposed_communication_ns) == (700_000, 400_000)
    assert (fast.compute_ns, slow.compute_ns) == (1_800_000, 2_050_000)
    first, second = expected.collectives
    assert first.arrivals_ns == {0: 1_455_000, 1: 1_705_000}
    assert (first.end_ns, first.last_rank, first.lateness_ns) == (2_205_000, 1, 250_000)
    assert (second.end_ns, second.last_rank, second.lateness_ns) == (2_405_000, None, 0)
    assert expected.lateness_ns() == {1: 250_000}
    straggler = expected.straggler
    assert straggler is not None
    assert (straggler.ranks, straggler.scope, straggler.cause) == ((1,), "rank", "compute")
    assert straggler.cost_by_rank_ns == {0: 0, 1: 250_000}


def test_buckets_by_hand() -> None:
    expected = ddp_run(**TINY).expected
    # Host: 50 input, 6 forward, 6 backward, 61 bucket 1, 6 backward: bucket 2 is called at 129 us.
    assert [b for b in expected.buckets if b.rank == 0] == [
        ExpectedBucket(
            step=0,
            rank=0,
            index=0,
            size_bytes=4_000,
            ready_ns=1_455_000,
            operator_ns=64_000,
            recorded_ns=65_000,
            launched_ns=115_000,
            started_ns=1_455_000,
            finished_ns=1_955_000,
            transfer_ns=500_000,
            exposed_ns=200_000,
        ),
        ExpectedBucket(
            step=0,
            rank=0,
            index=1,
            size_bytes=8_000,
            ready_ns=1_755_000,
            operator_ns=131_000,
            recorded_ns=132_000,
            launched_ns=182_000,
            started_ns=1_955_000,
            finished_ns=2_155_000,
            transfer_ns=200_000,
            exposed_ns=200_000,
        ),
    ]


def test_gloo_by_hand() -> None:
    measures = ddp_run(**TINY, backend="gloo").expected.ranks[0]
    # No launch delay; each AccumulateGrad row is 52 us of compute: collectives start at 1502 and, behind the
    # first, at 2002. Backward ends at 1854.
    assert measures.compute_ns == 1_904_000
    assert measures.communication_ns == 700_000
    assert measures.exposed_communication_ns == 2_202_000 - 1_854_000
    assert measures.window_ns == 2_302_000 - 50_000


def test_two_gloo_workers_by_hand() -> None:
    measures = ddp_run(**TINY, backend="gloo", workers=2).expected.ranks[0]
    # [1502, 2002] and [1854, 2054] share 148 us.
    assert measures.communication_ns == 552_000
    assert measures.communication_self_overlap_ns == 148_000
    assert measures.exposed_communication_ns == 200_000


def test_parameters_of_a_bucket_become_ready_one_by_one() -> None:
    run = ddp_run(**TINY | {"buckets": ([600, 400],), "transfer_ns": (500_000,)})
    (bucket,) = (b for b in run.expected.buckets if b.rank == 0)
    # Ready with its second gradient; the first AccumulateGrad row comes before the second backward kernel.
    assert (bucket.ready_ns, bucket.size_bytes) == (1_755_000, 4_000)
    assert bucket.operator_ns == 50_000 + 6_000 + 6_000 + 3_000 + 6_000 + 2_000
    assert run.expected.bucket_elements == {0: (1_000,)}


def test_the_first_step_can_have_one_bucket() -> None:
    expected = ddp_run(**TINY | {"steps": 2}, initial_transfer_ns=900_000).expected
    assert expected.bucket_elements == {0: (3_000,), 1: (1_000, 2_000)}
    assert expected.steps[0][0].exposed_communication_ns == 900_000
    assert expected.steps[0][0].overlap_ns == 0
    assert expected.operations == {"all_reduce": 3}


def test_jitter_delays_the_next_bucket_of_its_rank_only() -> None:
    expected = ddp_run(**TINY, end_jitter_ns={1: 7_000}).expected
    # Bucket 2 starts at 1955 and 1962, so it ends at 2162, and 7 us later on rank 1.
    assert expected.collectives[1].arrivals_ns == {0: 1_955_000, 1: 1_962_000}
    assert expected.ranks[0].exposed_communication_ns == 2_162_000 - 1_755_000
    assert expected.ranks[1].exposed_communication_ns == 2_169_000 - 1_755_000


@pytest.mark.parametrize(("overlap", "ratio"), [("full", 1.0), ("none", 0.0)])
def test_presets_hide_everything_or_nothing(overlap: Any, ratio: float) -> None:
    expected = ddp_run(overlap=overlap, buckets=(500_000, [10, 400_000], 700_000)).expected
    assert [m.overlap_ratio for by_rank in expected.steps.values() for m in by_rank.values()] == [ratio] * 6


def test_the_usual_preset_hides_a_part() -> None:
    ratio = ddp_run(overlap="partial").expected.ranks[0].overlap_ratio
    assert ratio is not None
    assert 0.1 < ratio < 0.9


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
@pytest.mark.parametrize("where", ["compute", "work", "host", "input"])
@pytest.mark.parametrize("overlap", ["full", "partial", "none"])
def test_a_late_rank_costs_what_it_is_late(backend: Any, where: Any, overlap: Any) -> None:
    run = ddp_run(ranks=3, backend=backend, overlap=overlap, straggler=(2, 3_000_000, where))
    straggler = run.expected.straggler
    assert straggler is not None
    assert straggler.cost_by_rank_ns == {0: 0, 1: 0, 2: 3_000_000}
    assert straggler.cause == where


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"backward_ns": (1, 2, 3, 4)}, "one backward_ns per parameter"),
        ({"transfer_ns": (1,)}, "one transfer_ns per bucket"),
        ({"backend": "gloo", "copy_ns": 5}, "no copies"),
        ({"straggler": (7, 1, "compute")}, "not in the run"),
        ({"straggler": (1, 1, "memory")}, "needs copy_ns"),
        ({"forward_ns": -1}, "must not be negative"),
        ({"backward_ns": (1_000, 1_000), "forward_ns": 10_000}, "the device would wait"),
        (
            {"forward_ns": 70_000, "backward_ns": (40_000, 25_000), "transfer_ns": (1, 1)},
            "would wait 4999 ns",
        ),
    ],
)
def test_parameters_without_meaning_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ddp_run(**TINY | parameters)


def test_what_the_collector_would_know() -> None:
    facts = ddp_run(**TINY | {"buckets": ([600, 400], [2_000]), "backward_ns": (1, 400_000, 300_000)}).ddp
    assert facts is not None
    assert [p.elements for p in facts.parameters] == [2_000, 400, 600]
    assert facts.ready_order == [2, 1, 0]
    assert [(b.size_bytes, b.parameters) for b in facts.buckets] == [(4_000, [2, 1]), (8_000, [0])]

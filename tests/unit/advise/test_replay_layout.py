"""A backward replayed with other buckets: numbers worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rankscope.advise.backward import Recorded, free_segments, segments, slowdown_of
from rankscope.advise.ddp import build_model, choose, drag_of, predict, usual_caps
from rankscope.advise.ddp_layout import Bucket, Gradient, caps_of, rebuilt_layout
from rankscope.advise.network import fit_network
from rankscope.advise.replay_layout import Beside, replay_layout

KB = 1000
FREE = Beside()


def wire(size_bytes: float) -> float:
    """A network without latency: 1 ns per byte."""
    return size_bytes


def recorded(
    *,
    ready: list[list[int]],
    cap: int,
    started: list[list[int]],
    finished: list[list[int]],
    host_ns: int = 0,
    start_delay_ns: int = 0,
    on_cpu: bool = True,
    after_ns: int = 0,
) -> Recorded:
    """A backward of equal gradients of 1 kB in ns, whose buckets hold `cap` bytes each."""
    gradients = tuple(Gradient(elements=250, dtype="float32", size_bytes=KB) for _ in ready[0])
    buckets = tuple(rebuilt_layout(gradients, (cap,)))
    return Recorded(
        step=3,
        gradients=gradients,
        ready_ns=np.array(ready, np.int64),
        issued_ns=np.array(ready, np.int64),
        computed_ns=np.array([row[-1] for row in ready], np.int64) + after_ns,
        copied_ns=np.zeros(len(ready), np.int64),
        buckets=buckets,
        sent_bytes=np.array([b.size_bytes for b in buckets], np.int64),
        started_ns=np.array(started, np.int64),
        finished_ns=np.array(finished, np.int64),
        host_ns=host_ns,
        start_delay_ns=start_delay_ns,
        on_cpu=on_cpu,
    )


def four_gradients(*, host_ns: int = 0) -> Recorded:
    """Two ranks, gradients ready every 1000 ns; rank 1 begins 500 ns later. One bucket with all, 4 us long."""
    return recorded(
        ready=[[1000, 2000, 3000, 4000], [1500, 2500, 3500, 4500]],
        cap=4 * KB,
        started=[[4000], [4500]],
        finished=[[8500], [8500]],
        host_ns=host_ns,
    )


def test_one_bucket_starts_when_the_last_rank_has_all() -> None:
    """Ready at 4000 and 4500, so it runs 4500..8500; from the first gradient's moment, 1000, that is 7500.

    Exposed after compute: rank 0 from 4000 on 4500, rank 1 from 4500 on 4000; mean 4250. All of it is exposed.
    """
    run = four_gradients()
    found = replay_layout(run, run.buckets, wire, FREE)
    assert found.end_ns == 7500
    assert (found.exposed_ns, found.communication_ns) == (4250, 4250)


def test_four_buckets_queue_on_one_stream() -> None:
    """Each takes 1000. Bucket k is ready on rank 1 at 1500 + 1000 k: 1500..2500, 2500..3500, 3500..4500, 4500..5500.

    End 5500 - 1000 = 4500. Communication on rank 0: from 1000, then from the end of the one before: 1500 + 3 x 1000 =
    4500; on rank 1: 4 x 1000; mean 4250. Exposed: rank 0 computes to 4000: 1500; rank 1 to 4500: 1000; mean 1250.
    """
    run = four_gradients()
    found = replay_layout(run, rebuilt_layout(run.gradients, (KB,)), wire, FREE)
    assert found.end_ns == 4500
    assert found.communication_ns == 4250
    assert found.exposed_ns == 1250


def test_slow_transfers_pile_up() -> None:
    """Each takes 3000: 1500..4500, ..7500, ..10500, ..13500; with a start delay of 100 all of it is 100 later."""
    run = four_gradients()
    layout = rebuilt_layout(run.gradients, (KB,))
    assert replay_layout(run, layout, lambda size: 3 * size, FREE).end_ns == 12_500
    later = replace(run, start_delay_ns=100)
    assert replay_layout(later, layout, lambda size: 3 * size, FREE).end_ns == 12_600


def test_asking_for_a_bucket_costs_host_time_on_the_cpu() -> None:
    """100 ns per request: bucket k is asked for 100 k later (the one recorded request lies after all gradients).

    Rank 1: 1500, 2600, 3700, 4800; transfers of 1000: ..2500, 2600..3600, 3700..4700, 4800..5800; 5800 - 1000 = 4800.
    """
    run = four_gradients(host_ns=100)
    layout = rebuilt_layout(run.gradients, (KB,))
    assert replay_layout(run, layout, wire, FREE).end_ns == 4800


def test_compute_is_slower_beside_a_transfer() -> None:
    """Twice as slow. Rank 1's first bucket runs 1500..2500: 500 of its next 1000 are done by then, the rest takes 500.

    So ready at 3000, 3000..4000; again 500 + 500: ready 4500, 4500..5500; ready 6000, 6000..7000. Rank 0 is ahead:
    500 before the first transfer. End 7000 - 1000 = 6000.
    """
    run = four_gradients()
    layout = rebuilt_layout(run.gradients, (KB,))
    assert replay_layout(run, layout, wire, Beside(slowdown=2.0)).end_ns == 6000


def test_a_transfer_is_slower_beside_compute() -> None:
    """Bucket of all: compute has ended, 4500..8500 as before. Two buckets of 2 kB (2000 ns alone, drag 2):

    the first is ready on rank 1 at 2500 and compute lasts to 4500: 2000 / 2 = 1000 are done by then, 1000 are left:
    ends 5500; the second 5500..7500. End 7500 - 1000 = 6500.
    """
    run = four_gradients()
    beside = Beside(drag=2.0)
    assert replay_layout(run, run.buckets, wire, beside).end_ns == 7500
    two = rebuilt_layout(run.gradients, (2 * KB,))
    assert replay_layout(run, two, wire, beside).end_ns == 6500


def test_compression_sends_half() -> None:
    run = four_gradients()
    found = replay_layout(run, run.buckets, wire, FREE, sent_ratio=0.5)
    assert found.end_ns == 5500  # 4500 + 2000 - 1000


def test_what_was_recorded_beside_a_transfer_is_taken_out() -> None:
    """One rank; gradients at 0, 1000, 3000, 5000; bucket 0 transferred 1000..3000.

    Segments 1000, 2000, 2000, of which 0, 2000, 0 beside it; at a slowdown of 2 the second took 1000 by itself.
    """
    run = recorded(ready=[[0, 1000, 3000, 5000]], cap=2 * KB, started=[[1000, 5000]], finished=[[3000, 7000]])
    duration, beside = segments(run)
    assert duration.tolist() == [[1000, 2000, 2000, 0]]
    assert beside.tolist() == [[0, 2000, 0, 0]]
    assert free_segments(run, 2.0).tolist() == [[1000, 1000, 2000, 0]]


def test_compute_after_the_last_gradient_hides_the_last_bucket() -> None:
    """3000 more on either rank: compute ends at 7000 and 7500, the bucket at 8500: exposed 1500 and 1000."""
    run = replace(four_gradients(), computed_ns=np.array([7000, 7500], np.int64))
    found = replay_layout(run, run.buckets, wire, FREE)
    assert (found.end_ns, found.exposed_ns) == (7500, 1250)
    four = replay_layout(run, rebuilt_layout(run.gradients, (KB,)), wire, FREE)
    assert (four.end_ns, four.exposed_ns) == (6500, 0)  # 7500 - 1000: compute ends last


def slowed(times: int) -> list[Recorded]:
    """Gradients of one size: 1000 ns each without, 1500 beside the transfer."""
    run = recorded(
        ready=[[0, 1000, 2000, 3500, 5000, 6500]],
        cap=3 * KB,
        started=[[2000, 6500]],
        finished=[[6500, 9000]],
    )
    return [run] * times


def test_slowdown_is_the_ratio_of_equal_segments() -> None:
    assert slowdown_of(slowed(3)) == (1.5, True)


def test_a_hiccup_is_not_what_is_typical() -> None:
    """Four segments of 1500 and one of 90,000 beside the transfer, 1000 each without: one at either end is left out.

    Of segments that differ the mean counts: 1000, 1500, 1500, 3000, 90,000 without the ends is 2000.
    """
    ready = [0, *np.cumsum([1000] * 3 + [1500] * 4 + [90_000]).tolist()]
    uneven = [0, *np.cumsum([1000] * 3 + [1000, 1500, 1500, 3000, 90_000]).tolist()]
    for times, slowdown in ((ready, 1.5), (uneven, 2.0)):
        run = recorded(
            ready=[times], cap=5 * KB, started=[[3000, times[-1]]], finished=[[times[-1], times[-1] + 9]]
        )
        assert slowdown_of([run]) == (slowdown, True)


def beside_throughout(lengths: Sequence[int]) -> Recorded:
    """Equal gradients, all of whose compute is beside one transfer; the segments have these lengths."""
    ready = [0, *np.cumsum(lengths).tolist()]
    buckets = len(ready) // 3
    return recorded(
        ready=[ready],
        cap=3 * KB,
        started=[[0] * buckets],
        finished=[[ready[-1] + 1000 + b for b in range(buckets)]],
    )


@pytest.mark.parametrize(
    ("lengths", "slowdown"),
    [
        ([1000, 1500, 1500, 1000, 1500, 1500, 1000, 1500], (1.5, True)),  # a tenth of the way up: 1000
        ([1000, 1050, 1050, 1000, 1050, 1050, 1000, 1050], (1.0, False)),  # less than a tenth
        ([1000, 1500, 1500, 1000, 1500], (1.0, False)),  # too few to tell
    ],
)
def test_without_pairs_it_is_how_unevenly_equal_segments_are_slowed(
    lengths: list[int], slowdown: tuple[float, bool]
) -> None:
    assert slowdown_of([beside_throughout(lengths)]) == slowdown


def test_slowdown_is_unknown_without_pairs() -> None:
    assert slowdown_of(slowed(1)) == (1.0, False)
    assert slowdown_of([]) == (1.0, False)


def test_drag_is_what_the_calibration_does_not_explain() -> None:
    """Compute ends at 5000; transfers 1000..5000 and 5000..7000, alone 2000 each: the first took twice as long."""
    run = recorded(ready=[[0, 1000, 3000, 5000]], cap=2 * KB, started=[[1000, 5000]], finished=[[5000, 7000]])
    network = fit_network([(KB, 1000.0), (4 * KB, 4000.0)], ranks=2, source="calibration")
    assert network is not None
    assert drag_of([run], network) == (2.0, True)


def test_prediction_adds_the_change_to_the_measured_step() -> None:
    """One bucket ends at 7500, four at 4500 (above): 3000 less than the measured step of 20,000."""
    run = four_gradients()
    network = fit_network([(KB, 1000.0), (4 * KB, 4000.0)], ranks=2, source="run")
    assert network is not None
    model = build_model([run], 20_000, network)
    assert model.replay_error == pytest.approx(0, abs=1e-9)

    def rule(caps: Sequence[int]) -> list[Bucket]:
        return rebuilt_layout(run.gradients, caps)

    same = predict(model, rule, (4 * KB,))
    assert (same.step_ns, same.step_low_ns, same.step_high_ns) == (20_000, 20_000, 20_000)
    four = predict(model, rule, (KB,))
    assert (four.step_ns, four.buckets, four.exposed_ns) == (17_000, 4, 1250)
    assert four.step_low_ns <= 17_000 < four.step_high_ns
    assert four.overlap_ratio == pytest.approx(1 - 1250 / 4250)


def test_caps_to_try() -> None:
    assert usual_caps(100 << 20, None)[-1] == 100
    assert 7.5 in usual_caps(100 << 20, 7.5)
    assert caps_of(0.25) == (262_144,)


def test_choice_is_near_what_is_in_use() -> None:
    """Within 1 % of the least, 1005 and 1000: the nearer one to the cap in use; else the least."""
    run = four_gradients()
    network = fit_network([(KB, 1000.0), (4 * KB, 4000.0)], ranks=2, source="run")
    assert network is not None
    some = predict(
        build_model([run], 20_000, network), lambda caps: rebuilt_layout(run.gradients, caps), (KB,)
    )
    steps = {1.0: 1005, 5.0: 1000, 25.0: 1100}
    predictions = [(cap, replace(some, step_ns=ns)) for cap, ns in steps.items()]
    assert choose(predictions, 0.5) == 1.0
    assert choose(predictions, 25.0) == 5.0


def test_a_backward_without_any_length_is_no_fault() -> None:
    """All gradients at one moment and transfers that take no time, as in a broken trace."""
    run = recorded(ready=[[5, 5], [5, 5]], cap=KB, started=[[5, 5], [5, 5]], finished=[[5, 5], [5, 5]])
    network = fit_network([(KB, 1e-9), (4 * KB, 1e-9)], ranks=2, source="run")
    assert network is not None
    model = build_model([run], 100, network)
    assert predict(model, lambda caps: rebuilt_layout(run.gradients, caps), (KB,)).step_ns == 100

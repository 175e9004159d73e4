"""The synchronisation graph and its replay, on runs small enough to work out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.correlate.device_events import device_events
from rankscope.correlate.own_work import change_to_peers, excess_of, measure_own_work, middle
from rankscope.correlate.replay import replay
from rankscope.pipeline.together import Together, put_together
from rankscope.pipeline.window_results import analyze_window
from support.reading import run_of
from support.trace_text import Row, collective, kernel, launch, nccl

US = 1_000


def together_of(events_of_rank: Mapping[int, Sequence[Row]]) -> Together:
    run = run_of(events_of_rank)
    return put_together(run, [analyze_window(e, run.world_size) for e in device_events(run)], [])


def all_reduce(ts: int, dur: int, seq: int, stream: int = 20) -> Row:
    return nccl(ts, dur, stream=stream, args=collective("allreduce", 8, 8, seq=seq))


# Rank 0 works 10 and 10 us, rank 1 works 30 and 20 us; both all-reduces take 10 us from the last arrival.
PAIR = {
    0: [kernel("a", 0, 10), all_reduce(10, 30, 1), kernel("b", 40, 10), all_reduce(50, 20, 2)],
    1: [kernel("a", 0, 30), all_reduce(30, 10, 1), kernel("b", 40, 20), all_reduce(60, 10, 2)],
}


def test_transfers_and_ends() -> None:
    graph = together_of(PAIR).graph
    assert graph.transfer_ns.tolist() == [10 * US, 10 * US]
    assert np.diff(graph.end_ns).tolist() == [30 * US]
    assert graph.level.tolist() == [0, 1]


def test_own_work_stands_still_while_a_rank_is_blocked() -> None:
    together = together_of(PAIR)
    component = {rank: clock.reference for rank, clock in together.clocks.of_rank.items()}
    work = measure_own_work(together.graph, together.comms, component)
    # Up to the first arrival nothing can be compared: recording began somewhere.
    assert {node.rank: node.work.tolist() for node in work.nodes} == {0: [0, 10 * US], 1: [0, 20 * US]}
    assert work.roles == ((0, 1),)
    assert excess_of(work) == {0: 0, 1: 10 * US}


def test_a_replay_with_nothing_changed_gives_the_measured_ends() -> None:
    graph = together_of(PAIR).graph
    assert replay(graph).tolist() == graph.end_ns.tolist()


def test_a_rank_that_works_like_its_peer_ends_everything_sooner() -> None:
    """Rank 1's second part falls from 20 to 10 us: both arrive at 50, the transfer ends at 60 instead of 70."""
    together = together_of(PAIR)
    component = {rank: clock.reference for rank, clock in together.clocks.of_rank.items()}
    work = measure_own_work(together.graph, together.comms, component)
    at_arrival, at_block = change_to_peers(together.graph, work, [1])
    ends = replay(together.graph, work_change=at_arrival, block_change=at_block)
    assert (together.graph.end_ns - ends).tolist() == [0, 10 * US]
    # Rank 0 works no longer than its peer: nothing of it can be cut. Both ways at once, as two variants:
    nothing = change_to_peers(together.graph, work, [0])
    two = replay(
        together.graph,
        work_change=np.stack([at_arrival, np.minimum(nothing[0], 0)], axis=1),
        block_change=np.stack([at_block, np.minimum(nothing[1], 0)], axis=1),
    )
    assert (together.graph.end_ns - two[:, 0]).tolist() == [0, 10 * US]
    assert (together.graph.end_ns - two[:, 1]).tolist() == [0, 0]


def test_other_transfers() -> None:
    """With 5 us each: 35, then rank 1 arrives at 55 and it ends at 60: 10 us sooner than 70."""
    graph = together_of(PAIR).graph
    assert (graph.end_ns - replay(graph, transfer_ns=np.array([5 * US, 5 * US]))).tolist() == [
        5 * US,
        10 * US,
    ]


def test_a_transfer_hidden_behind_compute_blocks_nobody() -> None:
    """Compute goes on beyond the end of the collective: what follows did not wait for it."""
    hidden = [kernel("a", 0, 100), all_reduce(10, 30, 1), all_reduce(100, 10, 2)]
    together = together_of({0: hidden, 1: hidden})
    blocks = together.graph.block_work
    assert ((blocks == -1) == (together.graph.sync == 0)).all()


def test_of_two_waits_at_once_the_last_one_holds_up_the_rank() -> None:
    """Two all-reduces of two groups run side by side; compute starts with the end of the longer one."""
    rows = [
        kernel("a", 0, 10),
        all_reduce(10, 5, 1),
        nccl(10, 22, stream=24, args=collective("allreduce", 16, 16, seq=2)),
        kernel("b", 32, 8),
        all_reduce(40, 5, 3),
    ]
    together = together_of({0: rows, 1: rows})
    graph = together.graph
    never = {int(s) for s in graph.sync[graph.block_work == -1]}
    assert never == {0}
    assert replay(graph).tolist() == graph.end_ns.tolist()


def test_a_collective_queues_behind_the_one_before_on_its_stream() -> None:
    """Launched together: the second starts when the first ends, and had it been shorter, sooner."""
    rows = [
        launch(1, 0),
        launch(2, 2),
        nccl(5, 20, correlation=1, args=collective("allreduce", 8, 8, seq=1)),
        nccl(25, 10, correlation=2, args=collective("allreduce", 8, 8, seq=2)),
    ]
    graph = together_of({0: rows, 1: rows}).graph
    assert ((graph.queued_behind != -1) == (graph.sync == 1)).all()
    sooner = replay(graph, transfer_ns=np.array([12 * US, 10 * US]))
    assert (graph.end_ns - sooner).tolist() == [8 * US, 8 * US]


def test_work_is_compared_across_a_collective_that_a_rank_lost() -> None:
    """Three collectives, of which rank 2 lost the one in the middle, where it waited 14 us like rank 0.

    From its end (44) on every rank works 10 us: rank 2 does not seem to have worked while it waited.
    """
    first, last = [kernel("a", 0, 10), all_reduce(10, 10, 1)], [kernel("c", 44, 10), all_reduce(54, 10, 3)]
    early, late = [kernel("b", 20, 10), all_reduce(30, 14, 2)], [kernel("b", 20, 14), all_reduce(34, 10, 2)]
    lost = [kernel("b", 20, 10)]
    together = together_of({0: [*first, *early, *last], 1: [*first, *late, *last], 2: [*first, *lost, *last]})
    component = dict.fromkeys(range(3), 0)
    work = measure_own_work(together.graph, together.comms, component)
    assert len(work.roles) == 1
    assert [node.work.tolist() for node in work.nodes] == [[0, 10 * US]] * 3
    assert all(node.is_cut.tolist() == [False, True] for node in work.nodes)
    assert excess_of(work) == {0: 0, 1: 0, 2: 0}


def test_the_middle_of_two_is_the_smaller() -> None:
    assert middle(np.array([[1, 9], [3, 5], [2, 6]])).tolist() == [2, 6]
    assert middle(np.array([[1, 9], [3, 5]])).tolist() == [1, 5]


def chain(works: Sequence[int], waits_ns: Sequence[int], transfer: int) -> list[Row]:
    rows: list[Row] = []
    now = 0
    for seq, (work, wait) in enumerate(zip(works, waits_ns, strict=True)):
        rows += [kernel("k", now, work), all_reduce(now + work, wait + transfer, seq)]
        now += work + wait + transfer
    return rows


work_of_ranks = st.integers(2, 4).flatmap(
    lambda ranks: st.lists(
        st.lists(st.integers(1, 500), min_size=ranks, max_size=ranks), min_size=2, max_size=10
    )
)


@settings(max_examples=30, deadline=None)
@given(works=work_of_ranks, transfer=st.integers(1, 50))
def test_laws_of_costs(works: list[list[int]], transfer: int) -> None:
    """Unchanged: the makespan. Any set made like its peers: never less than its transfers, never longer if only cut."""
    ranks = len(works[0])
    waits = [[max(row) - own for own in row] for row in works]
    together = together_of(
        {r: chain([row[r] for row in works], [row[r] for row in waits], transfer) for r in range(ranks)}
    )
    graph = together.graph
    assert replay(graph).tolist() == graph.end_ns.tolist()
    component = dict.fromkeys(range(ranks), 0)
    work = measure_own_work(graph, together.comms, component)
    least = len(works) * transfer * US
    for rank in range(ranks):
        at_arrival, at_block = change_to_peers(graph, work, [rank])
        ends = replay(graph, work_change=at_arrival, block_change=at_block)
        assert ends[-1] - (graph.end_ns[0] - graph.transfer_ns[0]) >= least - transfer * US
    for cost in together.straggler.costs:
        assert (cost.per_step_ns >= 0).all()
        assert (cost.per_step_ns <= cost.step_ns).all()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_the_order_of_ranks_changes_nothing(order: tuple[int, ...]) -> None:
    works = {0: [10, 40, 10], 1: [30, 10, 10], 2: [20, 20, 20]}
    rows = {}
    for rank in order:
        waits = [max(w[i] for w in works.values()) - works[rank][i] for i in range(3)]
        rows[rank] = chain(works[rank], waits, 5)
    together = together_of(rows)
    assert together.matching.collective.tolist() == [0, 1, 2] * 3
    # 30 + 5, then 40 + 5, then 20 + 5.
    assert np.diff(together.graph.end_ns).tolist() == [45 * US, 25 * US]
    assert {c.candidate.ranks: c.typical_ns for c in together.straggler.costs if c.typical_ns} == {
        (0,): 20 * US,
        (2,): 10 * US,
    }

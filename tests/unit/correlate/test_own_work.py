"""Own work of ranks that run one program, whatever the order in which their streams arrive."""

from __future__ import annotations

import numpy as np

from rankscope.correlate.own_work import Node, OwnWork, excess_of, middle


def node(rank: int, arrivals: list[int], call: list[int]) -> Node:
    arrival = np.array(arrivals)
    size = len(arrival)
    return Node(
        number=rank,
        rank=rank,
        window=0,
        event=np.arange(size),
        arrival=arrival,
        begin=np.concatenate([arrival[:1], arrival[:-1]]),
        is_cut=np.zeros(size, bool),
        step=np.zeros(size, np.int64),
        call=np.array(call),
        all_events=np.arange(size),
    )


# The host asks for a, x, y. On the second rank y, on a stream of its own, arrives before x.
FIRST = node(0, [0, 10, 20], [0, 1, 2])
SECOND = node(1, [0, 5, 25], [0, 2, 1])


def test_work_up_to_the_same_events() -> None:
    assert FIRST.work_in_order_of(FIRST)[0].tolist() == [0, 10, 10]
    # x at 25, y at 5: seen in the order of the first rank, y comes 20 before x.
    assert SECOND.work_in_order_of(FIRST)[0].tolist() == [0, 25, -20]
    # y at 20, x at 10, in the order of the second.
    assert FIRST.work_in_order_of(SECOND)[0].tolist() == [0, 20, -10]


def test_excess_adds_up_to_the_last_event_that_was_asked_for() -> None:
    """Against the least of two: up to x 15 more on the second rank, then to y 30 more on the first."""
    work = OwnWork(nodes=(FIRST, SECOND), roles=((0, 1),))
    assert excess_of(work) == {0: 30, 1: 15}


def test_the_middle_of_any_number_of_columns() -> None:
    """Column c holds c, 3c and 5c, in an order that differs by column: the middle is 3c; of c and 5c the smaller."""
    columns = [np.roll([c, 3 * c, 5 * c], c) for c in range(150)]
    rows = np.stack(columns, axis=1)
    assert middle(rows).tolist() == [3 * c for c in range(150)]
    assert middle(np.array([[1, 9], [3, 5]])).tolist() == [1, 5]
    assert middle(rows[:, :0]).tolist() == []

"""Sets of ranks that may be slow together."""

from __future__ import annotations

import numpy as np

from rankscope.correlate.candidates import find_candidates
from rankscope.correlate.own_work import Node, OwnWork
from support.communications import Event, comms_of


def node(rank: int, *work: int) -> Node:
    arrival = np.cumsum([0, *work])
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
        call=np.arange(size),
        all_events=np.arange(size),
    )


def work_of(*totals: int, roles: tuple[tuple[int, ...], ...] | None = None) -> OwnWork:
    return OwnWork(
        nodes=tuple(node(rank, total) for rank, total in enumerate(totals)),
        roles=roles or (tuple(range(len(totals))),),
    )


WORLD = comms_of({rank: [Event(start=0, end=1)] for rank in range(8)})


def sets(
    work: OwnWork, hosts: dict[int, str] | None = None, comms: object = WORLD
) -> dict[tuple[int, ...], str]:
    found = find_candidates(work, comms, hosts or {})  # type: ignore[arg-type]
    return {c.ranks: c.scope for c in found}


def test_single_ranks_come_first_and_the_whole_world_is_no_set() -> None:
    found = find_candidates(work_of(*[10] * 8), WORLD, {})
    assert [c.ranks for c in found] == [(rank,) for rank in range(8)]


def test_hosts_with_several_ranks() -> None:
    hosts = {rank: f"node{rank // 4}" for rank in range(8)}
    found = sets(work_of(*[10] * 8), hosts)
    assert found[0, 1, 2, 3] == found[4, 5, 6, 7] == "host"


def test_two_ranks_that_work_long_hide_each_other_and_are_tried_together() -> None:
    assert sets(work_of(10, 30, 10, 10, 31, 10, 10, 10))[1, 4] == "ranks"


def test_half_of_all_ranks_are_no_exception() -> None:
    assert not [r for r, scope in sets(work_of(30, 30, 30, 30, 10, 10, 10, 10)).items() if scope == "ranks"]


def test_groups_of_some_ranks() -> None:
    comms = comms_of({r: [Event(start=0, end=1, group=(r // 2 * 2, r // 2 * 2 + 1))] for r in range(4)})
    found = sets(work_of(10, 10, 10, 10), comms=comms)
    assert {r for r, scope in found.items() if scope == "group"} == {(0, 1), (2, 3)}


def message(op: str, peer: int) -> Event:
    return Event(start=0, end=1, op=op, peer=peer, group=tuple(range(6)))


def test_stages_are_the_places_along_the_chains_of_messages() -> None:
    """Two pipelines of three stages, 0 -> 2 -> 4 and 1 -> 3 -> 5; the middle stage runs a program of its own."""
    comms = comms_of(
        {
            0: [message("send", 2)],
            1: [message("send", 3)],
            2: [message("recv", 0), message("send", 4)],
            3: [message("recv", 1), message("send", 5)],
            4: [message("recv", 2)],
            5: [message("recv", 3)],
        }
    )
    found = sets(work_of(*[10] * 6, roles=((0, 1), (2, 3), (4, 5))), comms=comms)
    assert {r for r, scope in found.items() if scope == "stage"} == {(0, 1), (2, 3), (4, 5)}


def test_equal_programs_that_send_round_a_ring_are_no_stages() -> None:
    ring = comms_of({r: [message("send", (r + 1) % 6), message("recv", (r - 1) % 6)] for r in range(6)})
    assert "stage" not in sets(work_of(*[10] * 6), comms=ring).values()


def test_of_many_ranks_those_that_work_longest_are_tried() -> None:
    work = work_of(*[10] * 40, 99, *[10] * 9)
    comms = comms_of({rank: [Event(start=0, end=1)] for rank in range(50)})
    found = find_candidates(work, comms, {})
    assert (40,) in {c.ranks for c in found}
    assert len(found) <= 16 + 24

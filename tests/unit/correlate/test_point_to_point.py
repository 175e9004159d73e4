"""Sends with their receives, apart from collectives."""

from __future__ import annotations

from rankscope.correlate.point_to_point import Pairs, pair_point_to_point
from rankscope.correlate.run_communications import RunCommunications
from support.communications import Event, comms_of


def pairs_of(comms: RunCommunications, pairs: Pairs) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """((rank, start) of the send, (rank, start) of the receive)."""

    def place(event: int) -> tuple[int, int]:
        return int(comms.rank[event]), int(comms.start_ns[event])

    return [(place(s), place(r)) for s, r in zip(pairs.send.tolist(), pairs.recv.tolist(), strict=True)]


def send(start: int, peer: int, step: int = -1) -> Event:
    return Event(start=start, end=start + 5, op="send", peer=peer, step=step)


def recv(start: int, peer: int, step: int = -1) -> Event:
    return Event(start=start, end=start + 5, op="recv", peer=peer, step=step)


def test_nothing() -> None:
    pairs = pair_point_to_point(comms_of({0: [Event(start=0, end=1)], 1: [Event(start=0, end=1)]}))
    assert (len(pairs), pairs.unpaired.tolist()) == (0, [])


def test_the_nth_send_meets_the_nth_receive_of_its_channel() -> None:
    """0 -> 1 twice, 1 -> 0 once in between: another channel."""
    comms = comms_of({0: [send(0, 1), recv(10, 1), send(20, 1)], 1: [recv(2, 0), send(12, 0), recv(22, 0)]})
    assert pairs_of(comms, pair_point_to_point(comms)) == [
        ((0, 0), (1, 2)),
        ((1, 12), (0, 10)),
        ((0, 20), (1, 22)),
    ]


def test_where_one_end_was_not_recorded_steps_decide() -> None:
    """Rank 1's window begins with step 2: its first receive is not the first one sent."""
    comms = comms_of(
        {
            0: [send(0, 1, step=1), send(10, 1, step=2), send(20, 1, step=3)],
            1: [recv(12, 0, step=2), recv(22, 0, step=3)],
        }
    )
    pairs = pair_point_to_point(comms)
    assert pairs_of(comms, pairs) == [((0, 10), (1, 12)), ((0, 20), (1, 22))]
    assert comms.start_ns[pairs.unpaired].tolist() == [0]


def test_unequal_numbers_without_steps_pair_nothing() -> None:
    comms = comms_of({0: [send(0, 1), send(10, 1)], 1: [recv(12, 0)]})
    pairs = pair_point_to_point(comms)
    assert (len(pairs), len(pairs.unpaired)) == (0, 3)


def test_a_peer_that_nobody_knows_pairs_with_nobody() -> None:
    comms = comms_of({0: [send(0, -1)], 1: [recv(2, -1)]})
    assert len(pair_point_to_point(comms).unpaired) == 2

"""Sends paired with their receives, apart from collectives."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rankscope.correlate.run_communications import NO_PEER, RunCommunications
from rankscope.model.intervals import Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Sends and their receives, as indices into the `RunCommunications`.

    Attributes:
        send, recv: int64[p], sorted by the send's start.
        unpaired: int64[u], ends whose other end is not in the traces.
    """

    send: Int64
    recv: Int64
    unpaired: Int64

    def __len__(self) -> int:
        return len(self.send)


def pair_point_to_point(comms: RunCommunications) -> Pairs:
    """The n-th send from a to b in a group belongs to the n-th receive of b from a.

    Where the numbers of the two differ (the windows begin or end at other places), steps are paired one by one,
    those that both ranks recorded and that hold equally many.
    """
    event = np.flatnonzero(comms.is_point_to_point)
    is_send = comms.is_op(("send",))[event]
    source = np.where(is_send, comms.rank[event], comms.peer[event])
    target = np.where(is_send, comms.peer[event], comms.rank[event])
    known = comms.peer[event] != NO_PEER
    keys = np.stack([comms.group[event], source, target], axis=1)
    sends: list[Int64] = []
    recvs: list[Int64] = []
    if known.any():
        _, channel = np.unique(keys[known], axis=0, return_inverse=True)
        channel = channel.reshape(-1)
        order = np.argsort(channel, kind="stable")  # the events are in order of start within a rank
        starts = np.searchsorted(channel[order], np.arange(int(channel.max()) + 2))
        for first, after in pairwise(starts.tolist()):
            mine = order[first:after]
            a, b = event[known][mine[is_send[known][mine]]], event[known][mine[~is_send[known][mine]]]
            paired_sends, paired_recvs = _pair_channel(comms, a, b)
            sends.append(paired_sends)
            recvs.append(paired_recvs)
    send = np.concatenate(sends) if sends else np.empty(0, np.int64)
    recv = np.concatenate(recvs) if recvs else np.empty(0, np.int64)
    by_time = np.argsort(comms.start_ns[send], kind="stable")
    unpaired = np.setdiff1d(event, np.concatenate([send, recv]))
    return Pairs(send=send[by_time], recv=recv[by_time], unpaired=unpaired)


def _pair_channel(comms: RunCommunications, sends: Int64, recvs: Int64) -> tuple[Int64, Int64]:
    if len(sends) == len(recvs):
        return sends, recvs
    steps = np.intersect1d(comms.step[sends], comms.step[recvs])
    chosen_sends, chosen_recvs = [], []
    for step in steps[steps >= 0]:
        a, b = sends[comms.step[sends] == step], recvs[comms.step[recvs] == step]
        if len(a) == len(b):
            chosen_sends.append(a)
            chosen_recvs.append(b)
    empty = np.empty(0, np.int64)
    return (
        np.concatenate(chosen_sends) if chosen_sends else empty,
        np.concatenate(chosen_recvs) if chosen_recvs else empty,
    )

"""Exposed communication split into waiting for others and transfer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankscope.correlate.communications import Communications
from rankscope.model.intervals import Int64, covered_ns, merge, subtract, union


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitSplit:
    """Exposed communication of one window on one device.

    Attributes:
        exposed_wait_ns: time in which only waiting for other ranks went on.
        exposed_transfer_ns: the rest: some transfer went on, or it is not known which.
    """

    exposed_wait_ns: int
    exposed_transfer_ns: int


def split_exposed(communications: Communications, wait_ns: Int64) -> WaitSplit:
    """Exposed wait and exposed transfer, which add up to the exposed communication.

    Args:
        communications: one window on one device.
        wait_ns: int64[k], how long each event waited from its start on; 0 where that is not known.
    """
    table, rows = communications.events.table, communications.rows
    start, end = table.start_ns[rows], table.ends_of(rows)
    compute_rows = communications.events.compute
    compute = table.times_of(compute_rows)
    transfers = union(np.minimum(start + wait_ns, end), end)
    exposed = subtract(merge(union(start, end)), compute)
    transfer_ns = exposed.length_ns - subtract(exposed, transfers).length_ns
    return WaitSplit(exposed_wait_ns=exposed.length_ns - transfer_ns, exposed_transfer_ns=transfer_ns)


def hidden_ns(communications: Communications) -> Int64:
    """Nanoseconds of each event beside which compute ran, int64[k]."""
    table, rows = communications.events.table, communications.rows
    compute_rows = communications.events.compute
    compute = table.times_of(compute_rows)
    return covered_ns(table.start_ns[rows], table.ends_of(rows), compute)

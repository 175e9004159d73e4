"""Exposed communication is exposed wait and exposed transfer, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rankscope.analyses.wait_split import WaitSplit, hidden_ns, split_exposed
from rankscope.correlate.communications import Communications, resolve_communications
from support.reading import events_of
from support.trace_text import Row, job, kernel, nccl

US = 1_000


def communications(*rows: Row) -> Communications:
    return resolve_communications(events_of(rows, **job(0, 1)), 1)


def split(rows: list[Row], waits_us: list[int]) -> tuple[int, int]:
    parts: WaitSplit = split_exposed(communications(*rows), np.array(waits_us, np.int64) * US)
    return parts.exposed_wait_ns // US, parts.exposed_transfer_ns // US


def test_no_communication() -> None:
    assert split([kernel("a", 0, 10)], []) == (0, 0)


@pytest.mark.parametrize(
    ("compute", "wait", "expected"),
    [
        # A collective from 10 to 40.
        ((0, 10), 0, (0, 30)),  # nothing beside it: all transfer
        ((0, 10), 20, (20, 10)),  # the first 20 us were waiting
        ((0, 25), 20, (5, 10)),  # compute hides 15 us of the wait
        ((0, 35), 20, (0, 5)),  # compute hides all of it, and 5 us of the transfer
        ((0, 40), 20, (0, 0)),  # all is hidden
        ((0, 10), 99, (30, 0)),  # no more than it took
    ],
)
def test_by_hand(compute: tuple[int, int], wait: int, expected: tuple[int, int]) -> None:
    assert split([kernel("a", *compute), nccl(10, 30)], [wait]) == expected


def test_a_wait_beside_a_transfer_is_transfer() -> None:
    """10 to 40 waits up to 30; 20 to 50 on another stream transfers throughout: 10 us of waiting alone are left."""
    assert split([nccl(10, 30), nccl(20, 30, stream=24)], [20, 0]) == (10, 30)


def test_what_compute_hides_of_each() -> None:
    hidden = hidden_ns(communications(kernel("a", 0, 15), kernel("b", 30, 5), nccl(10, 30), nccl(50, 5)))
    assert hidden.tolist() == [10 * US, 0]

"""How far this rank's clock is ahead of rank 0's: Cristian's method over the rendezvous store, as NTP uses it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from rankscope.collector.rendezvous import forget
from rankscope.errors import RankscopeError
from rankscope.model.manifest import ClockOffset

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_EXCHANGES = 8


def sample_offset(
    store: Store, key: str, *, rank: int, ranks: Sequence[int], limit_seconds: float
) -> ClockOffset | None:
    """This rank's offset against the first of `ranks`; None on that rank, which only answers.

    Each exchange stamps this clock, asks, lets the reference stamp its own, and stamps again: the reference's stamp
    fell within the round trip, so the offset is known to half of it. The shortest of a few round trips counts.

    Args:
        store: the store that all ranks share.
        key: name of this sampling, the same on all ranks and never used before.
        rank: this rank.
        ranks: the ranks that take part; the first is the reference.
        limit_seconds: time in seconds after which this rank goes on, whoever is missing.

    Raises:
        RankscopeError: time was up before all exchanges were done.
    """
    deadline = time.monotonic() + limit_seconds
    if rank == ranks[0]:
        _answer(store, key, len(ranks) - 1, deadline)
        return None
    turn = store.add(f"{key}/turns", 1)
    exchanges = [_exchange(store, f"{key}/{turn}/{number}", deadline) for number in range(_EXCHANGES)]
    round_trip_ns, offset_ns, at_ns = min(exchanges)
    return ClockOffset(
        rank=rank,
        reference=ranks[0],
        offset_ns=offset_ns,
        uncertainty_ns=(round_trip_ns + 1) // 2,
        at_ns=at_ns,
    )


def _exchange(store: Store, key: str, deadline: float) -> tuple[int, int, int]:
    """Round trip, offset, and this clock in the middle, all in ns."""
    asked, answered = f"{key}/asked", f"{key}/answered"
    before_ns = time.time_ns()
    store.set(asked, "")
    _wait(store, answered, deadline)
    after_ns = time.time_ns()
    reference_ns = int(store.get(answered))
    forget(store, [asked, answered])
    middle_ns = (before_ns + after_ns) // 2
    return after_ns - before_ns, middle_ns - reference_ns, middle_ns


def _answer(store: Store, key: str, others: int, deadline: float) -> None:
    """Serve the other ranks in the order in which they came."""
    for turn in range(1, others + 1):
        for number in range(_EXCHANGES):
            _wait(store, f"{key}/{turn}/{number}/asked", deadline)
            store.set(f"{key}/{turn}/{number}/answered", str(time.time_ns()))


def _wait(store: Store, key: str, deadline: float) -> None:
    left = deadline - time.monotonic()
    try:
        store.wait([key], timedelta(seconds=max(left, 0.001)))
    except RuntimeError as fault:
        raise RankscopeError(f"a rank did not come to compare clocks in time ({fault})") from fault

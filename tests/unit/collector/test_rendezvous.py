"""Ranks that meet at a store: each rank is a thread here, the store is torch's own in-process one."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rankscope.collector.clock_sync import sample_offset
from rankscope.collector.rendezvous import Meeting, Offer
from rankscope.errors import RankscopeError

torch = pytest.importorskip("torch", reason="the store is torch's")

RANKS = [0, 1, 5]
Act = Callable[[Any, int], object]


def _on_each_rank(act: Act, ranks: list[int] = RANKS) -> list[object]:
    store = torch.distributed.HashStore()
    with ThreadPoolExecutor(len(ranks)) as pool:
        return list(pool.map(lambda rank: act(store, rank), ranks))


def _meeting(store: Any, rank: int) -> Meeting:
    return Meeting(store=store, key="m", rank=rank, ranks=RANKS)


def test_all_get_the_least_offer() -> None:
    offers = {0: 900, 1: 300, 5: 700}
    found = _on_each_rank(
        lambda store, rank: _meeting(store, rank).attend(Offer(most=offers[rank], terms="a"), 20)
    )
    assert found == [300, 300, 300]


@pytest.mark.parametrize("absent", RANKS)
def test_a_rank_that_does_not_come_holds_up_the_others_for_their_patience_only(absent: int) -> None:
    def act(store: Any, rank: int) -> object:
        return None if rank == absent else _meeting(store, rank).attend(Offer(most=1, terms="a"), 0.1)

    assert _on_each_rank(act) == [None, None, None]


@pytest.mark.parametrize("late", RANKS)
def test_a_rank_that_comes_when_others_gave_up_does_not_go_on_alone(late: int) -> None:
    def act(store: Any, rank: int) -> object:
        if rank == late:
            time.sleep(0.4)
        return _meeting(store, rank).attend(Offer(most=1, terms="a"), 0.1 if rank != late else 20)

    assert _on_each_rank(act) == [None, None, None]


@pytest.mark.parametrize("unwilling", RANKS)
def test_a_rank_that_declines_releases_the_others_at_once(unwilling: int) -> None:
    def act(store: Any, rank: int) -> object:
        if rank == unwilling:
            time.sleep(0.1)
            _meeting(store, rank).decline()
            return None
        return _meeting(store, rank).attend(Offer(most=1, terms="a"), 200)  # the test's own limit is 300 s

    assert _on_each_rank(act) == [None, None, None]


def test_different_terms_and_empty_offers_refuse() -> None:
    for offers in (
        {0: Offer(most=1, terms="a"), 1: Offer(most=1, terms="b"), 5: Offer(most=1, terms="a")},
        {0: Offer(most=1, terms="a"), 1: Offer(most=0, terms="a"), 5: Offer(most=1, terms="a")},
    ):
        found = _on_each_rank(lambda store, rank, o=offers: _meeting(store, rank).attend(o[rank], 20))  # type: ignore[misc]
        assert found == [None, None, None]


def test_offsets_of_one_clock_hold_zero_within_their_uncertainty() -> None:
    samples = _on_each_rank(
        lambda store, rank: sample_offset(store, "c", rank=rank, ranks=RANKS, limit_seconds=20)
    )
    assert samples[0] is None
    for rank, sample in zip(RANKS[1:], samples[1:], strict=True):
        assert sample is not None
        assert (sample.rank, sample.reference) == (rank, 0)  # type: ignore[attr-defined]
        assert abs(sample.offset_ns) <= sample.uncertainty_ns  # type: ignore[attr-defined]


@pytest.mark.parametrize("absent", [0, 1])
def test_clocks_are_given_up_when_a_rank_does_not_come(absent: int) -> None:
    def act(store: Any, rank: int) -> object:
        if rank == absent:
            return "absent"
        try:
            return sample_offset(store, "c", rank=rank, ranks=[0, 1], limit_seconds=0.2)
        except RankscopeError as error:
            return str(error)

    found = _on_each_rank(act, [0, 1])
    assert found[absent] == "absent"
    assert "did not come" in str(found[1 - absent])

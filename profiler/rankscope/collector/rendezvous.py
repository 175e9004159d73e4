"""How ranks agree, over the job's rendezvous store, on whether they do something together.

A store is no collective: a rank that never comes holds up nobody for longer than a time that is known beforehand.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankscope.errors import RankscopeError

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_POLL_SECONDS = 0.002
_REFUSAL = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a rank brings to a meeting.

    Attributes:
        most: the most that it can do, in bytes.
        terms: what must be the same on all ranks.
    """

    most: int
    terms: str


def read_store() -> Store:
    """The store through which the default process group was made.

    Raises:
        RankscopeError: this version of torch keeps it elsewhere.
    """
    import torch.distributed as dist

    try:
        return dist.distributed_c10d._get_default_store()
    except AttributeError as fault:
        raise RankscopeError(f"the rendezvous store of the process group cannot be found: {fault}") from fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """A meeting of some ranks at a store.

    Its answer is written once: by the first of the ranks when all have come, or by the first rank that gives up
    or declines. So it is the same on every rank.

    Attributes:
        store: the store that all ranks share.
        key: name of this meeting, the same on all ranks and never used before.
        rank: this rank.
        ranks: all ranks that must come.
    """

    store: Store
    key: str
    rank: int
    ranks: Sequence[int]

    def attend(self, offer: Offer, patience_seconds: float) -> int | None:
        """The least that any rank offers, once all have come; None if one does not come, or declines.

        Args:
            offer: what this rank brings.
            patience_seconds: the longest wait of this rank, in seconds.
        """
        deadline = time.monotonic() + patience_seconds
        self.store.set(self._offer_of(self.rank), json.dumps([offer.most, offer.terms]))
        if self.rank == self.ranks[0]:
            return self._decide(_find_least(self._collect_offers(deadline)))
        if not self._wait_for(self._decision, deadline):
            return self._decide(None)
        return _parse(self.store.get(self._decision))

    def decline(self) -> None:
        """Let the meeting fail for all that wait or are still to come; does not wait."""
        self._decide(None)

    def _collect_offers(self, deadline: float) -> list[Offer]:
        """All offers; [] when time is up or a rank has declined."""
        offers = []
        for rank in self.ranks:
            if not self._wait_for(self._offer_of(rank), deadline):
                return []
            most, terms = json.loads(self.store.get(self._offer_of(rank)))
            offers.append(Offer(most=most, terms=terms))
        return offers

    def _wait_for(self, key: str, deadline: float) -> bool:
        """Whether `key` is set before the deadline and before a refusal.

        Polls: a store that waits could not be interrupted with Ctrl-C.
        """
        while not self.store.check([key]):
            if time.monotonic() > deadline or (key != self._decision and self.store.check([self._decision])):
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _decide(self, answer: int | None) -> int | None:
        """Write the answer unless another rank has written one; return the one that stands."""
        text = _REFUSAL if answer is None else str(answer)
        return _parse(self.store.compare_set(self._decision, "", text))

    @property
    def _decision(self) -> str:
        return f"{self.key}/decision"

    def _offer_of(self, rank: int) -> str:
        return f"{self.key}/offer/{rank}"


def _find_least(offers: Sequence[Offer]) -> int | None:
    """The least offer; None without any, if one is 0, or if terms differ.

    >>> _find_least([Offer(most=8, terms="a"), Offer(most=5, terms="a")])
    5
    >>> _find_least([Offer(most=8, terms="a"), Offer(most=5, terms="b")]) is None
    True
    """
    if len({offer.terms for offer in offers}) != 1:
        return None
    return min(offer.most for offer in offers) or None


def _parse(answer: bytes) -> int | None:
    text = answer.decode()
    return None if text == _REFUSAL else int(text)


def forget(store: Store, keys: Sequence[str]) -> None:
    """Delete `keys` where the store can delete."""
    with suppress(RuntimeError):
        for key in keys:
            store.delete_key(key)

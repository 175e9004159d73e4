"""Process groups that mean the same on every rank, whatever each rank calls them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_UNSAID = ("", "undefined")


@dataclass(frozen=True, slots=True, order=True)
class GroupKey:
    """Identity of a process group over all ranks.

    Attributes:
        ranks: its global ranks in order; () if the trace does not say.
        ordinal: number among the groups with the same ranks, in creation order.
        label: text for people.
    """

    ranks: tuple[int, ...]
    ordinal: int = 0
    label: str = ""

    @property
    def identity(self) -> tuple[tuple[int, ...], int]:
        """What two ranks compare: the label is a name, and names may differ."""
        return self.ranks, self.ordinal


UNKNOWN_GROUP = GroupKey(ranks=(), ordinal=0, label="unknown group")


def group_label(ranks: Iterable[int], description: str, ordinal: int) -> str:
    """Text of a group: what it is for, its ranks in short, and its number if several have the same ranks.

    >>> group_label([0, 1, 2, 3, 8], "default_pg", 0)
    'default_pg [0-3,8]'
    >>> group_label([0, 1], "undefined", 1)
    '[0-1] #2'
    """
    text = f"[{compact_ranks(ranks)}]"
    if description not in _UNSAID:
        text = f"{description} {text}"
    return text if ordinal == 0 else f"{text} #{ordinal + 1}"


def compact_ranks(ranks: Iterable[int]) -> str:
    """Ranks in order with runs shortened.

    >>> compact_ranks([7, 0, 1, 2, 5])
    '0-2,5,7'
    """
    pieces: list[str] = []
    first = last = None
    for rank in [*sorted(set(ranks)), None]:
        if last is not None and rank == last + 1:
            last = rank
            continue
        if first is not None:
            pieces.append(str(first) if first == last else f"{first}-{last}")
        first = last = rank
    return ",".join(pieces)


def name_ranks(ranks: Iterable[int]) -> str:
    """Ranks as a sentence names them.

    >>> name_ranks([7]), name_ranks([0, 1, 2, 5])
    ('rank 7', 'ranks 0-2,5')
    """
    numbers = set(ranks)
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {compact_ranks(numbers)}"

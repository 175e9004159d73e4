"""Process groups of one window: from what an event says to an identity that all ranks share."""

from __future__ import annotations

import re

import numpy as np

from rankscope.model.groups import UNKNOWN_GROUP, GroupKey, group_label
from rankscope.model.run import ProcessGroup, TraceWindow
from rankscope.model.table import NO_ID

_RANK_LIST = re.compile(r"^\s*\[\s*(\d{1,9}(?:\s*,\s*\d{1,9})*)\s*\]\s*$")


class WindowGroups:
    """Finds the identity of a group by the name or the ranks that an event gives."""

    def __init__(self, window: TraceWindow, world_size: int | None) -> None:
        self._by_name: dict[str, GroupKey] = {}
        self._by_ranks: dict[tuple[int, ...], GroupKey] = {}
        self._only: GroupKey | None = None
        counts: dict[tuple[int, ...], int] = {}
        for group in window.groups:
            ranks = tuple(sorted(group.ranks))
            ordinal = counts.get(ranks, 0)
            counts[ranks] = ordinal + 1
            key = (
                GroupKey(ranks, ordinal, group_label(ranks, group.description, ordinal))
                if ranks
                else UNKNOWN_GROUP
            )
            self._by_name.setdefault(group.name, key)
            self._by_ranks.setdefault(ranks, key)
        self._add_groups_of_events(window, counts)
        shared = [g for g in window.groups if len(g.ranks) > 1]
        if len(shared) == 1 and world_size is not None and len(shared[0].ranks) == world_size:
            self._only = self._of(shared[0])
        elif not window.groups and world_size == 1:
            self._only = GroupKey((0,), 0, group_label((0,), "", 0))

    def _add_groups_of_events(self, window: TraceWindow, counts: dict[tuple[int, ...], int]) -> None:
        """Groups that only events name (older traces list none): ordinals in order of their names."""
        arguments = window.table.arguments
        pairs = np.stack([arguments.group_name, arguments.group_ranks, arguments.group_description], axis=1)
        named = [
            (arguments.texts[name], members, arguments.text(description) or "")
            for name, ranks, description in np.unique(pairs, axis=0).tolist()
            if name != NO_ID and ranks != NO_ID and (members := _members(arguments.texts[ranks])) is not None
        ]
        for name, members, description in sorted(
            named, key=lambda n: (not n[0].isdecimal(), len(n[0]), n[0])
        ):
            if name in self._by_name:
                continue
            ordinal = counts.get(members, 0)
            counts[members] = ordinal + 1
            key = GroupKey(members, ordinal, group_label(members, description, ordinal))
            self._by_name[name] = key
            self._by_ranks.setdefault(members, key)

    def _of(self, group: ProcessGroup) -> GroupKey:
        return self._by_name[group.name]

    def find(
        self, name: str | None, description: str | None, ranks: str | None, size: int | None
    ) -> GroupKey:
        """Identity of the group that an event names.

        Args:
            name, description, ranks: the event's texts; `ranks` may be cut with "...".
            size: number of ranks of the group, as the event says.

        Returns:
            UNKNOWN_GROUP where neither name nor ranks lead to one.
        """
        known = self._by_name.get(name) if name is not None else None
        if known is not None and (size is None or not known.ranks or len(known.ranks) == size):
            return known
        members = _members(ranks) if ranks is not None else None
        if members is not None:
            if members in self._by_ranks:
                return self._by_ranks[members]
            return GroupKey(members, 0, group_label(members, description or "", 0))
        if name is None and self._only is not None:
            return self._only  # gloo rows carry no group; where there is but one, it is that
        return UNKNOWN_GROUP


def _members(ranks: str) -> tuple[int, ...] | None:
    """Ranks of a text such as "[0, 1]"; None if it is cut or no such list."""
    listed = _RANK_LIST.match(ranks)
    return tuple(sorted(int(r) for r in listed.group(1).split(","))) if listed else None

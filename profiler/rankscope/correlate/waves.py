"""Waves of a synchronisation graph: syncs that need not wait for one another, so that a replay takes them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rankscope.model.intervals import Int64

NONE = -1
_SMALL = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Syncs all of whose links lead to earlier waves.

    Attributes:
        syncs: int64[w], the syncs.
        events: int64[e], their events, sync by sync.
        first: int64[w], where each sync begins in `events`.
        sync_of_event: int64[e], place of each event's sync in `syncs`.
    """

    syncs: Int64
    events: Int64
    first: Int64
    sync_of_event: Int64


def find_levels(sync: Int64, first: Int64, links: Sequence[Int64]) -> Int64:
    """int64[s], length of the longest chain of links that ends at each sync: those of one level are a wave.

    Args:
        sync: int64[m], sync of each event.
        first: int64[s + 1], where the events of each sync begin.
        links: each int64[m], an event of an earlier sync, or NONE.
    """
    count = len(first) - 1
    needed = np.stack([np.where(link == NONE, count, sync[link]) for link in links], axis=1)
    level = np.zeros(count + 1, np.int64)
    level[-1] = -1  # what a link to nothing needs
    bounds = first.tolist()
    for k in range(count):
        level[k] = level[needed[bounds[k] : bounds[k + 1]]].max() + 1
    return level[:-1]


def waves_of(sync: Int64, first: Int64, level: Int64) -> Iterator[Wave]:
    """The waves in an order in which they can be replayed; a chain of n syncs needs n waves, however many ranks."""
    if len(level) == 0:
        return
    level_of_event = level[sync]
    events, syncs = _in_order(level_of_event), _in_order(level)
    sizes = np.diff(first)
    levels = np.arange(int(level.max()) + 2)
    event_bounds = np.searchsorted(level_of_event[events], levels).tolist()
    sync_bounds = np.searchsorted(level[syncs], levels).tolist()
    for n in range(len(levels) - 1):
        mine = syncs[sync_bounds[n] : sync_bounds[n + 1]]
        size = sizes[mine]
        yield Wave(
            syncs=mine,
            events=events[event_bounds[n] : event_bounds[n + 1]],
            first=np.cumsum(size) - size,
            sync_of_event=np.repeat(np.arange(len(mine)), size),
        )


def _in_order(level: Int64) -> Int64:
    """Places in order of level, equal ones as they were."""
    narrow = level.astype(np.int16) if level.max(initial=0) < _SMALL else level  # 16 bits sort much faster
    return np.argsort(narrow, kind="stable")

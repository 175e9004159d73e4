"""Steps as the synchronisation graph sees them: from the last sync of one to the last sync of the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankscope.correlate.sync_graph import NONE, SyncGraph
from rankscope.model.intervals import Bool, Int64

_STEPS_PER_WINDOW = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Steps as the graph sees them: from the last sync of one to the last sync of the next.

    Attributes:
        numbers: int64[s], step numbers; one entry NONE for a window without step markers.
        measured_ns: int64[s], measured lengths.
        replayed_ns: int64[s], lengths in the replay with nothing changed.
    """

    numbers: Int64
    measured_ns: Int64
    replayed_ns: Int64

    @property
    def replay_error(self) -> float | None:
        """Largest deviation of the replay from the measured length, as a share; None without a length."""
        if len(self.numbers) == 0 or not (self.measured_ns > 0).all():
            return None
        return float(np.max(np.abs(self.replayed_ns - self.measured_ns) / self.measured_ns))


class GraphSteps:
    """Where steps end: with the last sync of each, in every window."""

    def __init__(self, graph: SyncGraph, steady: Sequence[int] | None) -> None:
        """Find the steps.

        Args:
            graph: the synchronisation graph.
            steady: step numbers that count; None if the run has no step markers: then all is one step.
        """
        window = graph.node_window[graph.node[graph.first[:-1]]]
        key = window * _STEPS_PER_WINDOW + (graph.step if steady is not None else 0)
        inside = graph.step != NONE if steady is not None else np.ones(len(graph), bool)
        keys = np.unique(key[inside])
        self._masks = [inside & (key == k) for k in keys]
        self._follows = np.zeros(len(keys), bool)
        numbers = np.full(len(keys), NONE, np.int64)
        kept = np.ones(len(keys), bool)
        if steady is not None:
            numbers = keys % _STEPS_PER_WINDOW
            self._follows[1:] = keys[1:] // _STEPS_PER_WINDOW == keys[:-1] // _STEPS_PER_WINDOW
            kept = np.isin(numbers, list(steady))
            # What a window's first step cost lies partly before its first sync, where nothing can be compared.
            if (kept & self._follows).any():
                kept &= self._follows
        self._kept = np.flatnonzero(kept)
        self._numbers = numbers

    @property
    def numbers(self) -> Int64:
        """int64[s], numbers of the steps that count."""
        numbers: Int64 = self._numbers[self._kept]
        return numbers

    def keep_long(self, ends: Int64) -> None:
        """Leave out steps without a length: the first of a window, if it has one sync only."""
        self._kept = self._kept[self.lengths(ends, np.ones(len(ends), bool)) > 0]

    def lengths(self, ends: Int64, among: Bool) -> Int64:
        """Length of each kept step by the ends of its syncs in `among`; 0 for a step without any.

        A step without one before it is as long as from its first sync to its last: where recording began says
        nothing.
        """
        masks = [mask & among for mask in self._masks]
        last = np.array([ends[m].max() if m.any() else 0 for m in masks], np.int64)
        begin = np.array([ends[m].min() if m.any() else 0 for m in masks], np.int64)
        follows = self._follows.copy()
        follows[1:] &= (last[:-1] != 0) & (last[1:] != 0)
        begin[1:] = np.where(follows[1:], last[:-1], begin[1:])
        lengths: Int64 = (last - begin)[self._kept]
        return lengths

"""What every rank cost every step."""

from __future__ import annotations

from collections import defaultdict

from rankscope.correlate.sync_graph import NONE
from rankscope.model.report import CausedWaitRow
from rankscope.pipeline.together import Together


def caused_waits(together: Together) -> list[CausedWaitRow]:
    """A row per step that is judged and rank, by step and rank.

    The cost of a rank is known if its replay was worth the time: that of the ranks that worked longest.
    """
    lateness, result = together.lateness, together.straggler
    costs: dict[tuple[int, int], int] = defaultdict(int)
    numbers = result.steps.numbers.tolist()
    for cost in result.costs:
        if len(cost.candidate.ranks) == 1:
            for step, saved in zip(numbers, cost.per_step_ns.tolist(), strict=True):
                costs[step, cost.candidate.ranks[0]] += saved
    counted = together.collective_step[lateness.collectives]
    rows = []
    for step in sorted({*numbers, *counted.tolist()}):
        for rank in together.comms.ranks:
            late = lateness.per_step.get((step, rank), 0) if lateness.countable.get(rank) else None
            cost_ns = costs.get((step, rank))
            if late is not None or cost_ns is not None:
                number = None if step == NONE else step
                rows.append(CausedWaitRow(step=number, rank=rank, lateness_ns=late, cost_ns=cost_ns))
    return rows

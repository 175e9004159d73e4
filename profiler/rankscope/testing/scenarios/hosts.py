"""A DDP run in which all ranks of one host are slow: every one of them alone looks almost innocent."""

from __future__ import annotations

from typing import Literal

from rankscope.errors import UsageError
from rankscope.testing.expected import ExpectedStraggler
from rankscope.testing.program import Backend
from rankscope.testing.scenario import Scenario
from rankscope.testing.scenarios.ddp import scenario_of
from rankscope.testing.scenarios.ddp_answers import cost_ns_per_step
from rankscope.testing.scenarios.ddp_plan import (
    DEFAULT_BUCKETS,
    DdpPlan,
    Extra,
    Overlap,
    Where,
    backward_for,
    parameters_of,
    usual_transfer_ns,
)


def host_slow(
    *,
    ranks: int = 16,
    ranks_per_host: int = 2,
    slow_host: int = 3,
    slow_ns: int = 60_000_000,
    spread_ns: int = 100_000,
    where: Where = "compute",
    overlap: Overlap = "partial",
    steps: int = 3,
    backend: Backend = "nccl",
) -> Scenario:
    """A DDP run (see `ddp_run`) in which every rank of `slow_host` needs about `slow_ns` more in each step.

    The host's last rank needs `slow_ns` more, the one before it `spread_ns` less than that, and so on. All
    arrive late, so that last minus second last arrival is only `spread_ns`; but with the host's extra time
    gone every step is `slow_ns` shorter. One of its ranks alone costs at most `spread_ns`: without it, the
    next one is the last.

    Args:
        ranks, ranks_per_host, steps, overlap, backend: as in `ddp_run`.
        slow_host: number of the host.
        slow_ns: what its last rank needs more in each step.
        spread_ns: how much less the rank before needs, and so on.
        where: see `Extra`.

    Returns:
        The scenario, with `expected`; its straggler is the host.

    Raises:
        UsageError: no such host, or a spread that eats up the delay.
    """
    slow = [r for r in range(ranks) if r // ranks_per_host == slow_host]
    if not slow or spread_ns * (len(slow) - 1) > slow_ns:
        raise UsageError(
            f"host {slow_host} holds ranks {slow} of {ranks}, and their delays would be {slow_ns} ns less "
            f"{spread_ns} ns each: choose a host that exists and a spread that leaves every delay positive"
        )
    layout = parameters_of(DEFAULT_BUCKETS)
    transfers = tuple(map(usual_transfer_ns, layout))
    extras = {r: Extra(extra_ns=slow_ns - spread_ns * (slow[-1] - r), where=where) for r in slow}
    plan = DdpPlan(
        name="host_slow",
        ranks=ranks,
        steps=steps,
        first_step=0,
        buckets=layout,
        backward_ns=backward_for(overlap, layout, transfers),
        transfer_ns=transfers,
        copy_ns=50_000 if where == "memory" else 0,
        backend=backend,
        extras=extras,
    )
    return scenario_of(plan, ranks_per_host, _straggler(plan, tuple(slow), where))


def _straggler(plan: DdpPlan, slow: tuple[int, ...], where: Where) -> ExpectedStraggler:
    scope: Literal["host", "rank"] = "host" if len(slow) > 1 else "rank"
    return ExpectedStraggler(
        verdict="found",
        scope=scope,
        ranks=slow,
        cause=where,
        cost_ns_per_step=cost_ns_per_step(plan, slow),
        cost_by_rank_ns={r: cost_ns_per_step(plan, (r,)) for r in range(plan.ranks)},
    )

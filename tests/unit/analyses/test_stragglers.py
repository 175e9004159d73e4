"""The verdict from costs that are given."""

from __future__ import annotations

import numpy as np
import pytest

from rankscope.analyses.stragglers import (
    Cost,
    LastArrivals,
    StragglerResult,
    Thresholds,
    add_lateness,
    is_certain,
    judge,
)
from rankscope.correlate.candidates import Candidate, Scope
from rankscope.correlate.graph_steps import StepTimes

MS = 1_000_000
STEP = 100 * MS


def cost(ranks: tuple[int, ...], *per_step_ms: float, scope: Scope | None = None) -> Cost:
    saved = np.array([round(ms * MS) for ms in per_step_ms], np.int64)
    named: Scope = scope or ("rank" if len(ranks) == 1 else "ranks")
    return Cost(
        candidate=Candidate(ranks, named), per_step_ns=saved, step_ns=np.full(len(saved), STEP, np.int64)
    )


def verdict(
    *costs: Cost,
    obstacle: str | None = None,
    share: dict[int, float] | None = None,
    ranks: int = 8,
    countable: int = 4,
) -> StragglerResult:
    size = len(costs[0].per_step_ns) if costs else 0
    lengths = np.full(size, STEP, np.int64)
    steps = StepTimes(numbers=np.arange(size), measured_ns=lengths, replayed_ns=lengths)
    last = LastArrivals(share=share or {}, countable=dict.fromkeys(range(ranks), countable), rivals=ranks)
    return judge(steps, costs, Thresholds(), last=last, obstacle=obstacle)


def named(result: StragglerResult) -> tuple[int, ...]:
    return () if result.culprit is None else result.culprit.candidate.ranks


def test_without_steps_or_costs_nothing_can_be_told() -> None:
    assert verdict().verdict == "inconclusive"


def test_an_obstacle_comes_before_everything() -> None:
    result = verdict(cost((3,), 50, 50, 50, 50), obstacle="rank 1 has no file")
    assert (result.verdict, result.reason, named(result)) == ("inconclusive", "rank 1 has no file", ())


def test_less_than_2_percent_is_nobody() -> None:
    result = verdict(cost((0,), 1.9, 1.9, 1.9), cost((1,), 0, 0, 0))
    assert (result.verdict, named(result)) == ("none", ())
    assert "1.9 %" in result.reason


def test_2_percent_in_every_step_is_a_straggler() -> None:
    result = verdict(cost((0,), 0, 0, 0, 0, 0), cost((3,), 2, 2, 2, 2, 2))
    assert (result.verdict, named(result), result.confidence) == ("found", (3,), "high")


def test_two_of_five_steps_are_too_few() -> None:
    assert verdict(cost((3,), 50, 50, 0, 0, 0)).verdict == "none"


def test_three_of_five_steps_may_be_chance_among_two_ranks_but_not_among_100() -> None:
    """Chance that one of two is it in 3 of 5 steps is 1; of one of 100: 100 x C(5,3) / 100^3 = 0.1 %."""
    assert verdict(cost((1,), 50, 50, 50, 0, 0), ranks=2).verdict == "inconclusive"
    assert verdict(cost((1,), 50, 50, 50, 0, 0), ranks=100).verdict == "found"


def test_a_cost_alone_is_certain_in_enough_steps_that_chance_does_not_explain() -> None:
    """One of two costs in all of three steps by chance in 2 / 2^3 = 25 %, in all of five in 2 / 2^5 = 6.25 %."""
    thresholds = Thresholds()
    assert is_certain(cost((1,), 2, 2, 2, 2, 2), thresholds, 2)
    assert not is_certain(cost((1,), 1.9, 1.9, 1.9, 1.9, 1.9), thresholds, 2)
    assert not is_certain(cost((1,), 2, 2, 2), thresholds, 2)
    assert is_certain(cost((1,), 2, 2, 2), thresholds, 100)
    assert not is_certain(cost((1,), 2, 2), thresholds, 100)
    assert not is_certain(cost((1,), 2, 2, 0, 0, 0), thresholds, 100)


def test_with_fewer_than_three_steps_half_of_the_collectives_decide_and_confidence_is_low() -> None:
    result = verdict(cost((3,), 50, 50), share={3: 0.5})
    assert (result.verdict, result.confidence) == ("found", "low")
    assert verdict(cost((3,), 50, 50), share={3: 0.4}).verdict == "inconclusive"
    assert verdict(cost((3,), 50, 1), share={3: 1.0}).verdict == "inconclusive"


def test_a_set_is_named_where_no_rank_of_it_passes() -> None:
    single = [cost((rank,), 0.1, 0.1, 0.1) for rank in (6, 7)]
    result = verdict(*single, cost((6, 7), 60, 60, 60, scope="host"), ranks=16)
    assert (named(result), result.culprit and result.culprit.candidate.scope) == ((6, 7), "host")


def test_fewer_ranks_are_named_unless_more_cost_much_more() -> None:
    assert named(verdict(cost((6,), 40, 40, 40), cost((6, 7), 60, 60, 60))) == (6,)
    assert named(verdict(cost((6,), 30, 30, 30), cost((6, 7), 60, 60, 60))) == (6, 7)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_order_of_the_candidates_changes_nothing(order: tuple[int, ...]) -> None:
    costs = [cost((2,), 9, 9, 9), cost((5,), 12, 12, 12), cost((2, 5), 13, 13, 13)]
    assert named(verdict(*(costs[i] for i in order))) == (5,)


def test_lateness_counts_above_its_threshold_and_where_it_is_countable() -> None:
    """Collectives 0 to 3 of ranks 0 and 1; 2 is not countable, 3 is below the threshold."""
    lateness = add_lateness(
        step=np.array([5, 5, 6, 6]),
        last_rank=np.array([1, 1, 0, 0]),
        lateness_ns=np.array([100, 50, 900, 10]),
        threshold_ns=np.array([20, 20, 20, 20]),
        countable=np.array([0, 1, 3]),
        first=np.array([0, 2, 4, 6, 8]),
        member_rank=np.array([0, 1] * 4),
    )
    assert lateness.per_step == {(5, 1): 150}
    assert lateness.last_in == {1: 2}
    assert lateness.countable == {0: 3, 1: 3}

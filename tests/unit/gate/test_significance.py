"""Noise against change. How often it errs is measured in benchmarks/gate.py."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankscope.gate.significance import judge, least_p_value, permutation_p_value, student_quantile


def p_value(base: list[float], head: list[float]) -> float:
    return permutation_p_value(np.array(base), np.array(head))


def test_p_value_by_hand() -> None:
    """6 ways to choose 2 of 1, 2, 3, 4: means apart by 2, 1, 0, 0, 1, 2; as far as 1: four of six."""
    assert p_value([1.0, 3.0], [2.0, 4.0]) == 4 / 6
    assert p_value([1.0, 2.0], [3.0, 4.0]) == 2 / 6


def test_equal_samples_have_p_one() -> None:
    assert p_value([0.1, 0.2, 0.3], [0.3, 0.1, 0.2]) == 1.0
    assert p_value([0.5] * 4, [0.5] * 4) == 1.0


def test_p_value_of_many_samples_is_drawn_and_repeatable() -> None:
    random = np.random.default_rng(1)
    base, head = random.normal(0, 1, 30), random.normal(0.2, 1, 25)
    assert permutation_p_value(base, head) == permutation_p_value(base, head)
    # Close to the normal approximation: standard error sqrt(1/30 + 1/25) of the pooled scatter.
    scatter = math.sqrt((base.var(ddof=1) * 29 + head.var(ddof=1) * 24) / 53 * (1 / 30 + 1 / 25))
    expected = math.erfc(abs(head.mean() - base.mean()) / scatter / math.sqrt(2))
    assert permutation_p_value(base, head) == pytest.approx(expected, abs=0.02)


def test_least_p_value() -> None:
    assert least_p_value(3, 3) == 0.1
    assert least_p_value(4, 4) == 2 / 70


@pytest.mark.parametrize(
    ("freedom", "exact"), [(1, 12.706), (4, 2.776), (5, 2.571), (10, 2.228), (1000, 1.962)]
)
def test_student_quantile_is_that_of_the_tables(freedom: int, exact: float) -> None:
    assert student_quantile(freedom) == pytest.approx(exact, abs=0.002)


def test_a_large_change_of_quiet_steps_is_significant() -> None:
    judgement = judge([[0.80, 0.81, 0.79, 0.80]], [0.60, 0.61, 0.59, 0.60])
    assert judgement.p_value == 2 / 70
    assert judgement.is_significant is True


def test_a_change_that_runs_make_without_a_reason_is_not() -> None:
    """Steps without any scatter: 1.5 % from run to run, 1.96 * sqrt(2) of that is 4.2 % of 0.8."""
    judgement = judge([[0.80] * 10], [0.78] * 10)
    assert judgement.p_value is not None
    assert judgement.p_value < 0.001
    assert judgement.smallest == pytest.approx(student_quantile(18) * math.sqrt(2) * 0.015 * 0.80, rel=1e-9)
    assert judgement.is_significant is False
    assert judge([[0.80] * 10], [0.76] * 10).is_significant is True


def test_noise_of_exposed_time_is_a_share_of_communication() -> None:
    """0.2 of 10 ms exposed, and 0.4 ms more: twice as much is 4 % of the communication."""
    assert judge([[0.2] * 10], [0.6] * 10, scale=10.0).is_significant is False
    assert judge([[0.2] * 10], [0.6] * 10).is_significant is True


def test_steps_that_scatter_much_hide_more() -> None:
    """Scatter of 26 % of the mean, so 20 % from run to run is assumed."""
    base, head = [0.6, 1.0] * 5, [0.3, 0.7] * 5
    judgement = judge([base], head)
    assert judgement.p_value is not None
    assert judgement.p_value <= 0.05
    assert judgement.is_significant is False
    assert "scatter" in judgement.basis


def test_several_base_runs_measure_the_noise() -> None:
    """Means 0.80, 0.84, 0.76: standard deviation 0.04, t(2) = 4.303, sqrt(1 + 1/3): +-0.199."""
    noisy = [[0.80] * 5, [0.84] * 5, [0.76] * 5]
    judgement = judge(noisy, [0.62] * 5)
    assert judgement.smallest == pytest.approx(4.3027 * 0.04 * math.sqrt(4 / 3), rel=1e-4)
    assert judgement.is_significant is False
    assert judge(noisy, [0.59] * 5).is_significant is True
    quiet = [[0.800, 0.801], [0.801, 0.800], [0.800, 0.800], [0.801, 0.801]]
    assert judge(quiet, [0.79] * 5).is_significant is True


def test_a_machine_that_was_not_equally_busy_hides_more() -> None:
    """4.2 % of 0.8 by itself; compute 10 % apart: 1.96 * sqrt(2) * 10 % = 27.7 % of 0.8 besides."""
    quiet, busy = judge([[0.8] * 10], [0.7] * 10), judge([[0.8] * 10], [0.7] * 10, drift=0.1)
    assert (quiet.is_significant, busy.is_significant) == (True, False)
    assert quiet.smallest is not None
    assert busy.smallest == pytest.approx(math.hypot(quiet.smallest, 1.959964 * math.sqrt(2) * 0.08))
    assert "not equally busy" in busy.basis


@pytest.mark.parametrize("head", [[], [0.5]])
def test_too_few_steps_cannot_tell(head: list[float]) -> None:
    judgement = judge([[0.8, 0.8]], head)
    assert (judgement.p_value, judgement.is_significant) == (None, None)
    assert "two on each side are needed" in judgement.basis


def test_three_steps_a_side_are_judged_by_the_difference_alone() -> None:
    """The least p of 3 and 3 steps is 0.1; t(4) = 2.776."""
    large, small = (
        judge([[0.78, 0.76, 0.77]], [0.05, 0.04, 0.05]),
        judge([[0.78, 0.76, 0.77]], [0.76, 0.75, 0.77]),
    )
    assert (large.p_value, large.is_significant, small.is_significant) == (0.1, True, False)
    assert "the difference decides alone" in large.basis


def test_two_steps_a_side_are_too_few() -> None:
    judgement = judge([[0.8, 0.8]], [0.1, 0.1])
    assert judgement.is_significant is None
    assert "too few to tell" in judgement.basis


def test_a_large_difference_of_overlapping_steps_is_not_significant() -> None:
    """56 and 55.9 swapped lie further apart: 4 of 70 arrangements are as far, 0.057."""
    judgement = judge([[51, 52, 53, 56]], [55.9, 60, 61, 62])
    assert judgement.p_value == 4 / 70
    assert judgement.head_mean is not None
    assert judgement.base_mean is not None
    assert judgement.smallest is not None
    assert judgement.head_mean - judgement.base_mean > judgement.smallest
    assert judgement.is_significant is False

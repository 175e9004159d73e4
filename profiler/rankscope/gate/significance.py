"""Whether two runs differ by more than noise. How good it is: benchmarks/gate.py, results in docs/ci.md.

Steps of one run are not independent: whatever differs from run to run (placement, temperature, neighbours) shifts
all of them alike, and a test over steps alone takes that for a change of the code. So a difference counts only if

1. a two-sided permutation test over the steps gives p <= 0.05 (unless so few steps never can: 3 a side), and
2. it is larger than two runs of the same code may differ by. With three or more base runs that is measured: the 95 %
   prediction interval of a further run. With fewer it is assumed: a run-to-run standard deviation of 1.5 % of the
   figure, more where the steps scatter by more than 6 % (a machine that the job does not have for itself).

On CPU-only runs compute shares the cores with whatever else runs there. How far the compute of the runs differs
shows how differently busy the machine was, and other figures may differ by as much for that reason alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rankscope.model.comparison import Judgement

LEVEL = 0.05
"""Greatest p that counts."""

ASSUMED_RUN_NOISE = 0.015
"""Standard deviation from run to run, as a share of the figure, where it was not measured."""

QUIET_STEP_NOISE = 0.06
"""Scatter of the steps, as a share of the figure, above which run-to-run noise is taken to be the excess."""

RUNS_TO_MEASURE = 3
"""Base runs from which on run-to-run noise is measured."""

_LEAST_STEPS = 3
"""Steps on each side below which nothing is called significant."""

_MOST_ARRANGEMENTS = 20_000
_DRAWS = 10_000
_DRAWS_AT_ONCE = 500
_SEED = 20_240_607
_NORMAL_QUANTILE = 1.959964
_ROUNDING = 1e-12

Float64 = npt.NDArray[np.float64]


def judge(
    base: Sequence[Sequence[float]], head: Sequence[float], *, scale: float | None = None, drift: float = 0.0
) -> Judgement:
    """Whether the head's steps differ from the base's by more than noise.

    Args:
        base: per base run, the value of each step.
        head: the value of each step of the head.
        scale: what noise is a share of; the mean of the base unless given.
        drift: how differently busy the machine is known to have been, as a share of the time.
    """
    runs = [np.asarray(run, np.float64) for run in base if len(run)]
    steps = np.asarray(head, np.float64)
    base_steps = sum(map(len, runs))
    means = np.array([run.mean() for run in runs])
    base_mean = float(means.mean()) if len(means) else None
    head_mean = float(steps.mean()) if len(steps) else None
    p_value, smallest = None, None
    is_significant: bool | None = None
    if base_mean is None or head_mean is None or base_steps < 2 or len(steps) < 2:
        basis = f"{base_steps} and {len(steps)} steady steps show no scatter; two on each side are needed"
    else:
        p_value = permutation_p_value(np.concatenate(runs), steps)
        smallest, basis = _smallest_difference(runs, steps, abs(base_mean) if scale is None else scale, drift)
        is_significant = abs(head_mean - base_mean) > smallest
        if least_p_value(base_steps, len(steps)) <= LEVEL:
            is_significant &= p_value <= LEVEL
        elif min(base_steps, len(steps)) >= _LEAST_STEPS:
            basis += f"; no p of {base_steps} and {len(steps)} steps can be {LEVEL:g}, so the difference decides alone"
        else:
            is_significant = None
            basis = f"{base_steps} and {len(steps)} steady steps are too few to tell"
    return Judgement(
        base_mean=base_mean,
        head_mean=head_mean,
        base_steps=base_steps,
        head_steps=len(steps),
        p_value=p_value,
        smallest=smallest,
        is_significant=is_significant,
        basis=basis,
    )


def permutation_p_value(base: Float64, head: Float64) -> float:
    """Two-sided p of a permutation test on the difference of means.

    Exact up to 20,000 arrangements, else by 10,000 draws from a fixed seed.

    >>> permutation_p_value(np.array([1.0, 2.0]), np.array([3.0, 4.0]))  # 2 of 6 arrangements are as far apart
    0.3333333333333333
    """
    values = np.concatenate([base, head])
    number, total = len(head), values.sum()
    observed = abs(head.mean() - base.mean())
    tolerance = _ROUNDING * max(1.0, float(np.abs(values).max()))

    def distances(head_sums: Float64) -> Float64:
        apart: Float64 = np.abs(head_sums / number - (total - head_sums) / len(base))
        return apart

    if math.comb(len(values), number) <= _MOST_ARRANGEMENTS:
        chosen = np.array(list(itertools.combinations(range(len(values)), number)))
        sums = values[chosen].sum(axis=1)
        return float((distances(sums) >= observed - tolerance).mean())
    random = np.random.default_rng(_SEED)
    as_far = 0
    for _ in range(_DRAWS // _DRAWS_AT_ONCE):
        order = random.random((_DRAWS_AT_ONCE, len(values))).argsort(axis=1)
        sums = values[order[:, :number]].sum(axis=1)
        as_far += int((distances(sums) >= observed - tolerance).sum())
    return (as_far + 1) / (_DRAWS + 1)


def least_p_value(base_steps: int, head_steps: int) -> float:
    """Smallest p that the test can give for so many steps.

    >>> least_p_value(4, 4) == 2 / 70
    True
    """
    return (2 if base_steps == head_steps else 1) / math.comb(base_steps + head_steps, head_steps)


def _smallest_difference(
    runs: Sequence[Float64], head: Float64, scale: float, drift: float
) -> tuple[float, str]:
    """Smallest difference of means that counts, and how it comes about."""
    smallest, basis = _smallest_by_scatter(runs, head, scale)
    by_drift = _NORMAL_QUANTILE * math.sqrt(1 + 1 / len(runs)) * drift * scale
    if by_drift > smallest:
        basis = f"the machine was not equally busy: compute on the CPU differs by {100 * drift:.0f} %"
    return math.hypot(smallest, by_drift), basis


def _smallest_by_scatter(runs: Sequence[Float64], head: Float64, scale: float) -> tuple[float, str]:
    """Smallest difference that counts as far as steps and base runs show it."""
    freedom = sum(len(run) - 1 for run in [*runs, head])
    squares = sum(float(((run - run.mean()) ** 2).sum()) for run in [*runs, head])
    step_noise = math.sqrt(squares / freedom)
    of_steps = 1 / len(head) + sum(1 / len(run) for run in runs) / len(runs) ** 2
    by_steps = step_noise**2 * of_steps
    of_runs = 1 + 1 / len(runs)
    quantile = student_quantile(freedom)
    if len(runs) >= RUNS_TO_MEASURE:
        measured = float(np.std([run.mean() for run in runs], ddof=1))
        interval = student_quantile(len(runs) - 1) * measured * math.sqrt(of_runs)
        basis = f"run-to-run noise measured on {len(runs)} base runs"
        return max(quantile * math.sqrt(by_steps), interval), basis
    excess = step_noise - QUIET_STEP_NOISE * scale
    assumed = max(ASSUMED_RUN_NOISE * scale, excess)
    smallest = quantile * math.sqrt(by_steps + assumed**2 * of_runs)
    if assumed == excess:
        return smallest, "run-to-run noise assumed from the scatter of the steps, which is large"
    return smallest, f"run-to-run noise assumed to be {100 * ASSUMED_RUN_NOISE:g} %"


def student_quantile(freedom: int) -> float:
    """97.5th percentile of Student's t.

    By the expansion of Abramowitz and Stegun 26.7.5; exact values for 1 to 3 degrees of freedom, where it is poor.

    >>> round(student_quantile(2), 3), round(student_quantile(6), 2), round(student_quantile(18), 3)
    (4.303, 2.45, 2.101)
    """
    exact = {1: 12.7062, 2: 4.3027, 3: 3.1824}
    if freedom in exact:
        return exact[freedom]
    z = _NORMAL_QUANTILE
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, start=1))

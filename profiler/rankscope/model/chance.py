"""What chance alone would do."""

from __future__ import annotations

from math import comb


def chance_of(hits: int, steps: int, rivals: int) -> float:
    """Probability that chance alone makes any one of `rivals` equal sets stand out in `hits` of `steps` steps.

    In a step at most one of them is the one that all wait for, each with the same chance (binomial tail, times the
    number of rivals).

    >>> round(chance_of(3, 3, 4), 4), round(chance_of(3, 3, 2), 4)
    (0.0625, 0.25)
    """
    share = 1 / rivals
    tail = sum(comb(steps, k) * share**k * (1 - share) ** (steps - k) for k in range(hits, steps + 1))
    return min(1.0, rivals * tail)

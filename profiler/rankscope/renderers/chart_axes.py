"""Units of the axes of plots."""

from __future__ import annotations

from collections.abc import Callable

from rankscope.units import NS_PER_MS, NS_PER_S, ns_to_ms, ns_to_s, ns_to_us


def choose_unit(longest_ns: int) -> tuple[Callable[[float], float], str]:
    """(function from ns to the unit, name of the unit) for an axis that reaches to `longest_ns`.

    >>> convert, unit = choose_unit(2_500_000)
    >>> convert(2_500_000), unit
    (2.5, 'ms')
    """
    if longest_ns >= 10 * NS_PER_S:
        return ns_to_s, "s"
    return (ns_to_ms, "ms") if longest_ns >= NS_PER_MS else (ns_to_us, "us")

"""A figure that can be limited and compared: its name, unit and which direction is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rankscope.units import NS_PER_MS, NS_PER_S, NS_PER_US, format_size

Kind = Literal["ratio", "time", "bandwidth", "size", "count", "factor"]
Better = Literal["higher", "lower"]

UNITS: dict[Kind, dict[str, float]] = {
    "ratio": {"": 1},
    "time": {"ns": 1, "us": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S},
    "bandwidth": {"gbps": 1},
    "size": {"bytes": 1, "mib": 1 << 20},
    "count": {"": 1},
    "factor": {"": 1},
}
"""Units in which a figure of each kind may be limited -> what one of them is inside."""

POINT = 0.01
"""One percentage point of a ratio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure.

    Attributes:
        name: as in limits, without a unit.
        label: name for people.
        kind: what its value is: a ratio from 0 to 1, ns, 1e9 bytes/s, bytes, a count, a factor.
        better: which direction is better.
    """

    name: str
    label: str
    kind: Kind
    better: Better = "lower"

    @property
    def unit(self) -> str:
        """What values are counted in, the first of the units in which it may be limited; "" of a bare number."""
        return next(iter(UNITS[self.kind]))

    def format(self, value: float) -> str:
        """Text of a value.

        >>> Figure(name="exposed_communication", label="", kind="time").format(17_193_351)
        '17.193 ms'
        """
        if self.kind == "time":
            return format_exact_duration(value)
        if self.kind == "ratio":
            return f"{100 * value:.2f} %"
        if self.kind == "bandwidth":
            return f"{value:.4g} GB/s"
        if self.kind == "size":
            return format_size(round(value))
        return f"{value:,.0f}" if self.kind == "count" else f"{value:.3f}"

    def format_change(self, change: float) -> str:
        """Text of a difference, with its sign; ratios in percentage points.

        >>> Figure(name="overlap_ratio", label="", kind="ratio").format_change(-0.25)
        '-25.00 pp'
        """
        sign = "-" if change < 0 else "+"
        if self.kind == "ratio":
            return f"{sign}{abs(change) / POINT:.2f} pp"
        return f"{sign}{self.format(abs(change))}"


def format_exact_duration(ns: float) -> str:
    """Text of a duration with three decimals, so that small differences stay visible.

    >>> format_exact_duration(980), format_exact_duration(-1_460_531)
    ('980 ns', '-1.461 ms')
    """
    size = abs(ns)
    for limit, divisor, unit in (
        (NS_PER_US, 1, "ns"),
        (NS_PER_MS, NS_PER_US, "us"),
        (NS_PER_S, NS_PER_MS, "ms"),
    ):
        if size < limit:
            return f"{ns:.0f} ns" if divisor == 1 else f"{ns / divisor:.3f} {unit}"
    return f"{ns / NS_PER_S:.3f} s"

"""How much worse a figure may become against a baseline: `overlap_ratio=2pp`, `steady.exposed=5%`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rankscope.errors import UsageError
from rankscope.gate.figures import ALIASES, FIGURES_OF_SCOPE, find_figure, qualify
from rankscope.gate.limits import suggest
from rankscope.model.figure import POINT, UNITS, Figure

COMPARED_SCOPES = ("run", "steady", "outside")

_AMOUNT = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*(?P<unit>[A-Za-z%/]*)")
_ROUNDING = 1e-9
"""Share of a limit by which rounding of floats may pass it: 0.34 - 0.32 is 0.020000000000000018."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionLimit:
    """How much worse a figure may become.

    Attributes:
        name: as the user wrote it, "overlap_ratio" or "steady.overlap_ratio".
        scope: "run", "steady" or "outside".
        figure: what is limited.
        amount: how much worse, in the figure's unit inside, or as a share of the base if `is_relative`.
        is_relative: whether it is a share of the base.
        allow_undefined: whether a figure without a value may pass.
    """

    name: str
    scope: str
    figure: Figure
    amount: float
    is_relative: bool
    allow_undefined: bool = False

    def is_broken_by(self, base: float, head: float) -> bool:
        """Whether the figure became worse by more than the limit."""
        worse = base - head if self.figure.better == "higher" else head - base
        allowed = self.amount * abs(base) if self.is_relative else self.amount
        return worse > allowed + _ROUNDING * max(allowed, abs(base))

    @property
    def text(self) -> str:
        """The limit for people.

        >>> from rankscope.gate.figures import OVERLAP
        >>> RegressionLimit(name="", scope="run", figure=OVERLAP, amount=0.02, is_relative=False).text
        'at most 2.00 pp lower'
        """
        direction = "lower" if self.figure.better == "higher" else "higher"
        if self.is_relative:
            return f"at most {100 * self.amount:g} % {direction}"
        return f"at most {self.figure.format_change(self.amount)[1:]} {direction}"


def compared_names() -> list[str]:
    """All names that a regression limit may have."""
    return [qualify(scope, figure.name) for scope in COMPARED_SCOPES for figure in FIGURES_OF_SCOPE[scope]]


def parse_regressions(texts: Sequence[str], *, allow_undefined: bool = False) -> tuple[RegressionLimit, ...]:
    """Limits of texts such as "overlap_ratio=2pp,exposed=5%".

    Raises:
        UsageError: naming everything that is wrong with them.
    """
    faults: list[str] = []
    amounts: dict[str, object] = {}
    for item in (item.strip() for text in texts for item in text.split(",")):
        name, equals, amount = item.partition("=")
        if not equals or not name.strip():
            faults.append(f"{item!r}: expected FIGURE=AMOUNT, such as overlap_ratio=2pp or exposed=5%")
        elif name.strip() in amounts:
            faults.append(f"{name.strip()} is given twice")
        else:
            amounts[name.strip()] = amount.strip()
    limits = read_regressions(amounts, faults, allow_undefined=allow_undefined)
    if faults:
        raise UsageError("--max-regression:\n  " + "\n  ".join(faults))
    return limits


def read_regressions(
    amounts: Mapping[str, object], faults: list[str], *, allow_undefined: bool
) -> tuple[RegressionLimit, ...]:
    """The limits of names and amounts; what is wrong with them is appended to `faults`."""
    limits = []
    for name, amount in amounts.items():
        found = _find(name)
        if found is None:
            faults.append(
                f"{name} is no figure that runs are compared by{suggest(name, [*compared_names(), *ALIASES])}"
            )
            continue
        scope, figure = found
        parsed = _parse_amount(figure, amount)
        if isinstance(parsed, str):
            faults.append(f"{name}: {parsed}")
            continue
        size, is_relative = parsed
        limits.append(
            RegressionLimit(
                name=name,
                scope=scope,
                figure=figure,
                amount=size,
                is_relative=is_relative,
                allow_undefined=allow_undefined,
            )
        )
    return tuple(limits)


def _find(name: str) -> tuple[str, Figure] | None:
    scope, dot, rest = name.rpartition(".")
    scope = scope if dot else "run"
    figure = find_figure(scope, rest) if scope in COMPARED_SCOPES else None
    return None if figure is None else (scope, figure)


def _parse_amount(figure: Figure, amount: object) -> tuple[float, bool] | str:
    """Amount in the figure's unit, and whether it is a share of the base; or what is wrong."""
    units = {"pp": POINT} if figure.kind == "ratio" else {u: f for u, f in UNITS[figure.kind].items() if u}
    expected = ", ".join(f"2{unit}" for unit in (*units, "%"))
    match = _AMOUNT.fullmatch(amount.strip()) if isinstance(amount, str) else None
    if match is None:
        if (
            figure.kind in ("count", "factor")
            and isinstance(amount, int | float)
            and not isinstance(amount, bool)
        ):
            return (
                (float(amount), False) if math.isfinite(amount) and amount >= 0 else f"{amount} is no amount"
            )
        return f"expected an amount with a unit, such as {expected}; got {amount!r}"
    number, unit = float(match["number"]), match["unit"].lower()
    if unit == "%":
        return number / 100, True
    if not unit and figure.kind in ("count", "factor"):
        return number, False
    if unit not in units:
        given = f"the unit {match['unit']!r}" if unit else "no unit"
        return f"{amount!r} has {given}; expected something like {expected}"
    return number * units[unit], False

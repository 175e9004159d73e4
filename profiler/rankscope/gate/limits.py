"""A limit on a figure of a report, and its name: `min_overlap_ratio`, `max_exposed_communication_ms`."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from rankscope.gate.figures import FIGURES_OF_SCOPE, find_figure
from rankscope.gate.row import Key, Row
from rankscope.model.figure import UNITS, Figure

Bound = Literal["min", "max"]

SCOPES = tuple(FIGURES_OF_SCOPE)

SELECTORS: dict[str, dict[str, str]] = {
    "run": {},
    "steady": {},
    "outside": {},
    "step": {"steps": "step"},
    "rank": {"ranks": "rank"},
    "group": {"group": "group", "op": "op"},
    "bucket": {"buckets": "bucket"},
}
"""Scope -> key in the limits file -> key of a row. Plural keys take a list of numbers, the others a pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit.

    Attributes:
        name: as the user wrote it, with its scope: "min_overlap_ratio", "step.max_duration_ms".
        scope: which rows of the report it is held against.
        figure: what is limited.
        bound: "min" (at least) or "max" (at most).
        value: in the figure's unit inside: ns, ratio, bytes ...
        select: key of a row -> the values, or the pattern with `*` and `?`, of the rows that count.
        allow_undefined: whether a figure without a value may pass.
    """

    name: str
    scope: str
    figure: Figure
    bound: Bound
    value: float
    select: tuple[tuple[str, str | frozenset[int]], ...] = ()
    allow_undefined: bool = False

    def selects(self, row: Row) -> bool:
        """Whether a row is one that this limit is meant for."""
        return all(_fits(row.keys.get(key), wanted) for key, wanted in self.select)

    def is_broken_by(self, value: float) -> bool:
        """Whether a value lies beyond the limit."""
        return value < self.value if self.bound == "min" else value > self.value

    def excess(self, value: float) -> float:
        """How far a value lies beyond the limit, in the figure's unit; negative on the good side."""
        return self.value - value if self.bound == "min" else value - self.value

    @property
    def text(self) -> str:
        """The limit for people.

        >>> from rankscope.gate.figures import OVERLAP
        >>> Limit(name="", scope="run", figure=OVERLAP, bound="min", value=0.6).text
        'at least 60.00 %'
        """
        return f"{'at least' if self.bound == 'min' else 'at most'} {self.figure.format(self.value)}"


def _fits(key: Key | None, wanted: str | frozenset[int]) -> bool:
    return key in wanted if isinstance(wanted, frozenset) else fnmatchcase(str(key), wanted)


def limit_names(scope: str) -> list[str]:
    """All names that a limit of a scope may have, without the scope.

    >>> "max_exposed_communication_ms" in limit_names("run")
    True
    """
    return [
        f"{bound}_{figure.name}{f'_{unit}' if unit else ''}"
        for figure in FIGURES_OF_SCOPE[scope]
        for bound in ("min", "max")
        for unit in UNITS[figure.kind]
    ]


def parse_limit_name(scope: str, name: str) -> tuple[Bound, Figure, float] | None:
    """Bound, figure and what one unit is inside; None if no limit of this scope has that name.

    >>> bound, figure, factor = parse_limit_name("run", "max_exposed_ms")
    >>> bound, figure.name, factor
    ('max', 'exposed_communication', 1000000)
    """
    bound, _, rest = name.partition("_")
    if bound not in ("min", "max"):
        return None
    candidates = [(rest, "")]
    if "_" in rest:
        stem, _, unit = rest.rpartition("_")
        candidates.append((stem, unit))
    for stem, unit in candidates:
        figure = find_figure(scope, stem)
        if figure is not None and unit in UNITS[figure.kind]:
            return ("min" if bound == "min" else "max"), figure, UNITS[figure.kind][unit]
    return None


def explain_unknown(scope: str, name: str) -> str:
    """Why `name` is no limit, and which it may have been meant to be."""
    bound, _, rest = name.partition("_")
    figure = find_figure(scope, rest) if bound in ("min", "max") else None
    if figure is not None:
        spelled = " or ".join(f"{name}_{unit}" for unit in UNITS[figure.kind])
        return f"{name} needs a unit: {spelled}"
    names = [*limit_names(scope), *SELECTORS[scope], "allow_undefined"]
    for elsewhere in SCOPES:
        if parse_limit_name(elsewhere, name) is not None:
            return f"{name} is no limit of {scope}; it is one of {elsewhere}"
    return f"{name} is no limit of {scope}{suggest(name, names)}"


def suggest(word: str, known: list[str]) -> str:
    """The known word that `word` may have been meant to be, or all of them if they are few; "" if neither."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]}?"
    return f" (known: {', '.join(known)})" if len(known) <= 12 else ""


def check_value(figure: Figure, value: object) -> str | None:
    """What is wrong with the value of a limit as it was written; None if nothing is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"expected a number, got {value!r}"
    if not math.isfinite(value):
        return f"expected a finite number, got {value}"
    if value < 0:
        return f"{value:g} is negative, and no figure is"
    if figure.kind == "ratio" and value > 1:
        hint = f"; did you mean {value / 100:g}?" if value <= 100 else ""
        return f"a ratio runs from 0 to 1, got {value:g}{hint}"
    return None

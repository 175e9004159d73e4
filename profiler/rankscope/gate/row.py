"""The figures of one place of a report."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

Value = float | None
Key = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of one place.

    Attributes:
        place: name for people: "whole run", "step 12", "rank 3".
        keys: what selects it: {"step": 12}.
        values: figure -> value; None where it is undefined.
        reasons: figure -> why it is undefined.
    """

    place: str
    keys: dict[str, Key] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def reason(self, figure: str) -> str:
        """Why a figure has no value here."""
        return self.reasons.get(figure, "the report gives no reason")


def mean(values: Sequence[int | None]) -> Value:
    """Mean; None if there is nothing, or something is unknown."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def median(values: Sequence[Value]) -> Value:
    """Median of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None

"""Limits held against a report."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.gate.limits import Limit
from rankscope.gate.measure import measure_scope, why_empty
from rankscope.gate.row import Row
from rankscope.model.report import Report
from rankscope.model.verdict import Measured, Outcome, Status

_PLACES_NAMED = 3


def check_limits(report: Report, limits: Sequence[Limit]) -> tuple[Outcome, ...]:
    """What became of each limit, in their order.

    A figure without a value is not measured: that fails unless the limit allows it, and then the values that
    there are decide.

    Args:
        report: the report.
        limits: the limits.
    """
    rows = {scope: measure_scope(report, scope) for scope in {limit.scope for limit in limits}}
    return tuple(_check_limit(report, limit, rows[limit.scope]) for limit in limits)


def _check_limit(report: Report, limit: Limit, rows: Sequence[Row]) -> Outcome:
    figure = limit.figure
    chosen = [row for row in rows if limit.selects(row)]
    known = [(row, value) for row in chosen if (value := row.values.get(figure.name)) is not None]
    unknown = [row for row in chosen if row.values.get(figure.name) is None]
    known.sort(key=lambda item: -limit.excess(item[1]))
    measured = [Measured(place=row.place, value=value, text=figure.format(value)) for row, value in known]
    broken = tuple(m for m in measured if m.value is not None and limit.is_broken_by(m.value))
    if broken:
        status: Status = "broken"
        message = _say_broken(limit, broken, len(measured))
    elif unknown or not chosen:
        status = "not measured, allowed" if limit.allow_undefined else "not measured"
        message = _say_unmeasured(report, limit, rows, unknown)
    else:
        status = "passed"
        first = measured[0]
        nearest = (
            f"{first.place}: " if len(measured) == 1 else f"{len(measured):,} values, nearest {first.place}: "
        )
        message = f"{figure.label}, {nearest}{first.text}; limit: {limit.text}"
    return Outcome(
        name=limit.name,
        suite=limit.scope,
        limit=limit.text,
        status=status,
        message=message,
        checked=len(measured),
        worst=measured[0] if measured else None,
        broken=broken,
    )


def _say_broken(limit: Limit, broken: Sequence[Measured], measured: int) -> str:
    named = ", ".join(f"{m.text} in {m.place}" for m in broken[:_PLACES_NAMED])
    more = f" and {len(broken) - _PLACES_NAMED:,} more" if len(broken) > _PLACES_NAMED else ""
    of = f" ({len(broken):,} of {measured:,})" if measured > 1 else ""
    return f"{limit.figure.label} is {named}{more}{of}; limit: {limit.text}"


def _say_unmeasured(report: Report, limit: Limit, rows: Sequence[Row], unknown: Sequence[Row]) -> str:
    label = limit.figure.label
    if not rows:
        return f"{label} was not measured: {why_empty(report, limit.scope)}; limit: {limit.text}"
    if not unknown:
        wanted = ", ".join(f"{key}={_spell(value)}" for key, value in limit.select)
        return f"{label} was not measured: no {limit.scope} of the run fits {wanted}; limit: {limit.text}"
    first = unknown[0]
    more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
    reason = first.reason(limit.figure.name)
    return f"{label} was not measured in {first.place}{more}: n/a ({reason}); limit: {limit.text}"


def _spell(wanted: str | frozenset[int]) -> str:
    return wanted if isinstance(wanted, str) else ",".join(map(str, sorted(wanted)))

"""The limits file, `rankscope.toml`. Docs: docs/ci.md."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankscope.errors import UsageError
from rankscope.gate.figures import qualify
from rankscope.gate.limits import (
    SCOPES,
    SELECTORS,
    Limit,
    check_value,
    explain_unknown,
    parse_limit_name,
    suggest,
)
from rankscope.gate.regressions import COMPARED_SCOPES, RegressionLimit, read_regressions

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TOP_KEYS = ("limits", "regression", "baseline", "allow_undefined")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsFile:
    """What a limits file says.

    Attributes:
        limits: limits on the run's own figures.
        regressions: limits on how much worse figures may become against the baseline.
        baseline: path of the baseline, relative to the limits file; None if it names none.
    """

    limits: tuple[Limit, ...] = ()
    regressions: tuple[RegressionLimit, ...] = ()
    baseline: str | None = None


def parse_limits_file(text: str, name: str, *, allow_undefined: bool = False) -> LimitsFile:
    """The content of a limits file.

    Args:
        text: TOML.
        name: the file's name, for messages.
        allow_undefined: whether figures without a value may pass, whatever the file says.

    Raises:
        UsageError: naming everything that is wrong with the file.
    """
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} is not TOML: {error}") from error
    faults: list[str] = []
    for key in tree:
        if key not in _TOP_KEYS:
            faults.append(f"{key} is no key of a limits file{_place_hint(key)}")
    allow = _read_flag(tree, "allow_undefined", "", faults) or allow_undefined
    limits = _read_limits(tree.get("limits", {}), allow, faults)
    regressions = _read_regressions(tree.get("regression", {}), allow, faults)
    baseline = tree.get("baseline")
    if baseline is not None and not isinstance(baseline, str):
        faults.append(f"baseline: expected the path of a baseline, got {baseline!r}")
    if not faults and not limits and not regressions:
        faults.append("it holds no limit; add some, such as min_overlap_ratio = 0.5 under [limits]")
    if faults:
        raise UsageError(f"{name} has {_count(len(faults))}:\n  " + "\n  ".join(faults))
    return LimitsFile(limits=tuple(limits), regressions=regressions, baseline=baseline)


def parse_limit_flags(texts: Sequence[str], *, allow_undefined: bool = False) -> tuple[Limit, ...]:
    """Limits of texts such as "min_overlap_ratio=0.6" and "step.max_duration_ms=120".

    Raises:
        UsageError: naming everything that is wrong with them.
    """
    faults: list[str] = []
    limits: list[Limit] = []
    for text in texts:
        name, equals, written = text.partition("=")
        scope, dot, bare = name.strip().rpartition(".")
        scope = scope if dot else "run"
        if not equals:
            faults.append(f"{text!r}: expected NAME=NUMBER, such as min_overlap_ratio=0.6")
        elif scope not in SCOPES:
            faults.append(f"{name}: {scope} is no scope{suggest(scope, list(SCOPES))}")
        else:
            limit = _read_limit(scope, bare, _number(written), (), allow_undefined, faults)
            limits += [limit] if limit else []
    _find_contradictions(limits, faults)
    if faults:
        raise UsageError("--limit:\n  " + "\n  ".join(faults))
    return tuple(limits)


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def _count(faults: int) -> str:
    return "a fault" if faults == 1 else f"{faults} faults"


def _place_hint(key: str) -> str:
    if any(parse_limit_name(scope, key) for scope in SCOPES):
        return "; limits stand under [limits]"
    if key in SCOPES:
        return f"; did you mean [limits.{key}]?"
    return suggest(key, list(_TOP_KEYS))


def _read_flag(table: Mapping[str, Any], key: str, where: str, faults: list[str]) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        faults.append(f"{where}{key}: expected true or false, got {value!r}")
    return value is True


def _read_limits(table: object, allow_undefined: bool, faults: list[str]) -> list[Limit]:
    if not isinstance(table, dict):
        faults.append(f"limits: expected a table [limits], got {table!r}")
        return []
    own = {}
    for key, value in table.items():
        if key not in SCOPES and isinstance(value, dict | list):
            faults.append(f"limits.{key}: {key} is no scope{suggest(key, list(SCOPES))}")
        elif key not in SCOPES:
            own[key] = value
    limits = _read_table("run", own, "limits", allow_undefined, faults)
    for scope in SCOPES:
        tables = table.get(scope, [])
        for number, inner in enumerate(tables if isinstance(tables, list) else [tables], start=1):
            where = f"limits.{scope}" + (f" number {number}" if isinstance(tables, list) else "")
            if isinstance(inner, dict):
                limits += _read_table(scope, inner, where, allow_undefined, faults)
            else:
                faults.append(f"{where}: expected a table [limits.{scope}], got {inner!r}")
    return limits


def _read_table(
    scope: str, table: Mapping[str, Any], where: str, allow_undefined: bool, faults: list[str]
) -> list[Limit]:
    selectors = SELECTORS[scope]
    mine: list[str] = []
    allow = _read_flag(table, "allow_undefined", f"{where}: ", mine) or allow_undefined
    select: list[tuple[str, str | frozenset[int]]] = []
    for key, row_key in selectors.items():
        if key in table:
            wanted = _read_selector(key, table[key], f"{where}: ", mine)
            select += [(row_key, wanted)] if wanted is not None else []
    limits = []
    unknown: list[str] = []
    for name, value in table.items():
        if name in selectors or name == "allow_undefined":
            continue
        limit = _read_limit(scope, name, value, tuple(select), allow, unknown)
        limits += [limit] if limit else []
    mine += [f"{where}: {fault}" for fault in unknown]
    contradictions: list[str] = []
    _find_contradictions(limits, contradictions)
    faults += [*mine, *(f"{where}: {fault}" for fault in contradictions)]
    return limits


def _read_selector(key: str, value: object, where: str, faults: list[str]) -> str | frozenset[int] | None:
    if key in ("group", "op"):
        if isinstance(value, str):
            return value
        faults.append(f"{where}{key}: expected a name or a pattern with * and ?, got {value!r}")
        return None
    numbers = value if isinstance(value, list) else [value]
    if all(isinstance(n, int) and not isinstance(n, bool) for n in numbers) and numbers:
        return frozenset(numbers)
    faults.append(f"{where}{key}: expected a list of whole numbers, got {value!r}")
    return None


def _read_limit(
    scope: str,
    name: str,
    value: object,
    select: tuple[tuple[str, str | frozenset[int]], ...],
    allow_undefined: bool,
    faults: list[str],
) -> Limit | None:
    parsed = parse_limit_name(scope, name)
    if parsed is None:
        faults.append(explain_unknown(scope, name))
        return None
    bound, figure, factor = parsed
    fault = check_value(figure, value)
    if fault is not None or not isinstance(value, int | float):
        faults.append(f"{name}: {fault}")
        return None
    return Limit(
        name=qualify(scope, name),
        scope=scope,
        figure=figure,
        bound=bound,
        value=value * factor,
        select=select,
        allow_undefined=allow_undefined,
    )


def _find_contradictions(limits: Iterable[Limit], faults: list[str]) -> None:
    """Two limits of one figure that no value can keep, or that say the same."""
    seen: dict[tuple[str, str, str], Limit] = {}
    for limit in limits:
        key = (limit.scope, limit.figure.name, limit.bound)
        if key in seen:
            faults.append(f"{limit.name} limits the same figure as {seen[key].name}")
        seen[key] = limit
    for (scope, figure, bound), limit in seen.items():
        other = seen.get((scope, figure, "max"))
        if bound == "min" and other is not None and limit.value > other.value:
            faults.append(f"{limit.name} is greater than {other.name}: no value can keep both")


def _read_regressions(table: object, allow_undefined: bool, faults: list[str]) -> tuple[RegressionLimit, ...]:
    if not isinstance(table, dict):
        faults.append(f"regression: expected a table [regression], got {table!r}")
        return ()
    mine: list[str] = []
    allow = _read_flag(table, "allow_undefined", "", mine) or allow_undefined
    amounts: dict[str, object] = {}
    for key, value in table.items():
        if key in COMPARED_SCOPES and isinstance(value, dict):
            amounts |= {f"{key}.{name}": amount for name, amount in value.items()}
        elif key != "allow_undefined":
            amounts[key] = value
    limits = read_regressions(amounts, mine, allow_undefined=allow)
    faults += [f"regression: {fault}" for fault in mine]
    return limits

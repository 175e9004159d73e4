"""The reason of every figure that has no value."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from rankscope.model.report import Measures, Report
from rankscope.model.run import Run
from rankscope.pipeline.undefined_reasons import (
    ADVICE_REASONS,
    CAP_REASONS,
    CLOCK_REASONS,
    NO_COMMUNICATION,
    NO_MARKERS,
    ROW_REASONS,
    STRAGGLER_REASONS,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_FIGURE = re.compile(r"_(?:ns|ns_per_step|ratio|bytes|gbps|mb)$|^(?:sequence|last_rank|peer|slowdown)$")
_KEYS = {
    "ranks": ("rank", "device"),
    "windows": ("rank", "window", "device"),
    "steps": ("step", "rank", "device"),
    "groups": ("group", "op"),
}
"""Sections whose rows are named one by one; a reason of the others is given for all rows: they may be many."""

UNKNOWN_REASON = "this run does not show it"


def explain_undefined(report: Report, run: Run) -> Report:
    """The report with a reason for every None in its figures.

    Paths name a list's row by its keys, `ranks[rank=3,device=0].overlap_ratio`; `[*]` stands for every row.
    """
    reasons: dict[str, str] = {}
    _explain_totals(report, run, reasons)
    _explain_coverage(report, reasons)
    for section, rows in sections_of_rows(report):
        _explain_rows(section, rows, report, reasons)
    _explain_clock(report, reasons)
    _explain_straggler(report, reasons)
    _explain_advice(report, reasons)
    return replace(report, undefined=reasons)


def sections_of_rows(value: DataclassInstance, path: str = "") -> Iterator[tuple[str, Sequence[Any]]]:
    """(path, rows) of every list of rows in a report, at any depth outside rows, empty ones left out."""
    for field in fields(value):
        inner, name = getattr(value, field.name), f"{path}{field.name}"
        if is_dataclass(inner) and not isinstance(inner, type):
            yield from sections_of_rows(inner, f"{name}.")
        elif isinstance(inner, list) and inner and is_dataclass(inner[0]):
            yield name, inner


def figures_of(row: DataclassInstance) -> list[str]:
    """Names of the fields of a row that are figures; the others say what the row is about."""
    return [f.name for f in fields(row) if _FIGURE.search(f.name)]


def _explain_rows(section: str, rows: Sequence[Any], report: Report, reasons: dict[str, str]) -> None:
    known = ROW_REASONS.get(section, {})
    for name in dict.fromkeys((*figures_of(rows[0]), *known)):
        undefined = [row for row in rows if getattr(row, name) is None]
        if not undefined:
            continue
        by_reason = defaultdict(list)
        reason = known.get(name, UNKNOWN_REASON)
        for row in undefined:
            by_reason[reason if isinstance(reason, str) else reason(row, report)].append(row)
        if section not in _KEYS or (len(by_reason) == 1 and len(undefined) == len(rows) > 1):
            reasons[f"{section}[*].{name}"] = "; or ".join(by_reason)
        else:
            for text, of_rows in by_reason.items():
                reasons.update((f"{section}[{_keys(section, row)}].{name}", text) for row in of_rows)


def _keys(section: str, row: object) -> str:
    pairs = [(key, getattr(row, key)) for key in _KEYS[section]]
    return ",".join(f"{key}={value}" for key, value in pairs if value is not None or key == "step")


def _explain_totals(report: Report, run: Run, reasons: dict[str, str]) -> None:
    totals = report.totals
    if not report.ranks:
        nothing = "no device events in any file" if run.windows else "no file could be read"
        _explain_measures("run", totals.run, nothing, nothing, reasons)
    else:
        _explain_measures("run", totals.run, NO_COMMUNICATION, "a rank has no window", reasons)
    no_window = "steps have no window of their own, since their work overlaps"
    if totals.steady is None:
        reasons["totals.steady"] = _why_no_steady_steps(report)
    else:
        _explain_measures("steady", totals.steady, "no communication in the steady steps", no_window, reasons)
    if totals.outside_steps is None:
        reasons["totals.outside_steps"] = NO_MARKERS
    else:
        nothing = "no communication outside steps"
        _explain_measures("outside_steps", totals.outside_steps, nothing, no_window, reasons)


def _explain_measures(
    name: str, measures: Measures, no_ratio: str, no_window: str, reasons: dict[str, str]
) -> None:
    for figure in figures_of(measures):
        if getattr(measures, figure) is None:
            reasons[f"totals.{name}.{figure}"] = no_ratio if figure == "overlap_ratio" else no_window


def _why_no_steady_steps(report: Report) -> str:
    if not report.ranks:
        return "nothing was analysed"
    if not report.run.steps:
        return NO_MARKERS
    return "every recorded step lies before DDP rebuilt its buckets; record later steps"


def _explain_coverage(report: Report, reasons: dict[str, str]) -> None:
    coverage = report.coverage
    for field in fields(coverage):
        if getattr(coverage, field.name) is None:
            has_communication = coverage.named is not None
            is_steps = field.name == "in_steps" and has_communication
            reasons[f"coverage.{field.name}"] = NO_MARKERS if is_steps else NO_COMMUNICATION


def _explain_clock(report: Report, reasons: dict[str, str]) -> None:
    clock = report.run.clock
    for name in ("median", "max"):
        if getattr(clock.residual_ns, name) is None:
            reasons[f"run.clock.residual_ns.{name}"] = CLOCK_REASONS["residual_ns"]
    for rank, uncertainty in clock.uncertainty_ns.items():
        if uncertainty is None:
            reasons[f"run.clock.uncertainty_ns[{rank}]"] = CLOCK_REASONS["uncertainty_ns"]


def _explain_straggler(report: Report, reasons: dict[str, str]) -> None:
    straggler = report.straggler
    if straggler is None:
        return
    if straggler.verdict != "found":
        for name in figures_of(straggler):
            if getattr(straggler, name) is None:
                reasons[f"straggler.{name}"] = f"no straggler was named: {straggler.reason}"
        return
    if straggler.cause is None:
        reasons["straggler.cause"] = straggler.cause_reason or "no cause stands out"
    for name, reason in STRAGGLER_REASONS.items():
        if getattr(straggler, name) is None:
            reasons[f"straggler.{name}"] = reason


def _explain_advice(report: Report, reasons: dict[str, str]) -> None:
    """Its own sentence says why something is not recommended or not known."""
    advice = report.advice
    if advice is None:
        return
    for name, reason in CAP_REASONS.items():
        if getattr(advice.bucket_cap_mb, name) is None:
            is_best = name == "best" and advice.reason
            reasons[f"advice.bucket_cap_mb.{name}"] = advice.reason if is_best else reason
    for name, reason in ADVICE_REASONS.items():
        if getattr(advice, name) is None:
            is_declined = advice.verdict == "declined" and advice.reason
            reasons[f"advice.{name}"] = advice.reason if is_declined else reason

"""Every figure of a report that is None has a reason (DESIGN.md: undefined is None, and the reason is said)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from rankscope.model.report import Report
from rankscope.model.run import Run
from rankscope.pipeline import AnalyzeOptions, analyze_run
from support.reading import report_of
from support.trace_text import Row, annotation, collective, cpu_op, gloo, kernel, launch, memcpy, nccl, step

_FIGURE = re.compile(r"(?:_ns|_ratio|_bytes|_gbps)$")
_COVERAGE = ("matched", "sized", "named", "in_steps")
_PATH = re.compile(r"^(\w+)\[(.*)\]\.(\w+)$")
_SECTIONS_OF_ROWS = ("ranks", "windows", "steps", "groups", "collectives", "communications", "p2p", "buckets")


def undefined_figures(report: Report) -> Iterator[tuple[str, Any, str]]:
    """(section, row or None, figure) of every figure without a value."""
    for section in _SECTIONS_OF_ROWS:
        for row in getattr(report, section):
            for field in fields(row):
                if _FIGURE.search(field.name) and getattr(row, field.name) is None:
                    yield section, row, field.name
    for name in ("run", "steady", "outside_steps"):
        measures = getattr(report.totals, name)
        if measures is None:
            yield f"totals.{name}", None, ""
        else:
            yield from (
                (f"totals.{name}", None, f.name)
                for f in fields(measures)
                if getattr(measures, f.name) is None
            )
    yield from (("coverage", None, name) for name in _COVERAGE if getattr(report.coverage, name) is None)


def has_reason(report: Report, section: str, row: Any, figure: str) -> bool:
    return any(reason and applies(path, section, row, figure) for path, reason in report.undefined.items())


def applies(path: str, section: str, row: Any, figure: str) -> bool:
    """Whether a path of `undefined` is about a figure; `section` alone is about all figures in it."""
    if row is None:
        return path in (section, f"{section}.{figure}")
    match = _PATH.match(path)
    if match is None or match.group(1) != section or match.group(3) != figure:
        return False
    keys = match.group(2)
    if keys == "*":
        return True
    pairs = [pair.partition("=") for pair in re.split(r",(?=\w+=)", keys)]
    return all(str(getattr(row, key)) == value for key, _, value in pairs)


ARGS = collective("allreduce", 8, 8, group="0", ranks="[0, 1]", size=2)
STEPPED = [
    nccl(-50, 10, args=ARGS),
    step(1, 0, 100), launch(1, 1), launch(2, 2),
    kernel("a", 3, 10, correlation=1), nccl(5, 9, correlation=2, args=ARGS),
    step(2, 100, 100), launch(3, 101), kernel("a", 103, 10, correlation=3), memcpy(150, 5),
]  # fmt: skip
RUNS: dict[str, Mapping[int, Sequence[Row]]] = {
    "steps, and something outside them": {0: STEPPED, 1: STEPPED},
    "no steps, no sizes": {0: [kernel("a", 0, 10), nccl(5, 10), nccl(30, 0)]},
    "no communication": {
        0: [kernel("a", 0, 10)],
        1: [step(1, 0, 9), launch(1, 1), kernel("a", 3, 10, correlation=1)],
    },
    "a rank without device events": {0: STEPPED, 1: [cpu_op("x", 0, 1)]},
    "two devices": {0: [kernel("a", 0, 10), nccl(0, 5, device=1)]},
    "cpu": {0: [step(1, 0, 50), cpu_op("x", 0, 10), gloo("all_reduce", 5, 10)], 1: [cpu_op("x", 0, 10)]},
    "nothing": {0: [annotation("mine", 0, 1)]},
    "no events": {0: []},
}


@pytest.mark.parametrize("name", RUNS)
def test_every_undefined_figure_has_a_reason(name: str) -> None:
    report = report_of(RUNS[name], options=AnalyzeOptions(detail="full"))
    silent = [
        f"{section} {figure} {row}"
        for section, row, figure in undefined_figures(report)
        if not has_reason(report, section, row, figure)
    ]
    assert silent == []


def test_a_run_without_windows_says_why_it_has_no_figures() -> None:
    report = analyze_run(Run(name="r", source="r", windows=()))
    assert report.undefined["totals.run.overlap_ratio"] == "no file could be read"
    assert "totals.steady" in report.undefined


@pytest.mark.parametrize("name", RUNS)
def test_no_reason_for_what_has_a_value(name: str) -> None:
    report = report_of(RUNS[name], options=AnalyzeOptions(detail="full"))
    stale = [
        path
        for path in report.undefined
        if (match := _PATH.match(path)) is not None
        and not any(
            applies(path, match.group(1), row, match.group(3)) and getattr(row, match.group(3)) is None
            for row in getattr(report, match.group(1))
        )
    ]
    assert stale == []


def test_figures_are_never_nan_nor_infinite() -> None:
    def walk(value: Any) -> Iterator[float]:
        if is_dataclass(value):
            for field in fields(value):
                yield from walk(getattr(value, field.name))
        elif isinstance(value, list):
            for inner in value:
                yield from walk(inner)
        elif isinstance(value, dict):
            yield from walk(list(value.values()))
        elif isinstance(value, float):
            yield value

    for events in RUNS.values():
        for number in walk(report_of(events, options=AnalyzeOptions(detail="full"))):
            assert number == number
            assert abs(number) != float("inf")

"""Verdicts and comparisons made by hand for the golden files."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from rankscope.gate.compare import compare
from rankscope.gate.limits_file import parse_limit_flags
from rankscope.gate.regressions import parse_regressions
from rankscope.gate.verdict import judge_comparison, judge_run
from rankscope.model.comparison import Comparison
from rankscope.model.report import GroupRow
from rankscope.model.snapshot import Part
from rankscope.model.verdict import Verdict
from support.gate_reports import MS, make_side, make_snapshot, two_rank_report

HOSTILE = "a|b`c`\r\n::error file=x::boom <img src=x onerror=alert(1)> [l](javascript:alert(1)) @team #7 ]]> \ud800\x00"
FORMULA = '=HYPERLINK("http://example.invalid")'


@dataclass(frozen=True)
class Case:
    """What is rendered."""

    verdict: Verdict
    comparison: Comparison


@pytest.fixture(scope="session")
def cases() -> dict[str, Case]:
    """By name."""
    return {"kept": make_kept(), "broken": make_broken(), "hostile": make_hostile(), "empty": make_empty()}


def make_kept() -> Case:
    """All limits are kept, and nothing changed but by noise."""
    base = make_snapshot([0.50, 0.52, 0.49, 0.51], name="main")
    head = make_snapshot([0.51, 0.50, 0.52, 0.50], name="branch")
    comparison = compare(make_side(base), make_side(head), parse_regressions(["overlap_ratio=2pp"]))
    limits = parse_limit_flags(["min_overlap_ratio=0.5", "step.max_duration_ms=30"])
    report = replace(two_rank_report(), run=replace(two_rank_report().run, missing_ranks=[]))
    return Case(judge_run(report, limits, comparison), comparison)


def make_broken() -> Case:
    """A limit of each status; overlap became significantly worse, the step shorter; parts of every kind changed."""
    base = make_snapshot([0.50, 0.52, 0.49, 0.51, 0.50], name="main")
    head = make_snapshot([0.41, 0.40, 0.42, 0.40, 0.41], name="branch", durations=[90.0 * MS] * 5)
    old = [collective("all_reduce", 30, 10), kernel("gemm", 20), kernel("old", 3)]
    new = [
        collective("all_reduce", 30, 14),
        collective("all_gather", 2, 2),
        kernel("gemm", 22),
        kernel("new", 1),
    ]
    limits = parse_regressions(["overlap_ratio=2pp,steady.duration=5%,exposed=25%"])
    comparison = compare(make_side(base, parts=old), make_side(head, parts=new), limits)
    flags = parse_limit_flags(
        ["min_overlap_ratio=0.9", "step.min_overlap_ratio=0.9", "bucket.max_exposed_ms=3"]
    )
    allowed = parse_limit_flags(["max_exposed_wait_ms=3"], allow_undefined=True)
    return Case(judge_run(two_rank_report(), flags + allowed, comparison), comparison)


def make_hostile() -> Case:
    """Names that try to be more than names, in every place where a name may stand."""
    group = GroupRow(group=HOSTILE, ranks=[0, 1], op=FORMULA, count=1, size_bytes=None, communication_ns=4 * MS,
                     exposed_communication_ns=3 * MS, overlap_ratio=0.25)  # fmt: skip
    report = two_rank_report()
    report = replace(
        report,
        groups=[group],
        run=replace(report.run, name=HOSTILE, source=HOSTILE),
        undefined={f"groups[group={HOSTILE},op={FORMULA}].bus_bandwidth_gbps": HOSTILE},
    )
    base, head = make_snapshot([0.5] * 10, name=HOSTILE), make_snapshot([0.4] * 10, name=HOSTILE)
    base = replace(
        base, undefined={"idle": f"{FORMULA} {HOSTILE}"}, devices=[HOSTILE], versions={HOSTILE: HOSTILE}
    )
    head = replace(head, figures={**head.figures, "idle": 5.0})
    parts = [collective(FORMULA, 4, 3, group=HOSTILE), kernel(HOSTILE, 2), kernel("k" * 5000, 1)]
    comparison = compare(make_side(base), make_side(head, parts=parts), parse_regressions(["idle=1%"]))
    limits = parse_limit_flags(["group.min_overlap_ratio=0.9", "group.min_bus_bandwidth_gbps=1"])
    return Case(judge_run(report, limits, comparison), comparison)


def make_empty() -> Case:
    """No steps, no limits, no parts, nothing in common."""
    empty = make_snapshot([], name="a", steps=0)
    comparison = compare(make_side(empty, has_kernels=False), make_side(replace(empty, name="b")))
    return Case(judge_comparison(comparison, "b"), comparison)


def collective(op: str, ms: float, exposed: float, *, group: str = "dp [0-1]") -> Part:
    """A collective; times in ms."""
    return Part(
        part_class="collective", name=op, group=group, count=4, time_ns=ms * MS, exposed_ns=exposed * MS
    )


def kernel(name: str, ms: float) -> Part:
    """A kernel; its time in ms."""
    return Part(part_class="compute", name=name, count=10, time_ns=ms * MS)

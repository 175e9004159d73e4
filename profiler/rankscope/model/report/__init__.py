"""The report: the contract between analyses, renderers, gate and dashboard.

Times are int nanoseconds, relative to `run.origin_ns` where they are points in time; sizes are bytes; ratios
run from 0 to 1. A figure that is undefined is None, and `Report.undefined` holds the reason under its path.
Most sections have a module of their own; all are imported from here. Docs: docs/formats.md. Version history of the
format:

1.0  first version
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rankscope.model.report.advice import Advice, AlternativeRow, CapAdvice, NetworkRow, Prediction
from rankscope.model.report.buckets import BucketRow, LayoutBucket, LayoutRow
from rankscope.model.report.communication import (
    CollectiveRow,
    CommunicationRow,
    GroupRow,
    PointToPointRow,
    Quantiles,
    WaitQuantiles,
)
from rankscope.model.report.measures import Measures, RankRow, StepRow, Totals, WindowRow
from rankscope.model.report.run import Clock, Coverage, ProblemRow, Residual, RunFacts
from rankscope.model.report.stragglers import CausedWaitRow, Straggler, StragglerEvidence, StragglerRank

__all__ = [
    "REPORT_NAME",
    "REPORT_VERSION",
    "SUMMARY_ROW_LIMIT",
    "Advice",
    "AlternativeRow",
    "BucketRow",
    "CapAdvice",
    "CausedWaitRow",
    "Clock",
    "CollectiveRow",
    "CommunicationRow",
    "Coverage",
    "Finding",
    "Format",
    "GroupRow",
    "LayoutBucket",
    "LayoutRow",
    "Measures",
    "NetworkRow",
    "PointToPointRow",
    "Prediction",
    "ProblemRow",
    "QuantileRow",
    "Quantiles",
    "RankRow",
    "Report",
    "Residual",
    "RunFacts",
    "StepRow",
    "Straggler",
    "StragglerEvidence",
    "StragglerRank",
    "Tool",
    "Totals",
    "WaitQuantiles",
    "WindowRow",
]

REPORT_NAME = "rankscope-report"
REPORT_VERSION = "1.0"

SUMMARY_ROW_LIMIT = 50_000
"""Above this many collective or bucket rows the summary keeps quantiles and the worst rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Name and version of the report's format."""

    name: str = REPORT_NAME
    version: str = REPORT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The tool that wrote the report."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileRow:
    """Rows of one kind, of which the summary holds the worst only; see `SUMMARY_ROW_LIMIT`.

    Attributes:
        table: "collectives" or "buckets".
        group, op, size_bytes: of collectives.
        layout, index: of buckets.
        count: how many there are; kept: how many of them the report holds.
        transfer_ns: quantiles of their transfer times; None if none is known.
        wait_ns: quantiles of waits: of a collective the longest of its ranks.
        lateness_ns: quantiles of the lateness of collectives.
        exposed_ns: quantiles of the exposed time of buckets.
    """

    table: Literal["collectives", "buckets"]
    group: str | None = None
    op: str | None = None
    size_bytes: int | None = None
    layout: int | None = None
    index: int | None = None
    count: int
    kept: int
    transfer_ns: Quantiles | None = None
    wait_ns: Quantiles | None = None
    lateness_ns: Quantiles | None = None
    exposed_ns: Quantiles | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a person should see: what, where and what to do.

    Attributes:
        rule: slug of the rule, explained in docs/findings.md.
        severity: "critical", "warning" or "info".
    """

    rule: str
    severity: Literal["critical", "warning", "info"]
    rank: int | None
    step: int | None
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All results of one run."""

    format: Format = field(default_factory=Format)
    tool: Tool
    run: RunFacts
    totals: Totals
    coverage: Coverage = field(default_factory=Coverage)
    ranks: list[RankRow] = field(default_factory=list)
    windows: list[WindowRow] = field(default_factory=list)
    steps: list[StepRow] = field(default_factory=list)
    groups: list[GroupRow] = field(default_factory=list)
    collectives: list[CollectiveRow] = field(default_factory=list)
    communications: list[CommunicationRow] = field(default_factory=list)
    p2p: list[PointToPointRow] = field(default_factory=list)
    bucket_layouts: list[LayoutRow] = field(default_factory=list)
    buckets: list[BucketRow] = field(default_factory=list)
    quantiles: list[QuantileRow] = field(default_factory=list)
    straggler: Straggler | None = None
    caused_waits: list[CausedWaitRow] = field(default_factory=list)
    advice: Advice | None = None
    findings: list[Finding] = field(default_factory=list)
    problems: list[ProblemRow] = field(default_factory=list)
    undefined: dict[str, str] = field(default_factory=dict)

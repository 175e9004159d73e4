"""What the report points out: rules and their thresholds."""

from __future__ import annotations

import pytest

from rankscope.model.report import Finding
from rankscope.model.run import Run
from rankscope.pipeline import analyze_run
from support.reading import report_of
from support.trace_text import Row, collective, kernel, launch, nccl, step

GENERIC = "ncclDevKernel_Generic(ncclDevComm*)"


def of_rule(rule: str, *events: Row) -> list[Finding]:
    return [finding for finding in report_of({0: events}).findings if finding.rule == rule]


def exposed(*events: Row) -> list[Finding]:
    return of_rule("exposed-communication", *events)


def test_nothing_to_find() -> None:
    assert analyze_run(Run(name="r", source="r", windows=())).findings == []
    assert exposed(kernel("a", 0, 100)) == []
    assert exposed(kernel("a", 0, 100), nccl(0, 100)) == []


@pytest.mark.parametrize(
    ("exposed_us", "severity"),
    [(4, None), (5, "warning"), (24, "warning"), (25, "critical"), (100, "critical")],
)
def test_share_of_the_window_that_is_exposed(exposed_us: int, severity: str | None) -> None:
    """Of a window of 100 us, with the rest computing: from 5 % worth saying, from 25 % critical."""
    events = [nccl(100 - exposed_us, exposed_us)]
    if exposed_us < 100:
        events.append(kernel("a", 0, 100 - exposed_us))
    found = exposed(*events)
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    if found:
        assert f"{exposed_us}.0 %" in found[0].message
        assert "the recorded time" in found[0].message
        assert "all_reduce" in found[0].hint


def test_with_steps_the_steady_ones_are_judged() -> None:
    """30 us exposed of a step of 100 us; the much longer communication outside steps is not counted."""
    events = [
        nccl(-1000, 800),
        step(1, 0, 100), launch(1, 1), launch(2, 2),
        kernel("a", 0, 50, correlation=1),
        nccl(50, 30, correlation=2, args=collective("allreduce", 8, 8)),
    ]  # fmt: skip
    (finding,) = exposed(*events)
    assert "30.0 % of the steady steps" in finding.message
    assert "(30.0 us over all ranks)" in finding.message
    assert finding.severity == "critical"


def test_communication_of_unknown_operation() -> None:
    """Worth saying where more than a tenth of the time has none."""
    assert of_rule("unknown-operations", nccl(0, 90), nccl(100, 10, name=GENERIC)) == []
    (finding,) = of_rule("unknown-operations", nccl(0, 89), nccl(100, 11, name=GENERIC))
    assert finding.severity == "info"
    assert "11.0 %" in finding.message


def test_the_most_severe_come_first() -> None:
    report = report_of({0: [nccl(0, 100, name=GENERIC), kernel("a", 100, 100)]})
    ranks = [{"critical": 0, "warning": 1, "info": 2}[finding.severity] for finding in report.findings]
    assert len(ranks) >= 2
    assert ranks == sorted(ranks)

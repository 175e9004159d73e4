from __future__ import annotations

from typing import Any

import pytest

from rankscope.model.report import (
    Advice,
    CapAdvice,
    Measures,
    Prediction,
    ProblemRow,
    Straggler,
    Totals,
)
from rankscope.renderers.verdict import describe_run, write_verdict

from .conftest import MakeReport, MakeStep


def make_straggler(**changed: Any) -> Straggler:
    known: dict[str, Any] = {
        "verdict": "found",
        "scope": "rank",
        "rank": 3,
        "ranks": [3],
        "cause": "input",
        "cost_ns_per_step": 12_100_000,
        "slowdown": 1.2,
        "confidence": "high",
        "reason": "",
        "by_rank": [],
    }
    return Straggler(**{**known, **changed})


def predict(cap: float, step_ns: int) -> Prediction:
    return Prediction(
        bucket_cap_mb=cap, step_ns=step_ns, exposed_ns=0, overlap_ratio=1.0, step_low_ns=0, step_high_ns=0
    )


def test_nothing_measured(make_report: MakeReport) -> None:
    assert write_verdict(make_report(ranks=[])) == (
        "Nothing was measured: the run holds no trace that could be analysed.",
    )


def test_the_recording(make_report: MakeReport) -> None:
    assert write_verdict(make_report()) == (
        "50.0 % of the communication time is hidden behind compute. On average a rank spends 200 us on "
        "communication that nothing hides, 20.0 % of its recording of 1.00 ms.",
    )


def test_steady_steps(make_report: MakeReport, make_step: MakeStep) -> None:
    totals = Totals(run=Measures(), steady=Measures(exposed_communication_ns=50_000, overlap_ratio=0.75))
    report = make_report(run={"steady_steps": [4]}, steps=[make_step(4)], totals=totals)
    assert write_verdict(report)[0] == (
        "75.0 % of the communication time is hidden behind compute. In an average steady step a rank spends "
        "50.0 us on communication that nothing hides, 10.0 % of 500 us."
    )


def test_an_undefined_overlap_is_said_with_its_reason(make_report: MakeReport) -> None:
    report = make_report(
        totals=Totals(run=Measures()), undefined={"totals.run.overlap_ratio": "no communication kernels"}
    )
    assert write_verdict(report)[0] == (
        "How much communication hides behind compute: n/a (no communication kernels)."
    )


@pytest.mark.parametrize(
    ("straggler", "said"),
    [
        ({}, "The other ranks wait for rank 3, 12.1 ms per step; cause: input (confidence high)."),
        (
            {"scope": "host", "rank": None, "ranks": [8, 9, 10, 11], "cause": None, "confidence": None},
            "The other ranks wait for host (ranks 8-11), 12.1 ms per step.",
        ),
        ({"ranks": [], "cost_ns_per_step": None, "cause": None, "confidence": "low"},
         "The other ranks wait for rank 3 (confidence low)."),
        ({"verdict": "none"}, "No rank holds the others up."),
        (
            {"verdict": "inconclusive", "reason": "7 of 8 ranks are missing."},
            "Whether one rank holds the others up cannot be told: 7 of 8 ranks are missing.",
        ),
    ],
)  # fmt: skip
def test_straggler(make_report: MakeReport, straggler: dict[str, Any], said: str) -> None:
    assert write_verdict(make_report(straggler=make_straggler(**straggler)))[1] == said


@pytest.mark.parametrize(
    ("cap", "said"),
    [
        (
            CapAdvice(current=25, best=10, predictions=[predict(25, 31_000_000), predict(10, 29_000_000)]),
            "Set bucket_cap_mb=10 instead of 25: the step is predicted to take 29.0 ms instead of 31.0 ms.",
        ),
        (CapAdvice(current=None, best=2.5, predictions=[]), "Set bucket_cap_mb=2.5."),
    ],
)
def test_advice(make_report: MakeReport, cap: CapAdvice, said: str) -> None:
    assert write_verdict(make_report(advice=Advice(bucket_cap_mb=cap, verdict="change")))[1] == said


@pytest.mark.parametrize("best", [None, 25])
def test_no_advice_without_a_better_cap(make_report: MakeReport, best: float | None) -> None:
    advice = Advice(bucket_cap_mb=CapAdvice(current=25, best=best, predictions=[]))
    assert len(write_verdict(make_report(advice=advice))) == 1


def test_missing_ranks_and_lost_files_are_said(make_report: MakeReport) -> None:
    problems = [
        ProblemRow(file="a.json", offset=1, kind="syntax", message="x", severity="error"),
        ProblemRow(file="a.json", offset=2, kind="syntax", message="x", severity="error"),
        ProblemRow(file="b.json", offset=3, kind="syntax", message="x", severity="error"),
        ProblemRow(file="c.json", offset=4, kind="values", message="x", severity="warning"),
    ]
    report = make_report(run={"missing_ranks": [1, 2, 3, 7]}, problems=problems)
    assert write_verdict(report)[1:] == (
        "Ranks 1-3,7 have no trace: the figures hold for the others only.",
        "2 files could not be read in full: see the problems below.",
    )
    assert write_verdict(make_report(run={"missing_ranks": [1]}))[1].startswith("Rank 1 has no trace")


def test_text_from_traces_stays_inert(make_report: MakeReport) -> None:
    straggler = make_straggler(cause="\n::error::x")
    assert r"cause: \n: :error::x" in write_verdict(make_report(straggler=straggler))[1]


def test_description(make_report: MakeReport) -> None:
    run = {
        "ranks": [0, 1],
        "world_size": 16,
        "backend": "nccl",
        "devices": {0: "H100", 1: "H100"},
        "host": {0: "a", 1: "b"},
        "steps": [3],
        "versions": {"torch": "2.13.0", "python": "3.12"},
        "started_at": "2026-11-30T12:00:00+00:00",
    }
    assert describe_run(make_report(run=run)) == (
        "2 of 16 ranks · nccl · H100 · 2 hosts · 1 step · torch 2.13.0 · 2026-11-30T12:00:00+00:00"
    )
    assert describe_run(make_report()) == "1 rank · no step markers"

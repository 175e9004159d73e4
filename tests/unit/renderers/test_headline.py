from __future__ import annotations

from rankscope.model.report import Measures, Totals
from rankscope.renderers.headline import measure_headline, summarise_steps

from .conftest import MakeRank, MakeReport, MakeStep


def test_nothing_recorded(make_report: MakeReport) -> None:
    report = make_report(ranks=[], totals=Totals(run=Measures()))
    assert measure_headline(report) is None
    assert summarise_steps(report) == ()


def test_without_steady_steps_the_recording_is_the_base(make_report: MakeReport, make_rank: MakeRank) -> None:
    """Two ranks: 400 of 800 us hidden, (200 + 200) / 2 = 200 us exposed of a window of (1000 + 3000) / 2 us."""
    totals = Totals(run=Measures(communication_ns=800_000, overlap_ns=400_000, exposed_communication_ns=400_000,
                                 overlap_ratio=0.5))  # fmt: skip
    ranks = [make_rank(0), make_rank(1, window_ns=3_000_000)]
    headline = measure_headline(make_report(ranks=ranks, totals=totals))
    assert headline is not None
    assert not headline.is_steady
    assert headline.overlap_ratio == 0.5
    assert headline.exposed_ns == 200_000
    assert headline.base_ns == 2_000_000
    assert headline.exposed_share == 0.1


def test_steady_steps_are_averaged_over_ranks_and_steps(make_report: MakeReport, make_step: MakeStep) -> None:
    """120 us exposed in 2 steps of 2 ranks = 30 us; (400 + 600 + 400 + 600) / 4 = 500 us; 30 / 500 = 6 %."""
    steps = [
        make_step(s, r, duration_ns=400_000 + 200_000 * r, steady=s > 0) for s in (0, 1, 2) for r in (0, 1)
    ]
    totals = Totals(run=Measures(), steady=Measures(communication_ns=1, exposed_communication_ns=120_000,
                                                    overlap_ratio=0.9))  # fmt: skip
    report = make_report(run={"steady_steps": [1, 2]}, steps=steps, totals=totals)
    headline = measure_headline(report)
    assert headline is not None
    assert headline.is_steady
    assert headline.exposed_ns == 30_000
    assert headline.base_ns == 500_000
    assert headline.exposed_share == 0.06


def test_a_step_of_unknown_duration_leaves_the_share_undefined(
    make_report: MakeReport, make_step: MakeStep
) -> None:
    steps = [make_step(1), make_step(2, duration_ns=None)]
    totals = Totals(run=Measures(), steady=Measures(exposed_communication_ns=10))
    headline = measure_headline(make_report(run={"steady_steps": [1, 2]}, steps=steps, totals=totals))
    assert headline is not None
    assert headline.base_ns is None
    assert headline.exposed_share is None


def test_an_undefined_ratio_comes_with_its_reason(make_report: MakeReport) -> None:
    report = make_report(
        totals=Totals(run=Measures()), undefined={"totals.run.overlap_ratio": "no communication kernels"}
    )
    headline = measure_headline(report)
    assert headline is not None
    assert headline.overlap_ratio is None
    assert headline.overlap_reason == "no communication kernels"


def test_steps_of_all_ranks_become_one_row(make_report: MakeReport, make_step: MakeStep) -> None:
    """Hidden: (300 + 100) of (400 + 600) us = 40 %, which is no mean of the ranks' 75 % and 16.7 %."""
    steps = [
        make_step(
            2, 0, communication_ns=400, overlap_ns=300, exposed_communication_ns=100, overlap_ratio=0.75
        ),
        make_step(
            2, 1, communication_ns=600, overlap_ns=100, exposed_communication_ns=500, overlap_ratio=1 / 6
        ),
        make_step(1, 0, steady=False),
        make_step(None, 0),
    ]
    first, second, outside = summarise_steps(make_report(steps=steps))
    assert (first.step, second.step, outside.step) == (1, 2, None)
    assert (first.steady, second.steady) == (False, True)
    assert second.ranks == 2
    assert second.overlap_ratio == 0.4
    assert (second.overlap_low, second.overlap_high) == (1 / 6, 0.75)
    assert second.communication_ns == 500
    assert second.exposed_ns == 300


def test_a_step_without_communication_has_no_ratio(make_report: MakeReport, make_step: MakeStep) -> None:
    step = make_step(1, communication_ns=0, overlap_ns=0, exposed_communication_ns=0, overlap_ratio=None)
    (summary,) = summarise_steps(make_report(steps=[step]))
    assert summary.overlap_ratio is None
    assert summary.overlap_low is None
    assert summary.path("overlap_ratio") == "steps[step=1,rank=0,device=0,window=0].overlap_ratio"

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rankscope.errors import InputError, UsageError
from rankscope.pipeline import read_run
from rankscope.renderers.to_json import render_json
from rankscope.testing import assert_overlap
from support.command import write_run
from support.gate_reports import two_rank_report


def test_enough_is_hidden() -> None:
    """24 of 32 ms in the steady steps, 41 of 58 in the whole run."""
    report = two_rank_report()
    assert assert_overlap(report, min_ratio=0.75) is report
    assert_overlap(report, min_ratio=0.7, scope="run")


def test_the_message_shows_figures_and_the_worst_steps() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_overlap(two_rank_report(), min_ratio=0.8)
    assert str(caught.value).splitlines() == [
        "hidden communication of two is 75.00 % in the steady steps; expected at least 80.00 %",
        "  communication 8.000 ms, of which 2.000 ms is exposed, per rank and step",
        "  step 5: 62.50 % hidden, 3.000 ms exposed",
        "  step 6: 87.50 % hidden, 1.000 ms exposed",
        "  all_reduce in dp [0-2]: 74.07 % hidden, 7.000 ms exposed per rank",
        "  broadcast in dp [0-2]: 25.00 % hidden, 1.500 ms exposed per rank",
    ]
    with pytest.raises(AssertionError, match=r"is 70.69 % in the whole run; expected at least 71.00 %"):
        assert_overlap(two_rank_report(), min_ratio=0.71, scope="run")


def test_what_was_not_measured_is_no_success() -> None:
    report = replace(two_rank_report(), steps=[], totals=replace(two_rank_report().totals, steady=None))
    assert_overlap(report, min_ratio=0.7)  # the whole run then
    with pytest.raises(AssertionError, match="was not measured: the report holds no steady step"):
        assert_overlap(report, min_ratio=0.0, scope="steady")
    with pytest.raises(AssertionError, match="was not measured"):
        assert_overlap(replace(report, ranks=[]), min_ratio=0.0)


def test_traces_runs_and_saved_reports(tmp_path: Path) -> None:
    """Of each 60 us 23 are hidden."""
    folder = write_run(tmp_path / "run")
    report = assert_overlap(folder, min_ratio=0.38)
    assert_overlap(str(folder), min_ratio=0.38)
    assert_overlap(read_run(folder), min_ratio=0.38)
    (tmp_path / "report.json").write_text(render_json(report))
    assert_overlap(tmp_path / "report.json", min_ratio=0.38)
    with pytest.raises(AssertionError, match=r"38\.33 %"):
        assert_overlap(tmp_path / "report.json", min_ratio=0.39)


@pytest.mark.parametrize("ratio", [-0.1, 60, float("nan")])
def test_what_is_no_ratio(ratio: float) -> None:
    with pytest.raises(UsageError, match="a ratio runs from 0 to 1"):
        assert_overlap(two_rank_report(), min_ratio=ratio)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        assert_overlap(tmp_path / "nowhere", min_ratio=0.5)

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rankscope.model.report import Advice, CapAdvice, Report
from rankscope.renderers.advice_tables import build_advice_table, write_advice, write_code
from support.straggling_report import MS, make_straggling

from .conftest import MakeReport


def with_advice(**changed: Any) -> Report:
    report = make_straggling()
    assert report.advice is not None
    return replace(report, advice=replace(report.advice, **changed))


def test_no_advice(make_report: MakeReport) -> None:
    report = make_report()
    assert write_advice(report) == ()
    assert write_code(report) is None
    assert build_advice_table(report, 9).rows == ()


def test_a_row_per_cap_says_which_is_in_use_and_which_is_best() -> None:
    """25 MiB take 100 ms: 1 MiB takes 1 % less, 5 MiB 4 % less."""
    table = build_advice_table(make_straggling(), 9)
    assert [[cell.text for cell in row][:6] for row in table.rows] == [
        ["1", "", "99.0 ms", "98.0 ms", "100 ms", "-1.0 %"],
        ["5", "best", "96.0 ms", "95.0 ms", "97.0 ms", "-4.0 %"],
        ["25", "in use", "100 ms", "99.0 ms", "101 ms", "+0.0 %"],
    ]


def test_what_to_change_and_what_it_saves() -> None:
    report = make_straggling()
    assert write_advice(report) == (
        "With bucket_cap_mb=5 instead of 25 a step is predicted to take 96.0 ms (95.0 ms to 97.0 ms) instead of "
        "100 ms: 4.00 ms, 4.0 % less.",
    )
    assert write_code(report) == "model = DistributedDataParallel(model, bucket_cap_mb=5)"


def test_a_gain_within_the_error_of_the_model_is_called_so() -> None:
    """96 +- 1 against 97 +- 1 ms: 97 reaches above 96."""
    report = make_straggling()
    assert report.advice is not None
    cap = report.advice.bucket_cap_mb
    near = [
        replace(p, step_ns=97 * MS, step_low_ns=96 * MS) if p.bucket_cap_mb == 25 else p
        for p in cap.predictions
    ]
    sentences = write_advice(with_advice(bucket_cap_mb=replace(cap, predictions=near)))
    assert "may be smaller than the model's error" in sentences[-1]


@pytest.mark.parametrize("verdict", ["keep", "declined"])
def test_without_a_change_there_is_the_reason_and_no_code(verdict: Any) -> None:
    report = with_advice(verdict=verdict, reason="one size only: record with calibrate=True", code=None)
    assert write_advice(report) == ("One size only: record with calibrate=True.",)
    assert write_code(report) is None


def test_an_unknown_cap_in_use_leaves_nothing_to_compare_with() -> None:
    report = make_straggling()
    assert report.advice is not None
    cap = replace(report.advice.bucket_cap_mb, current=None)
    report = with_advice(bucket_cap_mb=cap)
    assert write_advice(report) == (
        "With bucket_cap_mb=5 a step is predicted to take 96.0 ms (95.0 ms to 97.0 ms): 4.00 ms less than now.",
    )
    table = build_advice_table(report, 9)
    assert "Against now" not in [column.label for column in table.columns]
    assert table.notes[0].startswith("Against now: n/a (the cap in use is not known")


def test_texts_of_the_advice_are_inert() -> None:
    empty = CapAdvice(current=None, best=None, predictions=[])
    report = replace(make_straggling(), advice=Advice(bucket_cap_mb=empty, reason="a\n::error::b\u202e"))
    assert write_advice(report) == ("A\\n: :error::b\\u202e.",)

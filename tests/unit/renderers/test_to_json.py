from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from rankscope.errors import FormatVersionError, InputError
from rankscope.model.report import (
    CollectiveRow,
    CommunicationRow,
    Coverage,
    Finding,
    Report,
    WaitQuantiles,
    WindowRow,
)
from rankscope.renderers.to_json import read_json, render_json

from .conftest import MakeReport, MakeStep


@pytest.fixture
def full_report(make_report: MakeReport, make_step: MakeStep) -> Report:
    collective = CollectiveRow(
        index=0, step=1, group="dp", op="all_reduce", dtype="Float", size_bytes=4, sequence=9, matched_by="seq",
        coalesced=False, ranks=2, transfer_ns=5, lateness_ns=1, last_rank=1, overlap_ratio=0.5,
        algorithm_bandwidth_gbps=1.5, bus_bandwidth_gbps=1.5, wait_ns=WaitQuantiles(p50=1, max=2),
        arrivals_ns={0: 10, 1: 12}, waits_ns={0: 2, 1: 0},
    )  # fmt: skip
    communication = CommunicationRow(
        rank=0, device=0, window=0, step=None, op="all_reduce", name="ncclDevKernel", group="dp", dtype=None,
        size_bytes=None, started_ns=5, duration_ns=7, exposed_ns=7, overlap_ratio=0.0,
    )  # fmt: skip
    return make_report(
        run={"host": {0: "a", 10: "b"}, "origin_ns": "1796040000123456789"},
        steps=[make_step(1), make_step(None, device="cpu")],
        windows=[WindowRow(rank=0, device=None, window=1, file="a.json")],
        collectives=[collective],
        communications=[communication],
    )


def refuse_constant(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


def test_full_detail_comes_back_as_it_was(full_report: Report) -> None:
    assert read_json(render_json(full_report, detail="full")) == full_report
    assert read_json(render_json(full_report, detail="full", indent=False).encode()) == full_report


def test_the_summary_leaves_out_what_grows_with_events_and_ranks(full_report: Report) -> None:
    tree = json.loads(render_json(full_report))
    assert tree["communications"] == []
    assert tree["collectives"][0]["arrivals_ns"] is None
    assert tree["collectives"][0]["waits_ns"] is None
    assert tree["collectives"][0]["wait_ns"] == {"p50": 1, "max": 2}
    assert read_json(render_json(full_report)).collectives[0].transfer_ns == 5


def test_keys_stand_in_the_order_of_the_contract(full_report: Report) -> None:
    tree = json.loads(render_json(full_report))
    assert list(tree) == [field.name for field in fields(Report)]
    assert list(tree["ranks"][0])[:4] == ["rank", "device", "host", "window_ns"]
    assert list(tree["steps"][0])[:6] == ["step", "rank", "device", "window", "steady", "duration_ns"]
    assert list(tree["windows"][0])[:5] == ["rank", "device", "window", "file", "started_ns"]
    assert tree["run"]["origin_ns"] == "1796040000123456789"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_what_json_lacks_becomes_null(make_report: MakeReport, value: float) -> None:
    report = make_report(coverage=Coverage(sized=value, named=0.5))
    tree = json.loads(render_json(report), parse_constant=refuse_constant)
    assert tree["coverage"] == {"matched": None, "sized": None, "named": 0.5, "in_steps": None}


def test_numbers_of_numpy_are_numbers(make_report: MakeReport, make_step: MakeStep) -> None:
    step: Any = np.int64(7)
    tree = json.loads(render_json(make_report(steps=[make_step(step, overlap_ratio=np.float64(0.25))])))
    assert tree["steps"][0]["step"] == 7
    assert tree["steps"][0]["overlap_ratio"] == 0.25


def test_unpaired_surrogates_are_spelled_out(make_report: MakeReport) -> None:
    report = make_report(run={"labels": {"k\udc80": "v\ud800"}})
    assert json.loads(render_json(report))["run"]["labels"] == {r"k\udc80": r"v\ud800"}


def test_one_line_break_at_the_end(make_report: MakeReport) -> None:
    for indent in (True, False):
        text = render_json(make_report(), indent=indent)
        assert text.endswith("}\n")
        assert not text.endswith("\n\n")
    assert render_json(make_report(), indent=False).count("\n") == 1


def test_a_newer_minor_version_with_unknown_keys_is_read(make_report: MakeReport) -> None:
    tree = json.loads(render_json(make_report()))
    tree["format"]["version"] = "1.7"
    tree["format"]["since"] = 2027
    tree["sparkles"] = [1]
    tree["ranks"][0]["sparkles"] = True
    report = read_json(json.dumps(tree))
    assert report.format.version == "1.7"
    assert replace(report, format=make_report().format) == make_report()


def test_another_major_version_is_refused_with_both_numbers(make_report: MakeReport) -> None:
    tree = json.loads(render_json(make_report()))
    tree["format"]["version"] = "2.0"
    tree["ranks"] = "something else entirely"
    with pytest.raises(FormatVersionError, match=r"version 2\.0.*reads version 1\.0"):
        read_json(json.dumps(tree))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"format": {"name": "rankscope-report"', "no JSON object"),
        ('{"a": NaN}', "no JSON object"),
        (b"\xff\xfe", "no JSON object"),
        ("{}", 'key "format"'),
        ('{"traceEvents": []}', 'key "format"'),
        ('{"format": {"name": "rankscope-manifest", "version": "1.0"}}', 'key "format"'),
        ('{"format": {"name": "rankscope-report", "version": 1}}', '"format.version" is 1 '),
        ('{"format": {"name": "rankscope-report", "version": "x.1"}}', '"format.version" is'),
        ('{"format": {"name": "rankscope-report", "version": "1.0"}}', "missing required field `tool`"),
    ],
)
def test_what_is_no_report_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(InputError, match="not a rankscope report") as caught:
        read_json(text)
    assert reason in str(caught.value)
    assert not isinstance(caught.value, FormatVersionError)


def test_a_wrong_type_is_named_with_its_place(make_report: MakeReport) -> None:
    tree = json.loads(render_json(make_report()))
    tree["ranks"][0]["compute_ns"] = "long"
    with pytest.raises(InputError, match=r"ranks\[0\].*compute_ns|compute_ns"):
        read_json(json.dumps(tree))


def test_findings_come_back(make_report: MakeReport) -> None:
    finding = Finding(rule="r", severity="warning", rank=None, step=3, message="m", hint="h")
    assert read_json(render_json(make_report(findings=[finding]))).findings == [finding]

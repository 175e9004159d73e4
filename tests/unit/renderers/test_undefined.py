from __future__ import annotations

import time

import pytest

from rankscope.model.report import Measures, Report, RunFacts, Tool, Totals
from rankscope.renderers.undefined import Reasons, make_path, reason_of


def test_no_reasons() -> None:
    assert Reasons({}).find("ranks[rank=0,device=0].overlap_ratio") is None


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ("totals.steady.overlap_ratio", "totals.steady.overlap_ratio"),
        ("totals.steady", "totals.steady"),
        ("ranks[rank=3,device=0].overlap_ratio", "ranks[rank=3,device=0].overlap_ratio"),
        ("ranks[device=0,rank=3].overlap_ratio", "ranks[rank=3,device=0].overlap_ratio"),
        ("steps[*].window_ns", "steps[step=5,rank=0,device=cpu,window=0].window_ns"),
        ("steps[step=5].overlap_ratio", "steps[step=5,rank=7].overlap_ratio"),
        ("steps[step=*,rank=7].overlap_ratio", "steps[step=5,rank=7].overlap_ratio"),
        ("steps[step=None].duration_ns", "steps[step=None,rank=0].duration_ns"),
        ("groups[group=a],b.c [0-1] #2,op=x].size_bytes", "groups[group=a],b.c [0-1] #2,op=x].size_bytes"),
    ],
)
def test_an_entry_holds_for_a_path(entry: str, path: str) -> None:
    assert Reasons({entry: "why"}).find(path) == "why"


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ("totals.steady.overlap_ratio", "totals.run.overlap_ratio"),
        ("ranks[rank=3].overlap_ratio", "ranks[rank=33].overlap_ratio"),
        ("ranks[rank=3,device=1].overlap_ratio", "ranks[rank=3].overlap_ratio"),
        ("steps[*].window_ns", "steps[step=5].idle_ns"),
        ("steps[*].window_ns", "ranks[rank=5].window_ns"),
    ],
)
def test_an_entry_does_not_hold_for_another_path(entry: str, path: str) -> None:
    assert Reasons({entry: "why"}).find(path) is None


def test_the_entry_that_names_most_wins() -> None:
    reasons = Reasons({"steps[*].overlap_ratio": "any", "steps[step=5].overlap_ratio": "five"})
    assert reasons.find("steps[step=5,rank=1].overlap_ratio") == "five"
    assert reasons.find("steps[step=6,rank=1].overlap_ratio") == "any"


def test_a_name_full_of_keys_costs_no_time() -> None:
    name = ",".join(f"k{i}={i}" for i in range(60))
    reasons = Reasons({"groups[*].size_bytes": "any", f"groups[group={name},op=x].size_bytes": "this"})
    started = time.process_time()
    assert reasons.find(make_path("groups", {"group": name, "op": "x"}, "size_bytes")) == "this"
    assert reasons.find(make_path("groups", {"group": name, "op": "y"}, "size_bytes")) == "any"
    assert time.process_time() - started < 1


def test_reason_of_a_report() -> None:
    report = Report(
        tool=Tool(version="0"),
        run=RunFacts(name="a", source="a"),
        totals=Totals(run=Measures()),
        undefined={"totals.run.overlap_ratio": "no communication"},
    )
    assert reason_of(report, "totals.run.overlap_ratio") == "no communication"
    assert reason_of(report, "totals.run.window_ns") is None

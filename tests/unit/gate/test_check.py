from __future__ import annotations

from dataclasses import replace

import pytest

from rankscope.errors import UsageError
from rankscope.gate.check import check_limits
from rankscope.gate.limits import limit_names, parse_limit_name
from rankscope.gate.limits_file import parse_limit_flags, parse_limits_file
from rankscope.model.verdict import Outcome
from support.gate_reports import bucket_row, two_rank_report

STEP_LIMITS = "[limits.step]\nmin_overlap_ratio = 0.7\n"


def check(*flags: str, allow_undefined: bool = False) -> tuple[Outcome, ...]:
    return check_limits(two_rank_report(), parse_limit_flags(flags, allow_undefined=allow_undefined))


def check_file(text: str) -> tuple[Outcome, ...]:
    return check_limits(two_rank_report(), parse_limits_file(text, "limits.toml").limits)


@pytest.mark.parametrize(
    ("flag", "status"),
    [
        ("min_overlap_ratio=0.70", "passed"),  # 41 / 58 = 0.707
        ("min_overlap_ratio=0.71", "broken"),
        ("max_exposed_communication_ms=8.5", "passed"),  # exactly the limit
        ("max_exposed_ms=8.4", "broken"),
        ("max_exposed_us=8500", "passed"),
        ("max_straggler_cost_ratio=0", "passed"),
        ("min_bus_bandwidth_gbps=213", "broken"),
        ("max_missing_ranks=0", "broken"),
        ("max_missing_ranks=1", "passed"),
        ("steady.max_duration_ms=25", "broken"),
        ("outside.min_overlap_ratio=0.4", "passed"),
        ("rank.min_overlap_ratio=0.7", "broken"),
        ("group.max_count=20", "passed"),
    ],
)
def test_a_limit(flag: str, status: str) -> None:
    (outcome,) = check(flag)
    assert outcome.status == status


def test_a_broken_limit_names_figure_place_value_and_limit() -> None:
    (outcome,) = check_file(STEP_LIMITS)
    assert outcome.message == "hidden communication is 62.50 % in step 5 (1 of 2); limit: at least 70.00 %"
    assert [m.place for m in outcome.broken] == ["step 5"]
    assert outcome.name == "step.min_overlap_ratio"


def test_the_worst_comes_first() -> None:
    (outcome,) = check("step.min_overlap_ratio=0.9")
    assert [m.place for m in outcome.broken] == ["step 5", "step 6"]
    (outcome,) = check("step.max_overlap_ratio=0.1")
    assert [m.place for m in outcome.broken] == ["step 6", "step 5"]


def test_what_is_undefined_fails_unless_allowed() -> None:
    (outcome,) = check("max_exposed_wait_ms=1")
    assert (outcome.status, outcome.fails, outcome.checked) == ("not measured", True, 0)
    assert "n/a (waiting cannot be told from transfer)" in outcome.message
    (outcome,) = check("max_exposed_wait_ms=1", allow_undefined=True)
    assert (outcome.status, outcome.fails) == ("not measured, allowed", False)


def test_one_undefined_row_of_several_is_not_measured_either() -> None:
    (outcome,) = check("group.min_bus_bandwidth_gbps=1")
    assert outcome.status == "not measured"
    assert "broadcast in dp [0-2]: n/a (broadcasts are not matched)" in outcome.message
    (outcome,) = check_file('[[limits.group]]\nop = "all_*"\nmin_bus_bandwidth_gbps = 1\n')
    assert outcome.status == "passed"


def test_a_broken_value_counts_though_another_is_undefined() -> None:
    (outcome,) = check("group.min_bus_bandwidth_gbps=300", allow_undefined=True)
    assert outcome.status == "broken"


def test_a_limit_on_nothing_is_not_measured() -> None:
    (outcome,) = check("bucket.max_exposed_ms=1")
    assert outcome.status == "not measured"
    assert "no DDP buckets were found" in outcome.message
    (outcome,) = check_file("[[limits.step]]\nsteps = [7]\nmin_overlap_ratio = 0.1\n")
    assert outcome.status == "not measured"
    assert "no step of the run fits step=7" in outcome.message


def test_rows_are_selected() -> None:
    (outcome,) = check_file("[[limits.step]]\nsteps = [6]\nmin_overlap_ratio = 0.7\n")
    assert (outcome.status, outcome.checked) == ("passed", 1)
    (outcome,) = check_file("[limits.rank]\nranks = 1\nmin_overlap_ratio = 0.7\n")
    assert (outcome.status, outcome.checked) == ("passed", 1)
    report = replace(two_rank_report(), buckets=[bucket_row(5, 0, exposed=9), bucket_row(5, 1, exposed=1)])
    limits = parse_limits_file("[limits.bucket]\nbuckets = [1]\nmin_overlap_ratio = 0.5\n", "f").limits
    assert [outcome.status for outcome in check_limits(report, limits)] == ["passed"]


def test_every_limit_name_is_understood() -> None:
    for scope in ("run", "steady", "outside", "step", "rank", "group", "bucket"):
        for name in limit_names(scope):
            assert parse_limit_name(scope, name) is not None, (scope, name)


FAULTY = """
allow_undefind = true
baseline = 3
[limits]
min_overlap = 0.5
min_overlap_ratio = 60
max_exposed_comunication_ms = 3
max_idle = 3
max_idle_ms = "x"
max_duration_ms = 10
[limits.stp]
max_duration_ms = 3
[limits.step]
steps = "a"
max_duration_ms = -1
[[limits.group]]
op = 3
min_bus_bandwidth_gbps = 3
max_bus_bandwidth_gbps = 1
max_count = true
[limits.bucket]
max_exposed_ms = inf
[regression]
overlap_ratio = 2
exposd = "5%"
steady.exposed = "5 %"
outside.compute = "5 parsecs"
"""

FAULTS = (
    "allow_undefind is no key of a limits file; did you mean allow_undefined?",
    "baseline: expected the path of a baseline, got 3",
    "limits: min_overlap is no limit of run; did you mean min_overlap_ratio?",
    "limits: min_overlap_ratio: a ratio runs from 0 to 1, got 60; did you mean 0.6?",
    "max_exposed_comunication_ms is no limit of run; did you mean max_exposed_communication_ms?",
    "limits: max_idle needs a unit: max_idle_ns or max_idle_us or max_idle_ms or max_idle_s",
    "limits: max_idle_ms: expected a number, got 'x'",
    "limits: max_duration_ms is no limit of run; it is one of steady",
    "limits.stp: stp is no scope; did you mean step?",
    "limits.step: steps: expected a list of whole numbers, got 'a'",
    "limits.step: max_duration_ms: -1 is negative, and no figure is",
    "limits.group number 1: op: expected a name or a pattern with * and ?, got 3",
    "limits.group number 1: group.min_bus_bandwidth_gbps is greater than group.max_bus_bandwidth_gbps",
    "limits.group number 1: max_count: expected a number, got True",
    "limits.bucket: max_exposed_ms: expected a finite number, got inf",
    "regression: overlap_ratio: expected an amount with a unit, such as 2pp, 2%; got 2",
    "regression: exposd is no figure that runs are compared by; did you mean exposed?",
    "regression: outside.compute: '5 parsecs' has the unit 'parsecs'; expected something like 2ns",
)


def test_all_faults_of_a_file_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        parse_limits_file(FAULTY, "limits.toml")
    text = str(caught.value)
    assert [fault for fault in FAULTS if fault not in text] == []
    assert text.startswith(f"limits.toml has {len(FAULTS)} faults:")


def test_faults_of_flags() -> None:
    with pytest.raises(UsageError) as caught:
        parse_limit_flags(
            ["min_overlap_ratio", "stp.max_duration_ms=1", "max_idle_ms=x", "max_idle_s=1", "max_idle_ms=1"]
        )
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    assert "stp is no scope; did you mean step?" in lines[2]
    assert "max_idle_ms limits the same figure as max_idle_s" in lines[4]


@pytest.mark.parametrize(
    ("text", "word"), [("limits = 3", "limits"), ("[limits", "not TOML"), ("", "no limit")]
)
def test_other_faults(text: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        parse_limits_file(text, "limits.toml")

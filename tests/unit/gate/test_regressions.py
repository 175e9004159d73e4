from __future__ import annotations

import pytest

from rankscope.errors import UsageError
from rankscope.gate.compare import compare
from rankscope.gate.regressions import compared_names, parse_regressions
from rankscope.model.verdict import Outcome
from support.gate_reports import make_side, make_snapshot

HIGH, LOW = make_snapshot([0.34] * 4), make_snapshot([0.32] * 4)


def outcome(limit: str, *, forward: bool = True) -> Outcome:
    base, head = (HIGH, LOW) if forward else (LOW, HIGH)
    (found,) = compare(make_side(base), make_side(head), parse_regressions([limit])).outcomes
    return found


@pytest.mark.parametrize(
    ("limit", "status"),
    [
        ("overlap_ratio=2pp", "passed"),  # 0.34 - 0.32 = 0.020000000000000018
        ("overlap_ratio=1.9pp", "broken"),
        ("overlap_ratio=5.9%", "passed"),  # 0.02 / 0.34 = 5.88 %
        ("overlap_ratio=5.8 %", "broken"),
        ("exposed=3.1%", "passed"),  # 6.6 to 6.8 ms per step: 3.03 %
        ("exposed=3%", "broken"),
        ("steady.exposed=200us", "passed"),
        ("steady.exposed=199us", "broken"),
        ("steady.duration=0%", "passed"),
    ],
)
def test_limits(limit: str, status: str) -> None:
    assert outcome(limit).status == status
    assert outcome(limit, forward=False).status == "passed"


def test_a_broken_limit_names_figure_limit_and_values() -> None:
    assert outcome("overlap_ratio=1pp").message == (
        "hidden communication of the whole run went from 34.00 % to 32.00 % (-2.00 pp, -5.88 %); "
        "limit: at most 1.00 pp lower"
    )


def test_growth_from_nothing_breaks_a_relative_limit() -> None:
    base, head = make_side(make_snapshot([1.0] * 4)), make_side(make_snapshot([0.9] * 4))
    (found,) = compare(base, head, parse_regressions(["exposed=50%"])).outcomes
    assert found.status == "broken"
    (same,) = compare(base, base, parse_regressions(["exposed=0%"])).outcomes
    assert same.status == "passed"


def test_what_is_undefined_is_not_measured() -> None:
    side = make_side(make_snapshot([0.5] * 4))
    (found,) = compare(side, side, parse_regressions(["idle=1ms"])).outcomes
    assert (found.status, found.fails) == ("not measured", True)
    (found,) = compare(side, side, parse_regressions(["idle=1ms"], allow_undefined=True)).outcomes
    assert not found.fails


def test_all_faults_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        parse_regressions(
            ["overlap_ratio=2,exposd=5%", "exposed=x, foo,exposed=1%", "missing_ranks=1.5", "compute=-1ms"]
        )
    lines = str(caught.value).splitlines()
    assert len(lines) == 7
    assert "'2' has no unit; expected something like 2pp, 2%" in str(caught.value)
    assert "exposed is given twice" in str(caught.value)
    assert "did you mean exposed?" in str(caught.value)
    assert "got '-1ms'" in str(caught.value)


def test_every_compared_name_is_understood() -> None:
    assert len(parse_regressions([f"{name}=1%" for name in compared_names()])) == len(compared_names())

from __future__ import annotations

import re

import pytest

from rankscope.model.report import Finding, GroupRow, ProblemRow
from rankscope.renderers.markdown_tables import draw_sparkline
from rankscope.renderers.to_markdown import render_markdown

from .conftest import MakeRank, MakeReport, MakeStep

LONGEST_COMMENT = 65_536
"""Characters that GitHub takes in a comment."""

EVIL = "a|b `c`\n::error::x <img src=x onerror=alert(1)> [l](http://e.example) @team ![i](u) **b** </details>"


def test_nothing_measured(make_report: MakeReport) -> None:
    assert render_markdown(make_report(run={"name": "broken", "ranks": []}, ranks=[])) == (
        "## rankscope: broken\n\n"
        "**Nothing was measured: the run holds no trace that could be analysed.**\n\n"
        "<sub>0 of 1 rank</sub>\n"
    )


def test_the_headline_is_a_table(make_report: MakeReport) -> None:
    text = render_markdown(make_report())
    assert "| Hidden communication | Exposed communication per rank | Share of the window | Window |" in text
    assert "| 50.0 % | 200 us | 20.0 % | 1.00 ms |" in text


def test_undefined_figures_say_why(make_report: MakeReport, make_rank: MakeRank) -> None:
    ranks = [make_rank(0), make_rank(1, overlap_ratio=None)]
    undefined = {"ranks[rank=1,device=0].overlap_ratio": "no communication"}
    text = render_markdown(make_report(ranks=ranks, undefined=undefined))
    assert "| n/a |" in text
    assert "Hidden of rank 1: n/a (no communication)" in text


@pytest.mark.parametrize(("count", "is_folded"), [(8, False), (9, True)])
def test_many_ranks_are_folded_away(
    count: int, is_folded: bool, make_report: MakeReport, make_rank: MakeRank
) -> None:
    text = render_markdown(make_report(ranks=[make_rank(rank) for rank in range(count)]))
    assert ("<details><summary>Ranks (9)</summary>\n\n| Rank |" in text) == is_folded
    assert text.count("<details>") == text.count("</details>") == int(is_folded)


def test_sparkline() -> None:
    assert draw_sparkline([]) == ""
    assert draw_sparkline([0, 0.124, 0.125, 0.5, 0.874, 0.875, 1, None]) == "▁▁▂▅▇██·"
    assert draw_sparkline([-0.1, 1.5]) == "▁█"


def test_steps_have_a_sparkline(make_report: MakeReport, make_step: MakeStep) -> None:
    nothing = {"communication_ns": 0, "overlap_ns": 0, "overlap_ratio": None}
    steps = [make_step(1, overlap_ns=0), make_step(2), make_step(3, **nothing), make_step(None)]
    assert "steps in order (0 to 100 %): ▁▅·\n" in render_markdown(make_report(steps=steps))


def test_a_long_run_shows_its_last_steps(make_report: MakeReport, make_step: MakeStep) -> None:
    steps = [make_step(step) for step in range(250)]
    line = f"Hidden communication, the last 100 of 250 steps in order (0 to 100 %): {'▅' * 100}\n"
    assert line in render_markdown(make_report(steps=steps))


def test_names_are_text_and_nothing_else(make_report: MakeReport) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    report = make_report(
        run={"name": EVIL, "devices": {0: EVIL}, "missing_ranks": [1]},
        groups=[GroupRow(group=EVIL, ranks=[], op=EVIL, count=1, size_bytes=None, communication_ns=1,
                         exposed_communication_ns=1, overlap_ratio=None)],
        findings=[Finding(rule="r", severity="info", rank=None, step=None, message=EVIL, hint=EVIL)],
        problems=[ProblemRow(file=EVIL, offset=None, kind="k", message=EVIL, severity=EVIL)],
        undefined={"groups[*].overlap_ratio": EVIL},
    )  # fmt: skip
    text = render_markdown(report)
    assert not re.search(r"^\s*::", text, re.MULTILINE)
    assert "@team" not in text
    page = (
        markdown_it.MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    )
    allowed = {
        "h2",
        "h3",
        "p",
        "strong",
        "br",
        "sub",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
    }
    assert set(re.findall(r"</?([a-z0-9]+)", page)) <= allowed
    assert set(re.findall(r"<[a-z0-9]+ ([a-z]+)=", page)) <= {"style"}
    shown = r"a|b `c`\n: :error::x &lt;img src=x onerror=alert(1)&gt; [l](http://e.example) @" + "\u200bteam"
    assert page.count(shown) == 10
    assert len(re.findall(r"<tr>", page)) == 2 + 2 + 2 + 2


def test_the_largest_report_fits_a_comment(
    make_report: MakeReport, make_rank: MakeRank, make_step: MakeStep
) -> None:
    evil = "<" * 5000
    report = make_report(
        ranks=[make_rank(rank) for rank in range(1024)],
        steps=[make_step(step, rank) for step in range(100) for rank in range(4)],
        groups=[GroupRow(group=evil, ranks=[], op=evil, count=1, size_bytes=None, communication_ns=1,
                         exposed_communication_ns=1, overlap_ratio=None)] * 500,
        findings=[Finding(rule="r", severity="info", rank=None, step=None, message=evil, hint=evil)] * 500,
        problems=[ProblemRow(file=evil, offset=None, kind="k", message=evil, severity="error")] * 500,
    )  # fmt: skip
    text = render_markdown(report)
    assert len(text) < LONGEST_COMMENT
    assert "### Ranks" not in text
    assert "<summary>Ranks (1,024)</summary>" in text
    assert text.endswith("Too long to be shown here, see the JSON report: Findings, Problems.\n")

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np

from rankscope.model.categories import EventClass
from rankscope.model.report import Clock, Finding, GroupRow, ProblemRow
from rankscope.model.timeline import Timeline, TimelineLane
from rankscope.renderers.glossary import TERMS
from rankscope.renderers.to_html import render_html

from .conftest import MakeReport, MakeStep

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"' onload=x \u202e"
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """What is in a page: elements with their attributes, script texts, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["script"]:
            self.scripts[-1] += data
        elif self._open[-1:] != ["style"]:
            self.text += data

    def read_json(self, name: str) -> object:
        """The JSON of the script with that id."""
        scripts = [attributes for tag, attributes in self.elements if tag == "script"]
        (index,) = [i for i, attributes in enumerate(scripts) if attributes.get("id") == name]
        return json.loads(self.scripts[index])


def make_timeline(*names: str) -> Timeline:
    lane = TimelineLane(
        rank=0,
        label=EVIL,
        kind="device",
        starts_ns=np.arange(len(names), dtype=np.int64),
        durations_ns=np.ones(len(names), np.int64),
        names=np.arange(len(names), dtype=np.int32),
        classes=np.full(len(names), EventClass.COMPUTE, np.uint8),
    )
    return Timeline(origin_ns=0, step=5, start_ns=0, end_ns=len(names), lanes=(lane,), names=names)


def test_nothing_measured(make_report: MakeReport) -> None:
    text = render_html(make_report(ranks=[]))
    page = Page(text)
    assert "Nothing was measured" in page.text
    assert "<canvas" not in text
    assert len(text) < 100_000  # without figures the plot library is left out


def test_the_page_needs_nothing_from_outside(make_report: MakeReport, make_step: MakeStep) -> None:
    page = Page(render_html(make_report(steps=[make_step(1)]), make_timeline("k")))
    for tag, attributes in page.elements:
        assert not {"src", "href", "srcset", "action"} & set(attributes), (tag, attributes)
        assert tag not in {"link", "iframe", "object", "embed", "base"}
    (policy,) = [a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "http" not in policy


def test_the_verdict_stands_before_everything_else(make_report: MakeReport) -> None:
    text = Page(render_html(make_report())).text
    assert text.index("50.0\xa0% of the communication time is hidden") < text.index("Hidden communication")


def test_hostile_text_stays_text(make_report: MakeReport) -> None:
    report = make_report(
        run={"name": EVIL, "devices": {0: EVIL}, "host": {0: EVIL, 1: "b"}},
        groups=[GroupRow(group=EVIL, ranks=[], op=EVIL, count=1, size_bytes=None, communication_ns=1,
                         exposed_communication_ns=1, overlap_ratio=0.5)],
        findings=[Finding(rule=EVIL, severity="info", rank=None, step=None, message=EVIL, hint=EVIL)],
        problems=[ProblemRow(file=EVIL, offset=None, kind=EVIL, message=EVIL, severity=EVIL)],
        undefined={"groups[*].size_bytes": EVIL},
    )  # fmt: skip
    text = render_html(report, make_timeline(EVIL))
    page, plain = Page(text), Page(render_html(make_report(), make_timeline("k")))
    assert "<img src=x" not in text
    assert len(page.scripts) == len(plain.scripts)
    assert {tag for tag, _ in page.elements} - {tag for tag, _ in plain.elements} <= {"ul", "li", "abbr"}
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert "\u202e" not in text
    assert page.text.count("<img src=x onerror=alert(1)>") >= 10


def test_data_is_embedded_as_json(make_report: MakeReport, make_step: MakeStep) -> None:
    page = Page(render_html(make_report(steps=[make_step(1)]), make_timeline("a", EVIL)))
    timeline = page.read_json("timeline-data")
    assert isinstance(timeline, dict)
    assert timeline["names"][0] == "a"
    assert timeline["names"][1].startswith("</script><script>alert(1)")
    charts = page.read_json("charts-data")
    assert isinstance(charts, dict)
    assert set(charts) == {"windows", "steps"}


def test_undefined_figures_carry_their_reason(make_report: MakeReport) -> None:
    group = GroupRow(group="g", ranks=[], op="o", count=1, size_bytes=None, communication_ns=1,
                     exposed_communication_ns=1, overlap_ratio=0.5)  # fmt: skip
    known = GroupRow(group="h", ranks=[], op="o", count=1, size_bytes=1, communication_ns=1,
                     exposed_communication_ns=1, overlap_ratio=0.5)  # fmt: skip
    report = make_report(groups=[group, known], undefined={"groups[*].size_bytes": "no <sizes>"})
    text = render_html(report)
    assert '<abbr title="no &lt;sizes&gt;">n/a</abbr>' in text
    assert "Bytes of group g: n/a (no &lt;sizes&gt;)" in text


def test_every_term_of_a_column_is_explained(make_report: MakeReport, make_step: MakeStep) -> None:
    page = Page(render_html(make_report(steps=[make_step(1)])))
    titles = [
        attributes["title"] for tag, attributes in page.elements if tag == "th" and "title" in attributes
    ]
    assert len(titles) > 10
    assert set(titles) <= set(TERMS.values())
    terms = page.text[page.text.rindex("Terms") :]
    assert [entry for entry in (*TERMS, *TERMS.values()) if entry not in terms] == []


def test_the_same_report_gives_the_same_page(make_report: MakeReport) -> None:
    assert render_html(make_report(), make_timeline("k")) == render_html(make_report(), make_timeline("k"))


def test_colors_are_those_of_the_palette(make_report: MakeReport) -> None:
    text = render_html(make_report())
    assert re.search(r":root \{\s+--compute: #2f6fb0;", text)
    assert re.search(r"prefers-color-scheme: dark\) \{\s+:root \{\s+--compute: #4f94d4;", text)


def test_plotly_is_loaded_only_to_draw() -> None:
    code = (
        "import sys, rankscope.renderers.to_html, rankscope.renderers.to_console, rankscope.renderers.to_markdown, "
        "rankscope.renderers.to_json; print(sorted({'plotly', 'pandas', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_timeline_says_whether_the_ranks_share_a_clock(make_report: MakeReport) -> None:
    tied = make_report(run={"ranks": [0, 1], "clock": Clock(method="collective ends")})
    raw = make_report(run={"ranks": [0, 1]})
    assert "All ranks are drawn on one clock." in render_html(tied, make_timeline("k"))
    assert "Not all clocks could be tied together" in render_html(raw, make_timeline("k"))
    one = render_html(make_report(), make_timeline("k"))
    assert "clock" not in Page(one).text.split("Wheel zooms")[1].split("Ranks")[0]

"""What the gate writes: golden files, validity of each format, and names that try to be more than names."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import xmlschema

from rankscope.renderers.check_console import render_check_console
from rankscope.renderers.check_json import render_check_json
from rankscope.renderers.check_markdown import render_check_markdown
from rankscope.renderers.comparison_console import render_comparison_console
from rankscope.renderers.comparison_csv import render_comparison_csv
from rankscope.renderers.comparison_html import render_comparison_html
from rankscope.renderers.to_github import render_github
from rankscope.renderers.to_gitlab import render_gitlab
from rankscope.renderers.to_junit import render_junit

CheckGolden = Callable[[str, str], None]
Cases = dict[str, Any]
SCHEMA = Path(__file__).parent / "junit.xsd"

every_case = pytest.mark.parametrize("name", ["kept", "broken", "hostile", "empty"])


@every_case
def test_check_console(name: str, cases: Cases, check_golden: CheckGolden) -> None:
    check_golden(f"{name}-check.txt", render_check_console(cases[name].verdict, cases[name].comparison))


@every_case
@pytest.mark.parametrize("width", [80, 120])
def test_comparison_console(name: str, width: int, cases: Cases, check_golden: CheckGolden) -> None:
    text = render_comparison_console(cases[name].comparison, cases[name].verdict, width=width)
    check_golden(f"{name}-compare-{width}.txt", text)


@every_case
def test_markdown(name: str, cases: Cases, check_golden: CheckGolden) -> None:
    check_golden(f"{name}.md", render_check_markdown(cases[name].verdict, cases[name].comparison))


@every_case
def test_html(name: str, cases: Cases, check_golden: CheckGolden) -> None:
    page = render_comparison_html(cases[name].comparison, cases[name].verdict)
    check_golden(f"{name}.html", re.sub(r"<style>.*?</style>", "<style>…</style>", page, flags=re.DOTALL))


@every_case
def test_json(name: str, cases: Cases, check_golden: CheckGolden) -> None:
    text = render_check_json(cases[name].verdict, cases[name].comparison)
    load_strictly(text)
    check_golden(f"{name}.json", text)


@every_case
def test_csv(name: str, cases: Cases, check_golden: CheckGolden) -> None:
    text = render_comparison_csv(cases[name].comparison)
    rows = list(csv.reader(io.StringIO(text)))
    assert {len(row) for row in rows} == {10}
    for cell in (cell for row in rows for cell in row):
        assert not cell.startswith(("=", "+", "@"))
        assert not cell.startswith("-") or float(cell) < 0
    check_golden(f"{name}.csv", text)


@every_case
def test_junit(name: str, cases: Cases, check_golden: CheckGolden) -> None:
    text = render_junit(cases[name].verdict)
    xmlschema.XMLSchema(SCHEMA).validate(text)
    root = ET.fromstring(text)  # noqa: S314 - our own text
    assert len(root.findall(".//testcase")) == len(cases[name].verdict.outcomes)
    assert int(root.get("failures", "")) == len(root.findall(".//failure"))
    assert int(root.get("errors", "")) == len(root.findall(".//error"))
    check_golden(f"{name}.junit.xml", text)


@every_case
def test_github(name: str, cases: Cases, check_golden: CheckGolden) -> None:
    check_golden(f"{name}.github.txt", render_github(cases[name].verdict, "ci/rankscope.toml"))


@every_case
def test_gitlab(name: str, cases: Cases, check_golden: CheckGolden) -> None:
    text = render_gitlab(cases[name].verdict, "ci/rankscope.toml")
    issues = load_strictly(text)
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    for issue in issues:
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert issue["location"] == {"path": "ci/rankscope.toml", "lines": {"begin": 1}}
    check_golden(f"{name}.gitlab.json", text)


def load_strictly(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    return json.loads(text, parse_constant=refuse)


def test_every_command_of_github_is_ours(cases: Cases) -> None:
    """A line per annotation, each one of a kind that we write; no name became a command or a property."""
    lines = render_github(cases["hostile"].verdict, "a,b:c.toml").splitlines()
    assert len(lines) == len(cases["hostile"].verdict.failed) + len(cases["hostile"].verdict.warnings) + 1
    for line in lines:
        match = re.fullmatch(
            r"::(error|warning|notice) ((?:file|title)=[^,:]*(?:,title=[^,:]*)?)::(.*)", line
        )
        assert match is not None, line
        assert "::error" not in match[3]
        assert "%0A" not in match[3]  # a line break is spelled out before it is escaped


def test_more_annotations_than_github_shows(cases: Cases) -> None:
    verdict = cases["broken"].verdict
    many = replace(verdict, outcomes=verdict.outcomes[:1] * 25)
    errors = [line for line in render_github(many).splitlines() if line.startswith("::error")]
    assert len(errors) == 10
    assert errors[-1].endswith("16 more limits close the gate; see the report")


class Tags(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, name) for name, _ in attrs} | {(tag, "")}


def test_a_name_makes_no_tag_and_no_attribute(cases: Cases) -> None:
    pages = {}
    for name in ("broken", "hostile"):
        tags = Tags()
        tags.feed(render_comparison_html(cases[name].comparison, cases[name].verdict))
        pages[name] = tags.found
    assert {tag for tag, _ in pages["hostile"]} <= {tag for tag, _ in pages["broken"]} | {"abbr"}
    assert not any(
        attribute.startswith("on") or attribute in ("src", "href") for _, attribute in pages["hostile"]
    )
    assert not {tag for tag, _ in pages["hostile"]} & {"script", "img", "a", "iframe"}


def test_a_name_makes_no_markdown(cases: Cases) -> None:
    text = render_check_markdown(cases["hostile"].verdict, cases["hostile"].comparison)
    for structure in ("<img", "](", "@team", "::error", "`", "javascript:", "\r"):
        assert structure not in text, structure
    allowed = r"</?(?:sub|br|details|summary)>|<!-- rankscope -->"
    assert re.sub(allowed, "", text).count("<") == 0
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.count("|") in (6, 7, 8), line


def test_markdown_fits_a_comment(cases: Cases) -> None:
    case = cases["hostile"]
    many = replace(case.verdict, outcomes=case.verdict.outcomes * 1000)
    text = render_check_markdown(many, case.comparison)
    assert len(text) < 65_536
    assert text.endswith("The rest is too long to be shown here, see the JSON report.\n")


def test_no_output_holds_a_control_character(cases: Cases) -> None:
    verdict, comparison = cases["hostile"].verdict, cases["hostile"].comparison
    for text in (
        render_check_console(verdict, comparison),
        render_comparison_console(comparison, verdict),
        render_check_markdown(verdict, comparison),
        render_comparison_html(comparison, verdict),
        render_comparison_csv(comparison),
        render_junit(verdict),
        render_github(verdict),
        render_gitlab(verdict),
    ):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\u202a-\u202e]", text)
        text.encode()


def test_equal_input_gives_equal_output(cases: Cases) -> None:
    case = cases["broken"]
    assert render_check_json(case.verdict, case.comparison) == render_check_json(
        case.verdict, case.comparison
    )

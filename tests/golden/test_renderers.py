from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from rankscope.model.report import Report
from rankscope.renderers.to_console import render_console
from rankscope.renderers.to_html import render_html
from rankscope.renderers.to_json import render_json
from rankscope.renderers.to_markdown import render_markdown

CheckGolden = Callable[[str, str], None]
NAMES = ("ordinary", "empty", "hostile", "straggling")

every_report = pytest.mark.parametrize("name", NAMES)


def strip_scripts(page: str) -> str:
    """The page without its scripts' and styles' text, which is the same for every report or drawn from data."""
    return re.sub(r"(<(script|style)[^>]*>).*?(</\2>)", r"\1…\3", page, flags=re.DOTALL)


@every_report
@pytest.mark.parametrize("width", [80, 120])
def test_console(name: str, width: int, reports: dict[str, Report], check_golden: CheckGolden) -> None:
    check_golden(f"{name}-{width}.txt", render_console(reports[name], width=width))


@pytest.mark.parametrize("name", ["ordinary", "straggling"])
def test_console_view_of_the_ranks(name: str, reports: dict[str, Report], check_golden: CheckGolden) -> None:
    check_golden(f"{name}-ranks.txt", render_console(reports[name], width=100, view="ranks"))


@every_report
def test_colored_console(name: str, reports: dict[str, Report], check_golden: CheckGolden) -> None:
    check_golden(f"{name}-color.txt", render_console(reports[name], width=80, color=True))


@every_report
def test_markdown(name: str, reports: dict[str, Report], check_golden: CheckGolden) -> None:
    check_golden(f"{name}.md", render_markdown(reports[name]))


@every_report
def test_json(name: str, reports: dict[str, Report], check_golden: CheckGolden) -> None:
    check_golden(f"{name}.json", render_json(reports[name]))


@every_report
def test_html(name: str, reports: dict[str, Report], check_golden: CheckGolden) -> None:
    check_golden(f"{name}.html", strip_scripts(render_html(reports[name])))

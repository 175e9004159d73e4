from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from rankscope.renderers.to_console import render_console
from rankscope.renderers.to_html import render_html
from rankscope.renderers.to_json import render_json
from rankscope.renderers.to_markdown import render_markdown
from support.golden_reports import make_empty, make_hostile, make_ordinary
from support.straggling_report import make_straggling

CheckGolden = Callable[[str, str], None]
REPORTS = {
    "ordinary": make_ordinary(),
    "empty": make_empty(),
    "hostile": make_hostile(),
    "straggling": make_straggling(),
}

every_report = pytest.mark.parametrize("name", REPORTS)


def strip_shared(page: str) -> str:
    """The page without what is the same for every report or drawn from data: styles, scripts and the terms."""
    return re.sub(
        r"(<(script|style|dl class=\"terms\")[^>]*>).*?(?=</(script|style|dl)>)",
        r"\1…",
        page,
        flags=re.DOTALL,
    )


@every_report
@pytest.mark.parametrize("width", [80, 120])
def test_console(name: str, width: int, check_golden: CheckGolden) -> None:
    check_golden(f"{name}-{width}.txt", render_console(REPORTS[name], width=width))


@pytest.mark.parametrize("name", ["ordinary", "straggling"])
def test_console_view_of_the_ranks(name: str, check_golden: CheckGolden) -> None:
    check_golden(f"{name}-ranks.txt", render_console(REPORTS[name], width=100, view="ranks"))


@every_report
def test_colored_console(name: str, check_golden: CheckGolden) -> None:
    check_golden(f"{name}-color.txt", render_console(REPORTS[name], width=80, color=True))


@every_report
def test_markdown(name: str, check_golden: CheckGolden) -> None:
    check_golden(f"{name}.md", render_markdown(REPORTS[name]))


@every_report
def test_json(name: str, check_golden: CheckGolden) -> None:
    check_golden(f"{name}.json", render_json(REPORTS[name]))


@every_report
def test_html(name: str, check_golden: CheckGolden) -> None:
    check_golden(f"{name}.html", strip_shared(render_html(REPORTS[name])))

"""The verdict on limits for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from rankscope.model.comparison import Comparison
from rankscope.model.verdict import Verdict
from rankscope.renderers.check_tables import build_outcome_table, say_verdict
from rankscope.renderers.comparison_tables import say_comparison
from rankscope.renderers.console_drawing import draw_items, draw_table, draw_text, draw_title, print_sections
from rankscope.renderers.escape import make_inert


def render_check_console(
    verdict: Verdict, comparison: Comparison | None = None, *, width: int = 100, color: bool = False
) -> str:
    """The verdict as text for a terminal, ending with a line break.

    Args:
        verdict: the verdict.
        comparison: of the run with its baseline.
        width: columns of the terminal.
        color: whether to use terminal colours.
    """
    title = Text.assemble(("rankscope check", "bold"), "  ", make_inert(verdict.run))
    style = "bold red" if verdict.failed else "bold green"
    lines = [title, Text(""), draw_text(say_verdict(verdict), style=style)]
    if comparison is not None:
        lines.append(draw_text(f"Compared with the base: {say_comparison(comparison)}"))
    return print_sections([Group(*lines), *draw_outcomes(verdict, width)], width=width, color=color)


def draw_outcomes(verdict: Verdict, width: int) -> Sequence[RenderableType]:
    """What broke, what a person should know, and the table of limits."""
    items = [("error", outcome.name, outcome.message) for outcome in verdict.failed]
    items += [("warning", warning, "") for warning in verdict.warnings]
    sections: list[RenderableType] = []
    if items:
        sections.append(Group(draw_title("What to look at"), draw_items(items)))
    sections.append(draw_table(build_outcome_table(verdict), width))
    return sections

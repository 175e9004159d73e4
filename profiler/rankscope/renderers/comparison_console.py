"""A comparison for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from rankscope.model.comparison import Comparison
from rankscope.model.verdict import Verdict
from rankscope.renderers.check_console import draw_outcomes
from rankscope.renderers.check_tables import say_verdict
from rankscope.renderers.comparison_tables import (
    SCOPE_TITLES,
    build_figure_table,
    build_part_table,
    say_comparison,
    say_outside,
    say_sides,
)
from rankscope.renderers.console_drawing import draw_notes, draw_table, draw_text, draw_title, print_sections
from rankscope.renderers.markdown_tables import draw_sparkline

_LONGEST_SPARKLINE = 60
_PARTS_SHOWN = 10


def render_comparison_console(
    comparison: Comparison, verdict: Verdict, *, width: int = 100, color: bool = False
) -> str:
    """The comparison as text for a terminal, ending with a line break.

    Args:
        comparison: the comparison.
        verdict: what became of its regression limits.
        width: columns of the terminal.
        color: whether to use terminal colours.
    """
    title = Text.assemble(("rankscope compare", "bold"))
    head: list[RenderableType] = [
        title,
        draw_text(say_sides(comparison), style="dim"),
        Text(""),
        draw_text(say_comparison(comparison), style="bold"),
    ]
    if verdict.outcomes:
        head.append(draw_text(say_verdict(verdict), style="bold red" if verdict.failed else "bold green"))
    sections: list[RenderableType] = [Group(*head), *draw_comparison(comparison, width)]
    return print_sections([*sections, *draw_outcomes(verdict, width)], width=width, color=color)


def draw_comparison(comparison: Comparison, width: int) -> list[RenderableType]:
    """The tables of figures and parts, the overlap per step, and notes."""
    sections: list[RenderableType] = [
        draw_table(build_figure_table(comparison, scope), width) for scope in SCOPE_TITLES
    ]
    outside = say_outside(comparison)
    sections += draw_notes([outside] if outside else [])
    sides = (("base", comparison.base), ("head", comparison.head))
    if any(side.overlap_by_step for _, side in sides):
        lines = [
            Text(f"  {name}  {draw_sparkline(side.overlap_by_step[-_LONGEST_SPARKLINE:])}")
            for name, side in sides
        ]
        sections.append(Group(draw_title("Hidden communication per steady step (0 to 100 %)"), *lines))
    sections.append(draw_table(build_part_table(comparison, _PARTS_SHOWN), width))
    if comparison.notes:
        sections.append(Group(draw_title("Notes"), *draw_notes(comparison.notes)))
    return sections

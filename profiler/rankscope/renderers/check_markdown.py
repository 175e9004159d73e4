"""The verdict on limits, and a comparison, as Markdown for a job summary or a comment on a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.model.comparison import Comparison
from rankscope.model.verdict import Verdict
from rankscope.renderers.check_tables import build_outcome_table, say_verdict
from rankscope.renderers.comparison_tables import (
    build_figure_table,
    build_part_table,
    say_comparison,
    say_outside,
    say_sides,
)
from rankscope.renderers.escape import MESSAGE_LIMIT, escape_markdown
from rankscope.renderers.markdown_tables import LONGEST_TEXT, draw_sparkline, write_table

MARKER = "<!-- rankscope -->"
"""First line of every comment, by which a later run finds the comment to replace."""

_HEADING = "####"
_LONGEST_SPARKLINE = 60
_FAILURES_SHOWN = 20
_PARTS_SHOWN = 20


def render_check_markdown(verdict: Verdict, comparison: Comparison | None = None) -> str:
    """The verdict as Markdown in GitHub's flavour, ending with a line break.

    Everything that comes from traces is inert: it can form no link, image, HTML, table cell, mention or workflow
    command.

    Args:
        verdict: the verdict.
        comparison: of the run with its baseline.
    """
    mark = "❌" if verdict.failed else "✅"
    title = f"{MARKER}\n## {mark} rankscope: {escape_markdown(verdict.run)}"
    blocks = [title, *([f"**{say_verdict(verdict)}**"] if verdict.outcomes else [])]
    failed = verdict.failed
    lines = [f"- **{escape_markdown(o.name)}**: {escape_markdown(o.message, MESSAGE_LIMIT)}" for o in failed]
    if len(lines) > _FAILURES_SHOWN:
        lines = [*lines[:_FAILURES_SHOWN], f"- and {len(failed) - _FAILURES_SHOWN:,} more"]
    lines += [f"- ⚠️ {escape_markdown(warning, MESSAGE_LIMIT)}" for warning in verdict.warnings]
    blocks += ["\n".join(lines)] if lines else []
    blocks += write_table(build_outcome_table(verdict), _HEADING)
    if comparison is None:
        blocks += _write_sparkline([("", verdict.overlap_by_step)])
    else:
        blocks += write_comparison(comparison)
    return _join_blocks(blocks)


def _join_blocks(blocks: Sequence[str]) -> str:
    """The blocks up to the length of a comment; what is left out is said."""
    kept: list[str] = []
    for block in blocks:
        if sum(map(len, kept)) + len(block) > LONGEST_TEXT:
            kept.append("The rest is too long to be shown here, see the JSON report.")
            break
        kept.append(block)
    return "\n\n".join(kept) + "\n"


def write_comparison(comparison: Comparison) -> list[str]:
    """The comparison as blocks of Markdown: the whole run and the steady steps open, the rest folded away."""
    blocks = [
        "### Compared with the base",
        f"**{escape_markdown(say_comparison(comparison), MESSAGE_LIMIT)}**",
        f"<sub>{escape_markdown(say_sides(comparison), MESSAGE_LIMIT)}</sub>",
    ]
    for scope in ("run", "steady"):
        blocks += write_table(build_figure_table(comparison, scope), _HEADING)
    outside = say_outside(comparison)
    blocks += [escape_markdown(outside, MESSAGE_LIMIT)] if outside else []
    blocks += _write_sparkline(
        [("base", comparison.base.overlap_by_step), ("head", comparison.head.overlap_by_step)]
    )
    for table in (build_figure_table(comparison, "outside"), build_part_table(comparison, _PARTS_SHOWN)):
        inner = write_table(table, _HEADING)
        if inner:
            summary = f"<details><summary>{escape_markdown(table.title)}</summary>"
            blocks.append("\n\n".join([summary, *inner[1:], "</details>"]))
    notes = [f"- {escape_markdown(note, MESSAGE_LIMIT)}" for note in comparison.notes]
    return [*blocks, "\n".join(notes)] if notes else blocks


def _write_sparkline(sides: Sequence[tuple[str, Sequence[float | None]]]) -> list[str]:
    known = [(name, ratios) for name, ratios in sides if ratios]
    if not known:
        return []
    lines = [f"{name} {draw_sparkline(ratios[-_LONGEST_SPARKLINE:])}".strip() for name, ratios in known]
    return ["Hidden communication per steady step (0 to 100 %):\n" + "<br>\n".join(lines)]

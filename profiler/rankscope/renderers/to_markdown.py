"""The report as Markdown that fits a CI job's summary or a comment on a pull request."""

from __future__ import annotations

from rankscope.model.report import Report
from rankscope.renderers.advice_tables import build_advice_table, write_advice, write_code
from rankscope.renderers.bucket_tables import build_bucket_table
from rankscope.renderers.escape import MESSAGE_LIMIT, escape_markdown
from rankscope.renderers.headline import Headline, measure_headline, summarise_steps
from rankscope.renderers.markdown_tables import LONGEST_TEXT, draw_grid, draw_sparkline, write_table
from rankscope.renderers.report_tables import (
    build_group_table,
    build_problem_table,
    build_rank_table,
    build_step_table,
    name_place,
    sort_findings,
)
from rankscope.renderers.straggler_tables import (
    build_evidence_table,
    build_late_table,
    build_waiting_table,
    explain_verdict,
)
from rankscope.renderers.tables import NO_REASON, Column, duration_cell, ratio_cell
from rankscope.renderers.verdict import describe_run, write_verdict

RANKS_OPEN = 8
"""Above this many ranks their table is folded away."""

RANKS_SHOWN = 32
STEPS_SHOWN = 16
GROUPS_SHOWN = 16
WAITING_SHOWN = 8
EVIDENCE_SHOWN = 5
LATE_SHOWN = 5
BUCKETS_SHOWN = 16
CAPS_SHOWN = 16
FINDINGS_SHOWN = 20
PROBLEMS_SHOWN = 20

_LONGEST_SPARKLINE = 100


def render_markdown(report: Report) -> str:
    """The report as Markdown in GitHub's flavour, ending with a line break.

    Everything that comes from traces is inert: it can form no link, image, HTML, table cell, mention or
    workflow command. Sections that would make it longer than a comment may be are left out, which it says.
    """
    sections = {
        "Findings": _write_findings(report),
        "Who the others wait for": _write_waiting(report),
        "Advice": _write_advice(report),
        "Ranks": _write_ranks(report),
        "Steps": _write_steps(report),
        "Buckets": write_table(build_bucket_table(report, BUCKETS_SHOWN)),
        "Process groups": write_table(build_group_table(report, GROUPS_SHOWN)),
        "Problems": write_table(build_problem_table(report, PROBLEMS_SHOWN)),
    }
    texts = ["\n\n".join(_write_opening(report))]
    left_out = []
    for title, blocks in sections.items():
        text = "\n\n".join(blocks)
        if sum(map(len, texts)) + len(text) > LONGEST_TEXT:
            left_out.append(title)
        elif text:
            texts.append(text)
    if left_out:
        texts.append(f"Too long to be shown here, see the JSON report: {', '.join(left_out)}.")
    return "\n\n".join(texts) + "\n"


def _write_opening(report: Report) -> list[str]:
    first, *others = (escape_markdown(statement, MESSAGE_LIMIT) for statement in write_verdict(report))
    blocks = [
        f"## rankscope: {escape_markdown(report.run.name)}",
        "\n".join([f"**{first}**", *(f"<br>{statement}" for statement in others)]),
    ]
    headline = measure_headline(report)
    if headline is not None:
        blocks.append(_write_headline(headline))
    return [*blocks, f"<sub>{escape_markdown(describe_run(report), MESSAGE_LIMIT)}</sub>"]


def _write_headline(headline: Headline) -> str:
    whole = "Step" if headline.is_steady else "Window"
    figures = {
        "Hidden communication": ratio_cell(headline.overlap_ratio, headline.overlap_reason),
        "Exposed communication per rank": duration_cell(headline.exposed_ns),
        f"Share of the {whole.lower()}": ratio_cell(headline.exposed_share, NO_REASON),
        whole: duration_cell(headline.base_ns, NO_REASON),
    }
    return draw_grid([Column(label=label) for label in figures], [list(figures.values())], with_reasons=True)


def _write_findings(report: Report) -> list[str]:
    findings = sort_findings(report)
    if not findings:
        return []
    lines = []
    for finding in findings[:FINDINGS_SHOWN]:
        message = escape_markdown(finding.message, MESSAGE_LIMIT)
        hint = f"<br>→ {escape_markdown(finding.hint, MESSAGE_LIMIT)}" if finding.hint else ""
        lines.append(f"- **{finding.severity}**, {name_place(finding)}: {message}{hint}")
    if len(findings) > FINDINGS_SHOWN:
        lines.append(f"- {len(findings) - FINDINGS_SHOWN:,} more are in the JSON report.")
    return ["### Findings", "\n".join(lines)]


def _write_waiting(report: Report) -> list[str]:
    """Only of a verdict that names somebody: a summary is read by those who look for what is wrong."""
    if report.straggler is None or report.straggler.verdict != "found":
        return []
    sentences = [escape_markdown(sentence, MESSAGE_LIMIT) for sentence in explain_verdict(report)]
    head, *blocks = write_table(build_waiting_table(report, WAITING_SHOWN)) or [""]
    if not blocks:
        return []
    evidence = write_table(build_evidence_table(report, EVIDENCE_SHOWN))
    late = write_table(build_late_table(report, LATE_SHOWN))
    return [head, "<br>\n".join(sentences), *blocks, *evidence, *late]


def _write_advice(report: Report) -> list[str]:
    sentences = [escape_markdown(sentence, MESSAGE_LIMIT) for sentence in write_advice(report)]
    if not sentences:
        return []
    code = write_code(report)
    blocks = ["### Advice", "<br>\n".join(sentences)]
    if code is None:
        return blocks
    return [*blocks, f"```python\n{code}\n```", *write_table(build_advice_table(report, CAPS_SHOWN))[1:]]


def _write_ranks(report: Report) -> list[str]:
    blocks = write_table(build_rank_table(report, RANKS_SHOWN))
    if len(report.ranks) <= RANKS_OPEN:
        return blocks
    summary = f"<details><summary>Ranks ({len(report.ranks):,})</summary>"
    return [summary, *blocks[1:], "</details>"]


def _write_steps(report: Report) -> list[str]:
    blocks = write_table(build_step_table(report, STEPS_SHOWN))
    if not blocks:
        return []
    ratios = [step.overlap_ratio for step in summarise_steps(report) if step.step is not None]
    shown = ratios[-_LONGEST_SPARKLINE:]
    which = "" if len(shown) == len(ratios) else f"the last {len(shown)} of {len(ratios):,} "
    line = f"Hidden communication, {which}steps in order (0 to 100 %): {draw_sparkline(shown)}"
    return [blocks[0], *([line] if shown else []), *blocks[1:]]

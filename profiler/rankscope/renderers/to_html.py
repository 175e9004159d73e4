"""The report as one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankscope.model.report import Report
from rankscope.model.timeline import Timeline
from rankscope.renderers.escape import MESSAGE_LIMIT, embed_json, make_inert
from rankscope.renderers.headline import Headline, measure_headline
from rankscope.renderers.html_page import read_asset, render_page
from rankscope.renderers.html_sections import list_first_sections, list_last_sections
from rankscope.renderers.palette import ANNOTATION, PARTS, WAITING
from rankscope.renderers.report_tables import name_place, sort_findings
from rankscope.renderers.tables import NO_REASON, Cell, duration_cell, ratio_cell
from rankscope.renderers.timeline_columns import encode_timeline
from rankscope.renderers.verdict import describe_run, write_verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tile:
    """One figure at the head of the page."""

    label: str
    cell: Cell


def render_html(report: Report, timeline: Timeline | None = None) -> str:
    """The report as a self-contained page for a light or dark screen, ending with a line break.

    Args:
        report: the report.
        timeline: events of one step to draw, on the common clock; left out if None.
    """
    return render_page(
        "report.html.j2",
        _collect(report, timeline),
        policy="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:",
        colors=(*PARTS, ANNOTATION, WAITING),
        styles=("report.css",),
    )


def _collect(report: Report, timeline: Timeline | None) -> dict[str, Any]:
    """All that the template shows; it escapes everything but scripts and embedded JSON."""
    first, last = list_first_sections(report), list_last_sections(report, timeline)
    blocks = [block for section in (*first, *last) for block in section.blocks]
    charts = {block.chart: block.figure for block in blocks if block.chart is not None}
    return {
        "name": make_inert(report.run.name),
        "description": describe_run(report),
        "verdict": write_verdict(report),
        "tiles": _make_tiles(measure_headline(report)),
        "findings": [
            {
                "severity": finding.severity,
                "place": name_place(finding),
                "message": make_inert(finding.message, MESSAGE_LIMIT),
                "hint": make_inert(finding.hint, MESSAGE_LIMIT),
            }
            for finding in sort_findings(report)
        ],
        "first_sections": first,
        "last_sections": last,
        "charts": embed_json(charts) if charts else None,
        "timeline": timeline,
        "timeline_data": None if timeline is None else embed_json(encode_timeline(timeline)),
        "clock_note": _say_clock(report),
        "version": report.tool.version,
        "scripts": {name: read_asset(f"{name}.js") for name in ("charts", "tables", "timeline")},
        "plotly": _read_plotly() if charts else None,
    }


def _say_clock(report: Report) -> str:
    clock = report.run.clock
    if len(report.run.ranks) < 2:
        return ""
    if clock.method == "none" or clock.untied_ranks:
        return "Not all clocks could be tied together: times of different ranks may not compare."
    return "All ranks are drawn on one clock."


def _make_tiles(headline: Headline | None) -> list[_Tile]:
    if headline is None:
        return []
    whole, per = ("step", "rank and step") if headline.is_steady else ("window", "rank")
    return [
        _Tile(label="Hidden communication", cell=ratio_cell(headline.overlap_ratio, headline.overlap_reason)),
        _Tile(label=f"Exposed per {per}", cell=duration_cell(headline.exposed_ns)),
        _Tile(label=f"Exposed share of the {whole}", cell=ratio_cell(headline.exposed_share, NO_REASON)),
        _Tile(label=f"Mean {whole}", cell=duration_cell(headline.base_ns, NO_REASON)),
    ]


def _read_plotly() -> str:
    # Loaded here only: it takes long, and no other command needs it.
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())

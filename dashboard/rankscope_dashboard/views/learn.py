"""What each collective does, and the ring's arithmetic with this run's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import streamlit as st

from rankscope.model.report import CollectiveRow, GroupRow, Report
from rankscope.model.ring import Ring, plan_ring
from rankscope.renderers.glossary import TERMS
from rankscope.renderers.undefined import Reasons, make_path
from rankscope.units import format_duration, format_size
from rankscope_dashboard.lessons import LESSONS, Lesson
from rankscope_dashboard.show import safe, show_heading, show_nothing, show_title
from rankscope_dashboard.visit import Visit
from rankscope_dashboard.words import LEARN

_USUAL_LINK_GBPS = 100.0


def show(visit: Visit) -> None:
    """Draw the lessons, those on the run's own operations first."""
    show_title(LEARN)
    link = _choose_link(visit.report)
    groups = sorted(visit.report.groups, key=lambda group: -group.communication_ns)
    used = list(dict.fromkeys(group.op for group in groups))
    if not used:
        show_nothing("No communication in this run", "Here is what each collective does all the same.")
    for op in used:
        lesson = LESSONS.get(op)
        if lesson is not None:
            _show_lesson(lesson)
            for group in [group for group in groups if group.op == op][:4]:
                _show_sum(visit.report, group, link)
    others = [lesson for op, lesson in LESSONS.items() if op not in used]
    if others:
        with st.expander("Operations that this run does not use"):
            for lesson in others:
                _show_lesson(lesson)
    with st.expander("The words of this dashboard"):
        st.html(
            "".join(
                f'<p class="rs-term"><b>{safe(word)}</b> {safe(says)}</p>' for word, says in TERMS.items()
            )
        )


def _choose_link(report: Report) -> float:
    best = max((row.bus_bandwidth_gbps or 0.0 for row in report.collectives), default=0.0)
    return st.number_input(
        "Bandwidth of a link, GB/s",
        min_value=0.001,
        value=round(best, 3) if best >= 0.001 else _USUAL_LINK_GBPS,
        key="link",
        width=260,
        help="At first the best bus bandwidth that this run reached; put in what your hardware promises.",
    )


def _show_lesson(lesson: Lesson) -> None:
    show_heading(lesson.title)
    st.html(
        f'<div class="rs-lesson"><p>{safe(lesson.does)}</p><p>{safe(lesson.used)}</p>'
        f'<p class="rs-formula">{safe(lesson.formula)}</p></div>'
    )


def _show_sum(report: Report, group: GroupRow, link_gbps: float) -> None:
    rows = [
        row
        for row in report.collectives
        if row.op == group.op and row.group == group.group and row.size_bytes
    ]
    if not rows:
        st.html(
            f'<div class="rs-sum"><b>{safe(group.group)}</b><p>The trace gives no sizes for it.</p></div>'
        )
        return
    size = int(median([row.size_bytes or 0 for row in rows]))
    ring = plan_ring(group.op, len(group.ranks) or rows[0].ranks, size)
    if ring is None:
        return
    same = [row for row in rows if row.size_bytes == size] or rows
    st.html(
        f'<div class="rs-sum"><b>{safe(group.group)}</b>{_say_ring(ring, link_gbps)}{_say_measured(report, same)}</div>'
    )


def _say_ring(ring: Ring, link_gbps: float) -> str:
    steps = ""
    if ring.steps is not None and ring.step_bytes is not None:
        steps = f"{ring.steps:,} steps of {format_size(ring.step_bytes)} each: "
    least = format_duration(ring.transfer_ns(link_gbps))
    text = (
        f"{format_size(ring.size_bytes)} over {ring.ranks:,} ranks: {steps}every rank sends "
        f"{format_size(ring.traffic_bytes)}, at {link_gbps:g} GB/s {least} at least."
    )
    return f"<p>{safe(text)}</p>"


def _say_measured(report: Report, rows: Sequence[CollectiveRow]) -> str:
    transfers = [row.transfer_ns for row in rows if row.transfer_ns is not None]
    waits = [row.wait_ns.max for row in rows if row.wait_ns is not None]
    if not transfers:
        path = make_path("collectives", {"index": rows[0].index}, "transfer_ns")
        reason = Reasons(report.undefined).find(path) or "it was not found on all its ranks"
        return f"<p>{safe(f'Transfer: n/a ({reason}).')}</p>"
    waited = (
        f", after up to {format_duration(round(median(waits)))} of waiting for the last rank" if waits else ""
    )
    return (
        f"<p>{safe(f'Measured: transfer {format_duration(round(median(transfers)))} (median){waited}.')}</p>"
    )

"""What each collective does, and the ring's arithmetic with this run's numbers."""

from __future__ import annotations

import streamlit as st

from rankscope.model.report import GroupRow, Report
from rankscope.model.ring import Ring
from rankscope.renderers.glossary import TERMS
from rankscope.renderers.ring_sums import RingSum, measure_ring
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
        help="At first the best bus bandwidth among the collectives of the report; put in what your hardware promises.",
    )


def _show_lesson(lesson: Lesson) -> None:
    show_heading(lesson.title)
    st.html(
        f'<div class="rs-lesson"><p>{safe(lesson.does)}</p><p>{safe(lesson.used)}</p>'
        f'<p class="rs-formula">{safe(lesson.formula)}</p></div>'
    )


def _show_sum(report: Report, group: GroupRow, link_gbps: float) -> None:
    usual = measure_ring(report, group)
    if usual is None:
        says = "<p>The trace gives no sizes for it.</p>"
    elif usual.ring is None:
        return
    else:
        says = f"<p>{safe(_say_ring(usual.ring, link_gbps))}</p><p>{safe(_say_measured(usual))}</p>"
    st.html(f'<div class="rs-sum"><b>{safe(group.group)}</b>{says}</div>')


def _say_ring(ring: Ring, link_gbps: float) -> str:
    steps = ""
    if ring.steps is not None and ring.step_bytes is not None:
        steps = f"{ring.steps:,} steps of {format_size(ring.step_bytes)} each: "
    least = format_duration(ring.transfer_ns(link_gbps))
    return (
        f"{format_size(ring.size_bytes)} over {ring.ranks:,} ranks: {steps}every rank sends "
        f"{format_size(ring.traffic_bytes)}, at {link_gbps:g} GB/s {least} at least."
    )


def _say_measured(usual: RingSum) -> str:
    if usual.transfer_ns is None:
        return f"Transfer: n/a ({usual.transfer_reason})."
    waited = ""
    if usual.wait_ns:
        waited = f", after up to {format_duration(usual.wait_ns)} of waiting for the last rank"
    return f"Measured: transfer {format_duration(usual.transfer_ns)} (median){waited}."

"""All ranks on one clock, down to the single event."""

from __future__ import annotations

import streamlit as st

from rankscope.model.timeline import Timeline
from rankscope.model.timeline_view import cut
from rankscope.units import format_duration
from rankscope_dashboard.load import load_timeline
from rankscope_dashboard.places import read_number, remember
from rankscope_dashboard.show import current_theme, show_notes, show_nothing, show_title
from rankscope_dashboard.timeline_component import asked_view, show_timeline
from rankscope_dashboard.visit import Visit
from rankscope_dashboard.words import TIMELINE

FROM, TO = "from", "to"
RANKS_AT_FIRST = 8
_FIRST_WIDTH = 1100
_MARGIN = 0.5
"""What is sent beside the view, as a share of it, so that moving shows events at once."""


def show(visit: Visit) -> None:
    """Draw the timeline of a run."""
    show_title(TIMELINE)
    timeline = load_timeline(visit.run)
    if not len(timeline):
        show_nothing(
            "No events to show",
            "The run keeps no events: it was stored without them, or nothing was recorded.",
        )
        return
    ranks = sorted({lane.rank for lane in timeline.lanes})
    chosen = st.multiselect(
        "Ranks", ranks, default=choose_ranks(visit, ranks), key="timeline-ranks", placeholder="all ranks"
    )
    _draw(visit.run.id, timeline, tuple(chosen or ranks))
    show_notes(_describe(visit, timeline, ranks))


def choose_ranks(visit: Visit, ranks: list[int]) -> list[int]:
    """The ranks shown at first: those that the others wait for, then the first ones."""
    straggler = visit.report.straggler
    named = [] if straggler is None else [rank for rank in straggler.ranks if rank in ranks]
    return sorted([*named, *(rank for rank in ranks if rank not in named)][:RANKS_AT_FIRST])


@st.fragment
def _draw(run: str, timeline: Timeline, ranks: tuple[int, ...]) -> None:
    """Draw what the page asks for; only this part runs again while a visitor zooms."""
    asked = asked_view()
    start, end, width = asked or (*_linked_view(timeline), _FIRST_WIDTH)
    if asked is not None:
        is_whole = start <= timeline.start_ns and end >= timeline.end_ns
        remember(FROM, None if is_whole else str(start))
        remember(TO, None if is_whole else str(end))
    margin = round((end - start) * _MARGIN)
    shown = cut(timeline, start - margin, end + margin, parts=round(width * (1 + 2 * _MARGIN)), ranks=ranks)
    show_timeline(shown, (start, end), run, current_theme())


def _linked_view(timeline: Timeline) -> tuple[int, int]:
    start, end = read_number(FROM), read_number(TO)
    if start is None or end is None or end <= start or start >= timeline.end_ns or end <= timeline.start_ns:
        return timeline.start_ns, timeline.end_ns
    return start, end


def _describe(visit: Visit, timeline: Timeline, ranks: list[int]) -> list[str]:
    clock = visit.report.run.clock
    notes = [
        f"{len(timeline):,} events of {len(ranks):,} ranks. Times count from the time zero of the report."
    ]
    if clock.method == "none":
        notes.append("The ranks' clocks could not be aligned: compare times within one rank only.")
    elif clock.untied_ranks:
        notes.append(
            f"Not on the common clock, since no collective ties them to it: ranks {clock.untied_ranks}."
        )
    known = [error for error in clock.uncertainty_ns.values() if error is not None]
    if clock.method != "none" and known:
        notes.append(f"Clocks aligned by {clock.method}, to within {format_duration(max(known))}.")
    if visit.report.run.missing_ranks:
        notes.append(f"Ranks without a trace: {visit.report.run.missing_ranks[:20]}.")
    return notes

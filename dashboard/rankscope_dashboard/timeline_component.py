"""The timeline in the page: what is sent to its script, and what comes back."""

from __future__ import annotations

import base64
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import streamlit as st

from rankscope.model.timeline_view import TimelineCut
from rankscope.renderers.palette import ANNOTATION, COMPUTE, EXPOSED, HIDDEN, MEMORY, WAITING
from rankscope.renderers.timeline_columns import encode_timeline
from rankscope_dashboard.figures.paint import Theme, color_of

KEY = "timeline"
_PARTS = (COMPUTE, HIDDEN, EXPOSED, MEMORY, ANNOTATION, WAITING)
_WORDS = {part.slug: part.label for part in _PARTS} | {HIDDEN.slug: "communication"}
_INK = {"light": {"text": "#1c2128", "line": "#e2e5ea"}, "dark": {"text": "#e4e7eb", "line": "#333a44"}}


@cache
def _component() -> Any:  # noqa: ANN401 - streamlit's renderer
    assets = files("rankscope_dashboard") / "assets"
    html, css, js = (
        (assets / f"timeline.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
    )
    return st.components.v2.component("rankscope_timeline", html=html, css=css, js=js)


def show_timeline(shown: TimelineCut, view: tuple[int, int], run: str, theme: Theme) -> None:
    """Draw a part of a timeline.

    Args:
        shown: the part, at least as long as the view.
        view: where a visitor starts, in ns relative to the timeline's origin.
        run: what is shown; another one starts at its own view.
        theme: colours of the page.
    """
    _component()(key=KEY, data=encode_cut(shown, view, run, theme), on_view_change=lambda: None)


def encode_cut(shown: TimelineCut, view: tuple[int, int], run: str, theme: Theme) -> dict[str, Any]:
    """The part of a timeline in JSON types, with colours and words."""
    data = encode_timeline(shown.timeline)
    for lane, counts in zip(data["lanes"], shown.counts, strict=True):
        lane["counts"] = base64.b64encode(counts.astype(np.dtype("<i4")).tobytes()).decode("ascii")
    return {
        **data,
        "run": run,
        "view": list(view),
        "cut": [shown.start_ns, shown.end_ns, shown.part_ns],
        "colors": {part.slug: color_of(part, theme) for part in _PARTS} | _INK[theme],
        "words": _WORDS,
        "legend": [[part.slug, _WORDS[part.slug]] for part in (COMPUTE, HIDDEN, EXPOSED, MEMORY)],
    }


def asked_view() -> tuple[int, int, int] | None:
    """Start, end (ns) and width (pixels) that the page's script asks for; None before it has."""
    state = st.session_state.get(KEY)
    wanted = None if state is None else state.get("view")
    if not isinstance(wanted, list) or len(wanted) != 3:
        return None
    start, end, width = (int(value) for value in wanted)
    return start, end, width

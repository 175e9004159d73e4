"""A stored run as one HTML page."""

from __future__ import annotations

from rankscope.analyses.timeline import build_timeline
from rankscope.renderers.to_html import render_html
from rankscope.store import Store


def render_page(store: Store, run_id: str) -> str:
    """The report of a run with its pictures, as `rankscope analyze --format html` writes it."""
    return render_html(store.report(run_id), build_timeline(store.run(run_id)))

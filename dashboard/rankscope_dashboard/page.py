"""One page: the menu at the side, and the view that the link names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from rankscope.errors import RankscopeError, RunNotFoundError
from rankscope.store import RunStatus
from rankscope_dashboard.downloads import show_downloads
from rankscope_dashboard.load import StoredRun, find_run, load_report
from rankscope_dashboard.places import current_place, go_to
from rankscope_dashboard.progress import show_progress
from rankscope_dashboard.show import safe, show_nothing, show_title
from rankscope_dashboard.views import (
    buckets,
    collectives,
    compare,
    hta,
    learn,
    overlap,
    overview,
    runs,
    stragglers,
    timeline,
)
from rankscope_dashboard.visit import Visit
from rankscope_dashboard.words import (
    BUCKETS,
    COLLECTIVES,
    COMPARE,
    HTA,
    LEARN,
    OVERLAP,
    OVERVIEW,
    RUN_VIEWS,
    RUNS,
    STRAGGLERS,
    TIMELINE,
    ViewWords,
)

_ASSETS = Path(__file__).parent / "assets"

_VIEWS: dict[str, Callable[[Visit], None]] = {
    OVERVIEW.slug: overview.show,
    OVERLAP.slug: overlap.show,
    BUCKETS.slug: buckets.show,
    STRAGGLERS.slug: stragglers.show,
    TIMELINE.slug: timeline.show,
    COLLECTIVES.slug: collectives.show,
    COMPARE.slug: compare.show,
    LEARN.slug: learn.show,
    HTA.slug: hta.show,
}


def draw() -> None:
    """Draw the page of the current link."""
    st.set_page_config(page_title="rankscope", page_icon=str(_ASSETS / "icon.svg"), layout="wide")
    st.html(f"<style>{(_ASSETS / 'style.css').read_text(encoding='utf-8')}</style>")
    place = current_place()
    if place.run is None:
        _draw_menu(None, RUNS)
        runs.show()
        return
    words = next((words for words in RUN_VIEWS if words.slug == place.view), OVERVIEW)
    try:
        _draw_run(find_run(place.run), words)
    except RunNotFoundError:
        _draw_menu(None, words)
        show_title(words)
        show_nothing(
            "This run is not here",
            f"The store holds no run {place.run!r}: it was deleted, or the link belongs to another store.",
            "All runs of this store are listed under Runs.",
        )


def _draw_run(found: StoredRun | RunStatus, words: ViewWords) -> None:
    if isinstance(found, RunStatus):
        _draw_menu(None, words)
        show_progress(found)
        return
    _draw_menu(found, words)
    try:
        visit = Visit(run=found, report=load_report(found))
        with st.sidebar:
            show_downloads(visit)
        _VIEWS[words.slug](visit)
    except RunNotFoundError:
        raise
    except RankscopeError as error:
        show_title(words)
        show_nothing("This run cannot be shown", str(error), "Upload its traces again.")


def _draw_menu(run: StoredRun | None, current: ViewWords) -> None:
    with st.sidebar:
        st.html('<p class="rs-brand">rankscope<span>where communication stops hiding</span></p>')
        _menu_button(RUNS, current, None)
        if run is None:
            return
        st.html(f'<p class="rs-run">{safe(run.record.name)}</p><p>{safe(run.record.created_at)}</p>')
        for words in RUN_VIEWS:
            _menu_button(words, current, run.id)


def _menu_button(words: ViewWords, current: ViewWords, run: str | None) -> None:
    st.button(
        words.title,
        key=f"menu-{words.slug}",
        icon=words.icon,
        type="secondary" if words is current else "tertiary",
        width="stretch",
        on_click=go_to,
        args=(run, words.slug if run else None),
    )

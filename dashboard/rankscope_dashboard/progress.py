"""A run that is not ready yet: how far it has come, or why it failed."""

from __future__ import annotations

import streamlit as st

from rankscope.errors import RunNotFoundError
from rankscope.store import RunStatus
from rankscope_dashboard.load import open_shared_store
from rankscope_dashboard.show import safe, show_nothing

_REFRESH_SECONDS = 0.7
_WORDS = {
    "receiving": "Receiving files",
    "queued": "Waiting for its turn",
    "analysing": "Analysing",
}


def show_progress(status: RunStatus) -> None:
    """Draw how far a run has come, and its views as soon as it is ready."""
    st.html(f'<h1 class="rs-title">{safe(status.name)}</h1>')
    if status.state == "failed":
        show_nothing("The analysis failed", status.message, "Correct the files and upload them again.")
        return
    _follow(status.run_id)


@st.fragment(run_every=_REFRESH_SECONDS)
def _follow(run_id: str) -> None:
    try:
        status = open_shared_store().status(run_id)
    except RunNotFoundError:
        st.rerun()
    if status.state not in _WORDS:
        st.rerun()
    stage = f": {status.stage}" if status.stage else ""
    st.progress(status.progress or 0.0, text=f"{_WORDS[status.state]}{stage} ...")

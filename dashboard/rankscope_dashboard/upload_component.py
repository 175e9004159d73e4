"""The place on the page where runs are uploaded; files go straight to the server's upload interface."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import streamlit as st

KEY = "upload"
_OWN = "own-uploads"


@cache
def _component() -> Any:  # noqa: ANN401 - streamlit's renderer
    assets = files("rankscope_dashboard") / "assets"
    html, css, js = (
        (assets / f"upload.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
    )
    return st.components.v2.component("rankscope_upload", html=html, css=css, js=js)


def show_upload(on_uploaded: Callable[[str], None]) -> None:
    """Draw the place where runs are uploaded.

    Args:
        on_uploaded: called with the id of a run whose files have all arrived.
    """

    def tell() -> None:
        run_id = st.session_state[KEY].get("uploaded")
        own = st.session_state.setdefault(_OWN, [])
        if (
            isinstance(run_id, str) and run_id and run_id not in own
        ):  # the page says it until it is drawn anew
            own.append(run_id)
            on_uploaded(run_id)

    _component()(key=KEY, on_uploaded_change=tell)


def own_uploads() -> list[str]:
    """Ids of the runs that this visitor has uploaded since the page was opened."""
    found: list[str] = st.session_state.get(_OWN, [])
    return found

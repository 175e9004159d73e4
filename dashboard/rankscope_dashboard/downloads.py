"""What a visitor can take home: the report in every format, its tables, and the timeline for Perfetto."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from rankscope.renderers.to_csv import CSV_TABLES, render_csv
from rankscope.renderers.to_json import render_json
from rankscope.renderers.to_markdown import render_markdown
from rankscope_dashboard.pages import render_page
from rankscope_dashboard.visit import Visit


def show_downloads(visit: Visit) -> None:
    """Draw the menu of downloads; each file is made when it is asked for."""
    report, run = visit.report, visit.run
    with st.popover("Download", icon=":material/download:", width="stretch"):
        _offer("Report (HTML)", "report.html", "text/html", partial(render_page, run.store, run.id))
        _offer("Report (Markdown)", "report.md", "text/markdown", partial(render_markdown, report))
        _offer("Report (JSON)", "report.json", "application/json", partial(render_json, report))
        st.link_button("Trace of all ranks (Perfetto)", f"api/v1/runs/{run.id}/trace", type="tertiary")
        for table in CSV_TABLES:
            if getattr(report, table):
                _offer(f"{table} (CSV)", f"{table}.csv", "text/csv", partial(render_csv, report, table))


def _offer(label: str, name: str, mime: str, make: Callable[[], str]) -> None:
    st.download_button(
        label, make, file_name=name, mime=mime, key=f"download-{name}", type="tertiary", on_click="ignore"
    )

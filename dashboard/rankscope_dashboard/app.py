"""The dashboard's page: Streamlit runs this file for every visitor and every click."""

from __future__ import annotations

from rankscope_dashboard.page import draw

draw()

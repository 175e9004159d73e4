"""The dashboard's colours as settings of Streamlit: a light and a dark page, as the visitor's system asks for."""

from __future__ import annotations

from rankscope.renderers.palette import COMPUTE

THEME = {
    "theme.baseRadius": "8px",
    "theme.light.primaryColor": COMPUTE.light,
    "theme.light.backgroundColor": "#ffffff",
    "theme.light.secondaryBackgroundColor": "#f4f5f7",
    "theme.light.textColor": "#1c2128",
    "theme.light.borderColor": "#dfe3e8",
    "theme.dark.primaryColor": COMPUTE.dark,
    "theme.dark.backgroundColor": "#14171c",
    "theme.dark.secondaryBackgroundColor": "#1f242c",
    "theme.dark.textColor": "#e4e7eb",
    "theme.dark.borderColor": "#333a44",
    "theme.light.sidebar.backgroundColor": "#f4f5f7",
    "theme.dark.sidebar.backgroundColor": "#191d23",
}
"""Option -> value."""

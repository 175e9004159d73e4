"""Where a visitor is: the run, the view and what is chosen in it, all in the link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

RUN, VIEW = "run", "view"
LONGEST_VALUE = 200
"""Longest value of a link's parameter that is looked at, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in the dashboard.

    Attributes:
        run: the run's id, None where none is chosen.
        view: slug of the view, None where the link names none.
    """

    run: str | None
    view: str | None


def current_place() -> Place:
    """The place that the link names."""
    return Place(run=read_parameter(RUN), view=read_parameter(VIEW))


def read_parameter(name: str) -> str | None:
    """A parameter of the link, None if it is absent or empty."""
    value = st.query_params.get(name)
    return value[:LONGEST_VALUE] if value else None


def read_number(name: str) -> int | None:
    """A whole number among the link's parameters, None if it is absent or no number."""
    value = read_parameter(name)
    digits = "" if value is None else value.removeprefix("-")
    return int(value or "") if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def go_to(run: str | None, view: str | None, others: Mapping[str, str] | None = None) -> None:
    """Change the link; call it from a widget's callback, so that the page is drawn at the new place.

    Args:
        run: id of the run, None for none.
        view: slug of the view, None for the first one.
        others: further parameters of that view.
    """
    wanted = {RUN: run, VIEW: view, **(others or {})}
    st.query_params.from_dict({key: value for key, value in wanted.items() if value is not None})


def remember(name: str, value: str | None) -> None:
    """Put one parameter into the link, or take it out; the page is not drawn again."""
    if value is None:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value

"""The same events by HolisticTraceAnalysis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import streamlit as st

from rankscope.bridge_hta import quiet, to_hta
from rankscope.errors import RankscopeError
from rankscope.renderers.tables import Table
from rankscope.store import Store
from rankscope_dashboard.hta_results import ASKED, compare_overlap, find_critical_path
from rankscope_dashboard.show import show_heading, show_nothing, show_table, show_title
from rankscope_dashboard.visit import Visit
from rankscope_dashboard.words import HTA

_ANSWERS = 4


def show(visit: Visit) -> None:
    """Draw what HolisticTraceAnalysis says of a run."""
    show_title(HTA)
    if find_spec("hta") is None:
        show_nothing(
            "HolisticTraceAnalysis is not installed",
            "This view needs it on the server.",
            'Install it with: pip install "rankscope[hta]"',
        )
        return
    asked = f"asked-hta-{visit.run.id}"
    if not st.session_state.get(asked):
        show_nothing(
            "Not asked yet", "HTA reads all events of the run, which takes a while; its answers are kept."
        )
        st.button(
            "Ask HTA",
            type="primary",
            key="ask-hta",
            on_click=st.session_state.__setitem__,
            args=(asked, True),
        )
        return
    for title, sentence, answer in _ask(visit.run.store, visit.run.id, visit.run.record.content):
        _show_answer(title, sentence, answer)
    _show_critical_path(visit)


def _show_answer(title: str, sentence: str, answer: Table | str) -> None:
    show_heading(title, sentence)
    if isinstance(answer, str):
        show_nothing("HTA cannot tell", answer)
    elif not answer.rows:
        show_nothing("Nothing to show", "HTA finds no event that this question is about.")
    else:
        show_table(answer, key=f"hta-{title.lower().replace(' ', '-')}")


def _show_critical_path(visit: Visit) -> None:
    ranks, steps = visit.report.run.ranks, visit.report.run.steps
    if not steps:
        return
    left, right, _ = st.columns([1, 1, 3])
    rank = left.selectbox("Rank", ranks, key="hta-rank")
    step = right.selectbox("Step", steps, key="hta-step")
    answer = _ask_path(visit.run.store, visit.run.id, visit.run.record.content, rank, steps.index(step))
    _show_answer(
        "Critical path",
        "What the length of this step hangs on: to make anything else faster would not shorten it.",
        answer,
    )


@st.cache_resource(max_entries=_ANSWERS, show_spinner="Asking HolisticTraceAnalysis ...")
def _ask(_store: Store, run_id: str, content: str) -> list[tuple[str, str, Table | str]]:
    """Heading, sentence and answer of each question; an answer that is a text says why there is none."""
    run, report = _store.run(run_id), _store.report(run_id)
    sentence = "The share of communication that compute hides, by both, and what makes the difference."
    answers = [("Overlap beside ours", sentence, _answer(lambda: compare_overlap(run, report)))]
    try:
        with quiet():
            analysis = to_hta(run)
    except RankscopeError as error:
        return [*answers, ("HolisticTraceAnalysis", "", str(error))]
    for title, sentence, question in ASKED:
        answers.append((title, sentence, _answer(partial(question, analysis, list(run.ranks)))))
    return answers


@st.cache_resource(max_entries=64, show_spinner="Asking HolisticTraceAnalysis ...")
def _ask_path(_store: Store, run_id: str, content: str, rank: int, step: int) -> Table | str:
    return _answer(lambda: find_critical_path(_store.run(run_id), rank, step))


def _answer(ask: Callable[[], Table]) -> Table | str:
    """The answer, or why there is none."""
    try:
        return ask()
    except RankscopeError as error:
        return str(error)

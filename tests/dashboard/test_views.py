"""Each view over a store of every kind, run by Streamlit itself without a browser."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import rankscope_dashboard
from rankscope.renderers.tables import Cell, Column, Table
from rankscope.store import Job
from rankscope_dashboard.server import STORE_VARIABLE
from rankscope_dashboard.show import to_frame
from rankscope_dashboard.words import RUN_VIEWS
from support.dashboard_runs import ViewRuns

APP = Path(rankscope_dashboard.__file__).parent / "app.py"
VIEWS = [words.slug for words in RUN_VIEWS]


@pytest.fixture
def empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path))


@pytest.fixture
def full_store(view_runs: ViewRuns, monkeypatch: pytest.MonkeyPatch) -> ViewRuns:
    monkeypatch.setenv(STORE_VARIABLE, view_runs.store.url)
    return view_runs


@pytest.fixture(autouse=True)
def main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit makes the page the main module and leaves it so: processes that later tests start would run it."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def open_page(**parameters: str) -> AppTest:
    page = AppTest.from_file(str(APP), default_timeout=60)
    page.query_params.update(parameters)
    page.run()
    assert not page.exception
    return page


def text_of(page: AppTest) -> str:
    """Everything that the page says in sentences."""
    parts = [element.proto.body for element in page.html if not element.proto.body.startswith("<style")]
    return html.unescape(re.sub(r"<[^>]+>", " ", " ".join(parts))).replace("\xa0", " ")


@pytest.mark.usefixtures("empty_store")
def test_an_empty_store_says_how_to_fill_it() -> None:
    assert "rankscope push" in text_of(open_page())


@pytest.mark.usefixtures("empty_store")
@pytest.mark.parametrize("view", VIEWS)
def test_a_link_to_a_run_that_is_not_here_says_so(view: str) -> None:
    assert "This run is not here" in text_of(open_page(run="20260101T000000-0123456789ab", view=view))


@pytest.mark.usefixtures("empty_store")
@pytest.mark.parametrize("run", ["../../etc/passwd", "x" * 5000, "<script>alert(1)</script>"])
def test_a_link_with_nonsense_for_a_run_says_so(run: str) -> None:
    assert "This run is not here" in text_of(open_page(run=run, view="overview"))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("run", ["late", "lone", "broken", "hostile"])
def test_every_view_draws_every_kind_of_run(full_store: ViewRuns, run: str, view: str) -> None:
    page = open_page(run=getattr(full_store, run), view=view)
    title = next(words.title for words in RUN_VIEWS if words.slug == view)
    assert title in text_of(page)


def test_a_view_without_a_name_is_the_overview(full_store: ViewRuns) -> None:
    assert "What the run comes down to" in text_of(open_page(run=full_store.late, view="nonsense"))


def test_the_overview_begins_with_the_verdict(full_store: ViewRuns) -> None:
    text = text_of(open_page(run=full_store.late, view="overview"))
    assert "The other ranks wait for rank 3, 2.00 ms per step" in text
    assert text.index("hidden behind compute") < text.index("Where each rank's time goes")


def test_missing_ranks_are_named(full_store: ViewRuns) -> None:
    assert "Rank 1 has no trace" in text_of(open_page(run=full_store.lone, view="overview"))


def test_a_broken_file_is_named_with_the_byte(full_store: ViewRuns) -> None:
    text = text_of(open_page(run=full_store.broken, view="overview"))
    assert "1 file could not be read in full" in text
    assert re.search(r"byte \d", text)


def test_the_menu_leads_to_a_view_and_changes_the_link(full_store: ViewRuns) -> None:
    page = open_page(run=full_store.late)
    page.button(key="menu-overlap").click().run()
    assert page.query_params == {"run": full_store.late, "view": "overlap"}
    assert "Waiting or transferring" in text_of(page)


def test_a_finding_leads_to_the_view_behind_it(full_store: ViewRuns) -> None:
    page = open_page(run=full_store.late)
    page.button(key="finding-0").click().run()
    assert page.query_params["view"] == "stragglers"


def test_the_search_keeps_the_runs_that_match(full_store: ViewRuns) -> None:
    page = open_page()
    assert len(page.dataframe[0].value) == 4
    page.text_input(key="search").set_value("branch=main").run()
    assert page.dataframe[0].value["0"].tolist() == ["late"]
    page.text_input(key="search").set_value("nothing like it").run()
    assert "No run matches" in text_of(page)


def test_hta_is_asked_by_a_button_and_its_overlap_explained(full_store: ViewRuns) -> None:
    pytest.importorskip("hta")
    page = open_page(run=full_store.late, view="hta")
    assert "Not asked yet" in text_of(page)
    page.button(key="ask-hta").click().run()
    assert not page.exception
    text = text_of(page)
    for title in ("Overlap beside ours", "Idle time", "Queue length", "Kernels", "Critical path"):
        assert title in text
    overlap = page.dataframe[0].value
    ours, theirs = overlap["1"], overlap["2"]
    made = (overlap["3"] + overlap["4"] + overlap["5"]).div(100)
    assert (ours - theirs).tolist() == pytest.approx(made.tolist(), abs=2e-4)  # shown to 0.01 points


def test_the_ring_stands_beside_what_was_measured(full_store: ViewRuns) -> None:
    text = text_of(open_page(run=full_store.late, view="learn"))
    assert re.search(r"over 4 ranks: 6 steps of .* each: every rank sends", text)
    assert re.search(r"Measured: transfer \S+ ms \(median\)\.", text)


def test_another_run_is_compared_once_it_is_chosen(full_store: ViewRuns) -> None:
    page = open_page(run=full_store.late, view="compare")
    assert "Choose the run" in text_of(page)
    page = open_page(run=full_store.late, view="compare", **{"with": full_store.lone})
    text = text_of(page)
    assert "base: lone" in text
    assert "Jobs of 2 against 4 ranks" in text


def test_a_failed_analysis_says_why(full_store: ViewRuns) -> None:
    jobs = full_store.store.jobs
    job = jobs.save(
        Job(run_id="20260101T000000-00000000cafe", name="bad", created_at="", files=[], state="receiving")
    )
    jobs.fail(job.run_id, "no trace <b>at all</b>")
    try:
        text = text_of(open_page(run=job.run_id))
        assert "The analysis failed" in text
        assert "no trace <b>at all</b>" in text
    finally:
        jobs.remove(job.run_id)


def test_cells_of_one_number_keep_their_own_texts() -> None:
    rows = [[Cell(text="a"), Cell(text="1 of 2", value=1)], [Cell(text="b"), Cell(text="1 of 8", value=1)]]
    rows += [[Cell(text="c"), Cell(text="n/a", reason="why")], [Cell(text="d"), Cell(text="outside")]]
    frame, styled = to_frame(
        Table(title="", columns=(Column(label="Name"), Column(label="Ranks")), rows=tuple(map(tuple, rows)))
    )
    assert frame["1"].tolist()[:2] == [1, 1]
    shown = [line.split(";")[2] for line in styled.to_string(delimiter=";").splitlines()[1:]]
    assert shown == ["1 of 2", "1 of 8", "n/a", "outside"]


def test_an_empty_table_is_drawn_as_one() -> None:
    frame, _ = to_frame(Table(title="", columns=(Column(label="Name"),), rows=()))
    assert frame.shape == (0, 1)

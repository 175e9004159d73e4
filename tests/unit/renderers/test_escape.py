from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankscope.renderers.escape import bind_units, embed_json, escape_markdown, make_inert

hostile = st.text(
    alphabet=st.sampled_from("ab1 <>&|`*_~[]()\\$!#:@/.-+=\"'{}\n\r\t\x1b\u202e\u2066…é"), max_size=40
)


def test_nothing() -> None:
    assert make_inert("") == ""
    assert escape_markdown("") == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at::native::gemm<float>", "at::native::gemm<float>"),
        ("two\nlines\tand\rmore", r"two\nlines\tand\rmore"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\U000e0041tag", r"\U000e0041tag"),
        ("\udc80", r"\udc80"),
        ("a\u2028b\xa0c", r"a\u2028b\xa0c"),
        ("Straße 東京 🙂", "Straße 東京 🙂"),
    ],
)
def test_characters_that_act_are_shown_as_codes(text: str, shown: str) -> None:
    assert make_inert(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error file=a::b", ": :error file=a::b"),
        ("x ::Set-Output name=a::b", "x : :Set-Output name=a::b"),
        ("::stop-commands::t", ": :stop-commands::t"),
        ("##[error]x", "# #[error]x"),
        ("##vso[task.x]", "# #vso[task.x]"),
    ],
)
def test_workflow_commands_are_taken_apart(text: str, shown: str) -> None:
    assert make_inert(text) == shown


def test_long_names_are_cut_at_the_limit() -> None:
    assert make_inert("k" * 120) == "k" * 120
    assert make_inert("k" * 121) == "k" * 119 + "…"
    assert make_inert("\x00" * 10_000_000, limit=6) == r"\x00\…"


@given(st.text(max_size=300))
def test_any_text_becomes_one_short_printable_line(text: str) -> None:
    shown = make_inert(text, limit=50)
    assert len(shown) <= 50
    assert shown.isprintable()
    assert not re.search(r"::(error|warning|notice|debug|add-mask)\b", shown, re.IGNORECASE)


@given(hostile)
def test_markdown_of_a_table_cell_shows_the_text_and_nothing_else(text: str) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    parser = markdown_it.MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    page = parser.render(f"| head |\n| --- |\n| {escape_markdown(text)} |\n")
    cells = re.findall(r"<td>(.*?)</td>", page)
    assert len(cells) == 1
    assert _read_text(cells[0]) == make_inert(text).strip()


@given(hostile)
def test_markdown_of_a_list_item_shows_the_text_and_nothing_else(text: str) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    parser = markdown_it.MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    page = parser.render(f"- {escape_markdown(text)}\n")
    match = re.fullmatch(r"<ul>\n<li>(.*)</li>\n</ul>\n", page)
    assert match, page
    assert _read_text(match.group(1)) == make_inert(text).strip()


def _read_text(html: str) -> str:
    """The text that a browser shows for HTML without elements."""
    assert "<" not in html, html
    for code, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&"), ("\u200b", "")):
        html = html.replace(code, character)
    return html.strip()


@pytest.mark.parametrize("text", ["@team", "a@b.example", "see #12", "GH-12"])
def test_mentions_and_issue_numbers_are_broken_up(text: str) -> None:
    assert "&#8203;" in escape_markdown(text)


def test_addresses_do_not_become_links() -> None:
    assert escape_markdown("http://a.example www.b.example") == "http&#58;//a.example www&#46;b.example"


def test_plain_words_and_numbers_stay_readable() -> None:
    text = "all_reduce 69.7 % of 23.3 ms at 12:00, default_pg (0-3)"
    assert escape_markdown(text) == text


@given(st.dictionaries(st.text(), st.text()))
def test_embedded_json_cannot_leave_its_element(value: dict[str, str]) -> None:
    text = embed_json(value)
    assert not set("<>&") & set(text)
    assert json.loads(text) == value


def test_embedded_json_refuses_what_json_lacks() -> None:
    with pytest.raises(ValueError, match="JSON"):
        embed_json([float("nan")])


def test_numbers_are_bound_to_their_units() -> None:
    assert bind_units("22.0 % of 46.1 ms in 3 steps", "_") == "22.0_% of 46.1_ms in 3 steps"

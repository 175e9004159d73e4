"""The page in a real browser: what it loads, draws and shows, and how the timeline answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rankscope.model.categories import EventClass
from rankscope.model.report import GroupRow, Report
from rankscope.model.timeline import LaneKind, Timeline, TimelineLane
from rankscope.renderers.to_html import render_html

from .conftest import MakeRank, MakeReport, MakeStep, Watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

EVENTS = 100_000
LANES = 4
EVIL = "<img src=x onerror=alert(1)> [a](javascript:alert(1)) \u202egnp.exe"
CANVAS = "#timeline canvas"


@pytest.fixture
def report(make_report: MakeReport, make_rank: MakeRank, make_step: MakeStep) -> Report:
    groups = [
        GroupRow(group=EVIL, ranks=[], op="all_reduce", count=count, size_bytes=None, communication_ns=1,
                 exposed_communication_ns=1, overlap_ratio=0.5)
        for count in (2, 10, 1)
    ]  # fmt: skip
    return make_report(
        ranks=[make_rank(rank) for rank in range(LANES)],
        steps=[make_step(step, rank) for step in (1, 2) for rank in range(LANES)],
        groups=groups,
    )


def make_lane(rank: int, kind: LaneKind, count: int) -> TimelineLane:
    """Events of 6 us every 10 us."""
    return TimelineLane(
        rank=rank,
        label="GPU 0 stream 7",
        kind=kind,
        starts_ns=np.arange(count, dtype=np.int64) * 10_000,
        durations_ns=np.full(count, 6_000, np.int64),
        names=np.zeros(count, np.int32),
        classes=np.full(count, EventClass.COMPUTE, np.uint8),
    )


@pytest.fixture
def timeline() -> Timeline:
    """100,000 events on four ranks in 250 ms."""
    count = EVENTS // LANES
    lanes = tuple(make_lane(rank, "device", count) for rank in range(LANES))
    return Timeline(origin_ns=0, step=5, start_ns=0, end_ns=10_000 * count, lanes=lanes, names=(EVIL,))


@pytest.fixture
def watch(
    browser: Browser, report: Report, timeline: Timeline, tmp_path: Path
) -> Iterator[tuple[Page, Watch]]:
    path = tmp_path / "report.html"
    path.write_text(render_html(report, timeline), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    watch = Watch(page)
    page.goto(path.as_uri())
    page.locator(f"{CANVAS}[data-frames]").wait_for()
    yield page, watch
    page.close()
    assert watch.faults == []
    assert watch.requests == [path.as_uri()]


def read_view(canvas: Locator) -> tuple[float, float]:
    start, end = (canvas.get_attribute("data-view") or "").split()
    return float(start), float(end)


def wait_for_frame(page: Page, canvas: Locator, frames: str | None) -> None:
    page.wait_for_function("([query, frames]) => document.querySelector(query).dataset.frames !== frames",
                           arg=[CANVAS, frames])  # fmt: skip


def count_rectangles(canvas: Locator) -> int:
    return int(canvas.get_attribute("data-rectangles") or "0")


def place_pointer(page: Page, canvas: Locator, x: float, y: float) -> None:
    canvas.scroll_into_view_if_needed()
    frame = canvas.bounding_box()
    assert frame is not None
    page.mouse.move(frame["x"] + x, frame["y"] + y)


def test_the_figures_are_drawn(watch: tuple[Page, Watch]) -> None:
    page, _ = watch
    # Five parts of a bar for each of four ranks; a line, and the range over the ranks below it.
    assert page.locator("#chart-windows .bars .point").count() == 5 * LANES
    assert page.locator("#chart-steps .scatterlayer .trace").count() == 3
    colors = {
        page.locator("#chart-windows .bars .point path").nth(LANES * part).evaluate("e => e.style.fill")
        for part in range(5)
    }
    assert colors == {
        "rgb(47, 111, 176)",
        "rgb(242, 189, 124)",
        "rgb(209, 73, 27)",
        "rgb(127, 156, 138)",
        "rgb(223, 227, 232)",
    }


def test_the_timeline_draws_no_more_than_its_pixels(watch: tuple[Page, Watch]) -> None:
    """All of the 100,000 events are in view at first: at most two rectangles per pixel and lane stand for them."""
    page, _ = watch
    canvas = page.locator(CANVAS)
    frame = canvas.bounding_box()
    assert frame is not None
    assert LANES * 100 < count_rectangles(canvas) <= 2 * LANES * frame["width"] < EVENTS / 4


def test_zooming_in_draws_fewer_and_longer_events(watch: tuple[Page, Watch]) -> None:
    page, _ = watch
    canvas = page.locator(CANVAS)
    assert read_view(canvas) == (0, 250_000_000)
    for _ in range(25):
        frames = canvas.get_attribute("data-frames")
        place_pointer(page, canvas, 600, 60)
        page.mouse.wheel(0, -250)
        wait_for_frame(page, canvas, frames)
    start, end = read_view(canvas)
    # 25 times exp(-0.5): about 0.9 us of the 250 ms are left, in which each lane has one event at most.
    assert 500 < end - start < 2_000
    assert count_rectangles(canvas) <= LANES
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function(
        "query => document.querySelector(query).dataset.view === '0 250000000'", arg=CANVAS
    )


def test_dragging_and_keys_move_the_view(watch: tuple[Page, Watch]) -> None:
    page, _ = watch
    canvas = page.locator(CANVAS)
    canvas.focus()
    for key in "+++":
        frames = canvas.get_attribute("data-frames")
        page.keyboard.press(key)
        wait_for_frame(page, canvas, frames)
    before = read_view(canvas)
    assert before[1] - before[0] == pytest.approx(250_000_000 / 8)
    frames = canvas.get_attribute("data-frames")
    place_pointer(page, canvas, 600, 60)
    page.mouse.down()
    place_pointer(page, canvas, 500, 60)
    page.mouse.up()
    wait_for_frame(page, canvas, frames)
    after = read_view(canvas)
    assert after[0] > before[0]
    assert after[1] - after[0] == pytest.approx(before[1] - before[0])
    frames = canvas.get_attribute("data-frames")
    page.keyboard.press("ArrowLeft")
    wait_for_frame(page, canvas, frames)
    assert read_view(canvas)[0] < after[0]


def test_hovering_names_the_event(watch: tuple[Page, Watch]) -> None:
    page, _ = watch
    canvas = page.locator(CANVAS)
    frame = canvas.bounding_box()
    assert frame is not None
    place_pointer(page, canvas, frame["width"] - 3, 33)
    tooltip = page.locator("#timeline .tooltip")
    tooltip.wait_for()
    assert r"<img src=x onerror=alert(1)> [a](javascript:alert(1)) \u202egnp.exe" in tooltip.inner_text()
    assert "compute · 6.00 us · starts at " in tooltip.inner_text()
    assert "rank 0, GPU 0 stream 7" in tooltip.inner_text()
    place_pointer(page, canvas, 20, 33)
    tooltip.wait_for(state="hidden")


def test_hostile_names_are_text(watch: tuple[Page, Watch]) -> None:
    page, _ = watch
    assert page.locator("td", has_text="<img src=x onerror=alert(1)>").count() == 3
    assert page.locator("img, a").count() == 0


def test_columns_sort(watch: tuple[Page, Watch]) -> None:
    page, _ = watch
    table = page.locator("section", has=page.get_by_role("heading", name="Process groups")).locator("table")
    counts = table.locator("tbody tr td:nth-child(3)")
    button = table.get_by_role("button", name="Count")
    assert counts.all_inner_texts() == ["2", "10", "1"]
    button.click()
    assert counts.all_inner_texts() == ["1", "2", "10"]
    button.click()
    assert counts.all_inner_texts() == ["10", "2", "1"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_dark_or_light_screen_has_no_sideways_scrolling(
    watch: tuple[Page, Watch], scheme: str
) -> None:
    page, _ = watch
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_function("query => document.querySelector(query).clientWidth < 400", arg=CANVAS)
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 23, 28)" if scheme == "dark" else "rgb(246, 247, 249)")


def test_nested_annotations_stand_below_one_another(
    browser: Browser, make_report: MakeReport, tmp_path: Path
) -> None:
    """Three nested annotations take three tracks: 3 x (15 + 1) - 1 pixels of height, plus the ruler's 24 and a gap."""
    lane = TimelineLane(
        rank=0, label="annotations", kind="annotations", starts_ns=np.array([0, 10, 20]),
        durations_ns=np.array([100, 50, 10]), names=np.zeros(3, np.int32),
        classes=np.full(3, EventClass.ANNOTATION, np.uint8),
    )  # fmt: skip
    timeline = Timeline(origin_ns=0, step=1, start_ns=0, end_ns=100, lanes=(lane,), names=("n",))
    path = tmp_path / "nested.html"
    path.write_text(render_html(make_report(), timeline), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    frame = page.locator(f"{CANVAS}[data-frames]").bounding_box()
    assert frame is not None
    assert frame["height"] == 3 * 16 + 3 + 24
    assert count_rectangles(page.locator(CANVAS)) == 3
    page.close()

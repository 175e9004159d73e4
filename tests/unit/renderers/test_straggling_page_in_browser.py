"""The sections on ranks, buckets and advice in a real browser, and a page made from a run with a very large step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankscope.analyses.timeline import build_timeline
from rankscope.model.report import CollectiveRow, Report, StragglerEvidence
from rankscope.pipeline import analyze_fully, read_run
from rankscope.renderers.to_html import render_html
from support.straggling_report import MS, make_collective, make_layout, make_straggling
from support.trace_text import collective, kernel, launch, nccl, step, write_ranks

from .conftest import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCRIPTS = (
    "</script><script>window.ran=1</script><img src=x onerror=window.ran=1>\"'`${window.ran=1}\u202egnp\n\x00"
)
EVILS = (SCRIPTS, "k" * 100_000)


def open_page(browser: Browser, text: str, folder: Path) -> tuple[Page, Watch]:
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    watch = Watch(page)
    page.goto(path.as_uri())
    return page, watch


def close_page(page: Page, watch: Watch) -> None:
    address = page.url
    page.close()
    assert watch.faults == []
    assert watch.requests == [address]


def test_the_plots_of_ranks_buckets_and_advice_are_drawn(browser: Browser, tmp_path: Path) -> None:
    page, watch = open_page(browser, render_html(make_straggling()), tmp_path)
    assert page.locator("#chart-waits .hm image").count() == 1
    # Of three collectives: six arrivals before the last, three last ones.
    assert page.locator("#chart-arrivals .scatterlayer .trace").nth(1).locator(".points path").count() == 6
    assert page.locator("#chart-arrivals .scatterlayer .trace").nth(2).locator(".points path").count() == 3
    # Two buckets: waiting for the host and for other ranks (only the first), for their turn, transfer.
    bars = page.locator("#chart-buckets .bars .point path")
    assert bars.evaluate_all("paths => paths.filter(path => path.getBBox().width > 0.5).length") == 6
    assert page.locator("#chart-caps .scatterlayer .points path").count() == 3 + 1 + 1
    assert page.locator("pre code").inner_text() == "model = DistributedDataParallel(model, bucket_cap_mb=5)"
    titles = page.locator("h2").all_inner_texts()
    assert [
        title for title in titles if title in ("Who the others wait for", "Buckets", "Advice", "Clocks")
    ] == [
        "Who the others wait for",
        "Buckets",
        "Advice",
        "Clocks",
    ]
    close_page(page, watch)


def with_evil(report: Report, evil: str) -> Report:
    straggler, advice = report.straggler, report.advice
    assert straggler is not None
    assert advice is not None

    def rename(row: CollectiveRow) -> CollectiveRow:
        return replace(row, op=evil, group=evil)

    layout = make_layout()
    buckets = [replace(bucket, dtype=evil, parameters=[evil]) for bucket in layout.buckets]
    return replace(
        report,
        run=replace(report.run, name=evil, host={0: evil, 1: "b", 2: evil}),
        straggler=replace(
            straggler, cause_name=evil, cause_stage=evil, cause_reason=evil, reason=evil, cause=evil,
            evidence=[StragglerEvidence(kind=evil, name=evil, own_ns=2 * MS, peers_ns=MS, excess_ns=MS)],
        ),
        collectives=[rename(row) for row in report.collectives],
        bucket_layouts=[replace(layout, module=evil, buckets=buckets)],
        advice=replace(advice, code=evil),
    )  # fmt: skip


@pytest.mark.parametrize("evil", EVILS)
def test_names_from_traces_run_no_script(browser: Browser, tmp_path: Path, evil: str) -> None:
    page, watch = open_page(browser, render_html(with_evil(make_straggling(), evil)), tmp_path)
    page.locator("#chart-arrivals .points path").first.wait_for()
    assert page.evaluate("window.ran") is None
    assert page.locator("img, main a").count() == 0
    assert "\u202e" not in page.content()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    close_page(page, watch)


def test_names_in_plots_run_no_script(browser: Browser, tmp_path: Path) -> None:
    """Plotly takes a little HTML in labels: a name that looks like it shows as text or not at all."""
    row = replace(make_collective(1), op="<b>x</b><a href='javascript:window.ran=1'>y</a>")
    page, watch = open_page(browser, render_html(replace(make_straggling(), collectives=[row])), tmp_path)
    page.locator("#chart-arrivals .points path").first.wait_for()
    assert page.locator("#chart-arrivals a").count() == 0
    assert "<b>x</b>" in page.locator("#chart-arrivals").inner_text()
    close_page(page, watch)


KERNELS = 60_000


def write_big_step(folder: Path) -> Path:
    """Two ranks with one step of 60,000 kernels each, 2 us every 3 us, and one all-reduce at its end."""
    rows = [step(7, 0, 3 * KERNELS + 100), launch(1, 5)]
    rows += [kernel(f"kernel {number % 50}", 10 + 3 * number, 2) for number in range(KERNELS)]
    args = collective("allreduce", 1 << 20, 1 << 20, group="0", ranks="[0, 1]", size=2)
    rows.append(nccl(3 * KERNELS, 60, correlation=1, args=args))
    folder.mkdir()
    return write_ranks(folder, {0: rows, 1: rows})


def test_a_step_of_more_than_100_000_events_stays_small(browser: Browser, tmp_path: Path) -> None:
    """Some of the events are merged into the file; of the rest no more than two shapes per pixel and track appear."""
    run = read_run(write_big_step(tmp_path / "run"))
    analysis = analyze_fully(run)
    timeline = build_timeline(run, clocks=analysis.together.clocks)
    assert timeline is not None
    assert timeline.merged
    assert 20_000 < len(timeline) <= 100_000
    text = render_html(analysis.report, timeline)
    assert len(text) < 8_000_000
    page, watch = open_page(browser, text, tmp_path)
    canvas = page.locator("#timeline canvas[data-frames]")
    canvas.wait_for()
    frame = canvas.bounding_box()
    assert frame is not None
    shapes = int(canvas.get_attribute("data-rectangles") or "0")
    tracks = len(timeline.lanes) * 2
    assert 1_000 < shapes <= 2 * tracks * frame["width"] < KERNELS
    close_page(page, watch)

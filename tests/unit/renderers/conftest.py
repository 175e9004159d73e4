"""Reports for the renderers' tests, made by hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from rankscope.model.report import Measures, RankRow, Report, RunFacts, StepRow, Tool, Totals

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MakeReport = Callable[..., Report]
MakeRank = Callable[..., RankRow]
MakeStep = Callable[..., StepRow]

HALF_HIDDEN: dict[str, Any] = {
    "window_ns": 1_000_000,
    "compute_ns": 600_000,
    "communication_ns": 400_000,
    "overlap_ns": 200_000,
    "exposed_communication_ns": 200_000,
    "memory_ns": 100_000,
    "exposed_memory_ns": 50_000,
    "idle_ns": 150_000,
    "overlap_ratio": 0.5,
}
"""One window of 1 ms: 600 + 200 + 50 + 150 us."""


@pytest.fixture
def make_rank() -> MakeRank:
    """Makes a row of one rank, half of whose communication is hidden, with what is given changed."""

    def make(rank: int, **changed: Any) -> RankRow:
        return RankRow(**{"rank": rank, "device": 0, **HALF_HIDDEN, **changed})

    return make


@pytest.fixture
def make_step() -> MakeStep:
    """Makes a row of one step of 500 us on one rank, with what is given changed."""

    def make(step: int | None, rank: int = 0, **changed: Any) -> StepRow:
        measures = {**HALF_HIDDEN, "window_ns": None, "idle_ns": None}
        known = {"step": step, "rank": rank, "device": 0, "steady": True, "duration_ns": 500_000}
        return StepRow(**{**known, **measures, **changed})

    return make


@pytest.fixture
def make_report(make_rank: MakeRank) -> MakeReport:
    """Makes a report of one rank, with what is given changed; `run` may be a dict of facts to change."""

    def make(*, run: dict[str, Any] | None = None, **changed: Any) -> Report:
        facts = {"name": "run", "source": "runs/run", "ranks": [0], "world_size": 1, **(run or {})}
        known = {"ranks": [make_rank(0)], "totals": Totals(run=Measures(**HALF_HIDDEN))}
        return Report(**{"tool": Tool(version="0.1.0"), "run": RunFacts(**facts), **known, **changed})

    return make


class Watch:
    """What a page did that it should not."""

    def __init__(self, page: Page) -> None:
        self.faults: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.faults.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.requests.append(request.url))


# Without these Chromium tries a GPU and the network, which a sandbox has not.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on PATH (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()

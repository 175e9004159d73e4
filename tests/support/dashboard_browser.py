"""The real dashboard in a real browser: a server of its own, and pages that can be read like a person reads them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SETTLE_MS = 60_000
"""Longest wait for a page, on a busy machine."""

IDLE = """() => {
  const app = document.querySelector('[data-testid=stApp]');
  return app && app.getAttribute('data-test-script-state') === 'notRunning'
    && !document.querySelector('[data-stale=true]');
}"""


@contextmanager
def serve_dashboard(folder: Path) -> Iterator[str]:
    """The URL of `rankscope dashboard` over a store in `folder`, ending with a slash."""
    command = [
        sys.executable,
        "-m",
        "rankscope.cli.main",
        "dashboard",
        "--store",
        str(folder / "store"),
        "--port",
        "0",
    ]
    environment = {**os.environ, "RANKSCOPE_TOKEN": ""}
    with (folder / "server.log").open("w+") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            yield _wait_for_url(server, folder / "server.log")
        finally:
            server.terminate()
            server.wait(timeout=30)


def _wait_for_url(server: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(600):
        found = re.search(r"http://\S+/", log.read_text())
        if found:
            return found.group()
        assert server.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(f"the server did not start: {log.read_text()}")


@contextmanager
def open_chromium() -> Iterator[Any]:
    """The system's Chromium; where it is missing the test fails in CI and is skipped elsewhere."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is missing: .ci/run installs it")
        pytest.skip("Chromium is not installed here")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """One person with a browser of her own.

    Attributes:
        page: playwright's page.
        faults: errors that the page's scripts raised.
    """

    def __init__(self, browser: Any, url: str, theme: str = "light") -> None:
        self._url = url
        self._context = browser.new_context(color_scheme=theme, viewport={"width": 1400, "height": 1000})
        self.page = self._context.new_page()
        self.page.set_default_timeout(SETTLE_MS)
        self.faults: list[str] = []
        self.page.on("pageerror", lambda fault: self.faults.append(str(fault)))

    def address(self, path: str) -> str:
        """Address of a path on the server."""
        return self._url + path

    def close(self) -> None:
        """Close the browser of this visitor; no script may have failed in it."""
        self._context.close()
        assert self.faults == []

    def open(self, query: str = "") -> Visitor:
        """Follow a link and wait until the page is drawn."""
        self.page.goto(self._url + query)
        self.page.wait_for_selector(".rs-title")
        return self.settle()

    def settle(self) -> Visitor:
        """Wait until the server has nothing more to draw."""
        self.page.wait_for_function(IDLE)
        assert self.page.locator("[data-testid=stException]").count() == 0
        return self

    def upload(self, paths: Sequence[Path], name: str, tags: str = "") -> str:
        """Upload a run by the page; its id, once the overview is drawn."""
        self.fill_upload(paths, name, tags)
        return self.send_upload()

    def fill_upload(self, paths: Sequence[Path], name: str, tags: str = "") -> None:
        """Choose the files of a run and say its name."""
        self.open()
        self.page.set_input_files("input[data-input=files]", [str(path) for path in paths])
        self.page.fill(".facts input[name=name]", name)
        self.page.fill(".facts input[name=tags]", tags)

    def send_upload(self) -> str:
        """Upload what was chosen; the run's id, once the overview is drawn."""
        self.page.click(".facts .go")
        self.page.wait_for_selector(".rs-title:text-is('Overview')")
        self.settle()
        return self.query("run")

    def query(self, name: str) -> str:
        """A parameter of the link in the address bar."""
        found = re.search(rf"[?&]{name}=([^&]*)", self.page.url)
        return found.group(1) if found else ""

    def choose_view(self, title: str) -> Visitor:
        """Click a view in the menu."""
        self.page.click(f"[data-testid=stSidebar] button:has-text('{title}')")
        self.page.wait_for_selector(f".rs-title:text-is('{title}')")
        return self.settle()

    def text(self) -> str:
        """All that the page says."""
        return str(self.page.inner_text("[data-testid=stMain]")).replace("\xa0", " ")

    def _grid(self, key: str) -> Any:
        frame = self.page.locator(f".st-key-table-{key} [data-testid=stDataFrame]").first
        frame.scroll_into_view_if_needed()  # what is out of sight is not drawn
        return frame.locator("canvas table").first

    def row_count(self, key: str) -> int:
        """Number of rows of a table, those included that are scrolled out of sight."""
        return int(self._grid(key).get_attribute("aria-rowcount")) - 1

    def table(self, key: str) -> list[dict[str, str]]:
        """The rows in sight of a table by column heading, read from what it gives to screen readers."""
        grid = self._grid(key)
        grid.locator("tr").nth(1).wait_for(state="attached")
        rows = grid.locator("tr").evaluate_all(
            "rows => rows.map(row => [...row.querySelectorAll('th, td')].map(cell => cell.textContent))"
        )
        return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]

    def figure(self, key: str) -> list[dict[str, Any]]:
        """The traces of a figure, as plotly draws them."""
        plot = self.page.locator(f".st-key-{key} .js-plotly-plot").first
        plot.wait_for()
        found: list[dict[str, Any]] = plot.evaluate(
            "plot => plot.data.map(({name, x, y, z, customdata}) =>"
            " ({name, x: [...x || []], y: [...y || []], z, customdata}))"
        )
        return found

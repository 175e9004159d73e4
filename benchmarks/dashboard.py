"""What the dashboard costs: time to the overview of the 8 x H100 run, of each view, memory after ten uploads of 50 MB.

    python benchmarks/dashboard.py [../shared/traces/nanogpt_h100_8rank]

Starts the real server in a process of its own, looks at it with Chromium where it is installed, and prints a table;
nothing is asserted.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from rankscope.store import RunRecord, new_run_id, open_store
from rankscope.upload import Destination, push_run
from rankscope_dashboard.words import RUN_VIEWS
from support.dashboard_browser import Visitor, open_chromium, serve_dashboard
from support.dashboard_server import DashboardServer, running_server, wait_for_state

UPLOADS = 10
UPLOAD_BYTES = 50 * 10**6
RUNS = 10_000
DRAWN = """() => {
  const all = (kind, part) => [...document.querySelectorAll(`[data-testid=${kind}]`)].every(e => e.querySelector(part));
  return all('stPlotlyChart', '.main-svg .cartesianlayer') && all('stDataFrame', 'canvas');
}"""
EVENT = (
    b'{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":%d,"dur":3,"args":{"stream":7,"pad":"%s"}}'
)


def main() -> None:
    """Measure and print."""
    traces = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/traces/nanogpt_h100_8rank")
    with tempfile.TemporaryDirectory() as folder:
        with running_server(Path(folder) / "store") as server:
            measure_time(server, traces)
            measure_memory(server, Path(folder))
        measure_in_browser(Path(folder), traces)
        measure_listing(Path(folder) / "many")


def measure_time(server: DashboardServer, traces: Path) -> None:
    """Seconds from the first byte of an upload to a run that can be looked at."""
    files = sorted(traces.glob("*.json.gz"))
    for attempt in range(3):
        started = time.perf_counter()
        pushed = push_run(files, Destination(url=server.url), name="h100")
        sent = time.perf_counter()
        with server.client() as client:
            wait_for_state(client, pushed.run_id, "ready")
            client.get(f"/runs/{pushed.run_id}/report")
        ready = time.perf_counter()
        size = sum(path.stat().st_size for path in files) / 1e6
        print(f"{traces.name} ({size:.1f} MB), try {attempt + 1}: sent in {sent - started:.2f} s, "
              f"report at hand {ready - sent:.2f} s later")  # fmt: skip


def measure_in_browser(folder: Path, traces: Path) -> None:
    """Seconds from the click that uploads to the drawn overview, and from a click in the menu to the drawn view."""
    if shutil.which("chromium") is None:
        print("views were not measured: chromium is not installed")
        return
    files = sorted(traces.glob("*.json.gz"))
    with serve_dashboard(folder) as url, open_chromium() as browser:
        visitor = Visitor(browser, url)
        for attempt in range(3):
            visitor.fill_upload(files, f"h100 {attempt}")
            started = time.perf_counter()
            visitor.send_upload()
            print(f"{traces.name} by the page, try {attempt + 1}: overview drawn after "
                  f"{time.perf_counter() - started:.2f} s")  # fmt: skip
        print("view           first   median   longest of 5 more [s]")
        for title in (words.title for words in RUN_VIEWS):
            first, *more = [_switch(visitor, title) for _ in range(6)]
            print(f"{title:<12}   {first:>5.2f}    {statistics.median(more):>5.2f}    {max(more):>5.2f}")
        visitor.close()


def _switch(visitor: Visitor, title: str) -> float:
    """Seconds from the click to the view, its figures and its tables on the screen."""
    visitor.choose_view("Overview" if title != "Overview" else "Overlap")
    visitor.page.wait_for_function(DRAWN)
    started = time.perf_counter()
    visitor.choose_view(title)
    visitor.page.wait_for_function(DRAWN)
    visitor.page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    return time.perf_counter() - started


def measure_memory(server: DashboardServer, folder: Path) -> None:
    """Resident memory of the server process before and after uploads."""
    process = psutil.Process(server.process.pid)
    trace = folder / "rank0.json"
    write_trace(trace)
    before = process.memory_info().rss
    for _ in range(UPLOADS):
        pushed = push_run([trace], Destination(url=server.url), name="big", keep_traces=False)
        with server.client() as client:
            wait_for_state(client, pushed.run_id, "ready")
    after = process.memory_info().rss
    print(f"{UPLOADS} uploads of {trace.stat().st_size / 1e6:.0f} MB: server {before / 1e6:.0f} MB before, "
          f"{after / 1e6:.0f} MB after ({(after - before) / 1e6:+.0f} MB)")  # fmt: skip


def write_trace(path: Path) -> None:
    """A plain trace of 50 MB; random padding, so that it does not pack."""
    with path.open("wb") as file:
        file.write(b'{"traceEvents": [')
        number = 0
        while file.tell() < UPLOAD_BYTES:
            file.write(
                (b"" if number == 0 else b",\n") + EVENT % (10 * number, os.urandom(40).hex().encode())
            )
            number += 1
        file.write(b"]}")


def measure_listing(folder: Path) -> None:
    """Seconds to list many runs, with nothing in memory."""
    store = open_store(folder)
    store._index.replace(
        RunRecord(run_id=new_run_id(), name=f"run {number}", created_at="2026-01-01T00:00:00+00:00",
                  tags={"branch": "main", "cap": "25"}, source="upload", backend="nccl")
        for number in range(RUNS)
    )  # fmt: skip
    started = time.perf_counter()
    found = open_store(folder).list_runs()
    listed = time.perf_counter()
    searched = len(open_store(folder).list_runs("run 77 main"))
    print(f"{len(found)} runs listed in {listed - started:.3f} s, searched in {time.perf_counter() - listed:.3f} s "
          f"({searched} found)")  # fmt: skip


if __name__ == "__main__":
    main()

"""The dashboard as a person uses it: a real server, a real browser, real runs with known answers.

Figures are compared to the nanosecond with ../shared/traces/*/expected.json, where that folder is here.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from rankscope.pipeline.keep import KeepOptions, keep_run
from rankscope.renderers.palette import COMPUTE
from rankscope.renderers.to_json import read_json
from rankscope.store import new_run_id, open_store
from rankscope.testing.synth import ddp_run, write_run
from rankscope_dashboard.words import RUN_VIEWS
from support.dashboard_browser import Visitor, open_chromium, serve_dashboard
from support.dashboard_runs import keep_a_million_events

NS_PER_MS = 1_000_000
SHARED = Path(__file__).resolve().parents[3] / "shared"


@pytest.fixture(scope="module")
def store_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dashboard")


@pytest.fixture(scope="module")
def url(store_folder: Path) -> Iterator[str]:
    with serve_dashboard(store_folder) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_chromium() as chromium:
        yield chromium


@pytest.fixture
def visitor(browser: Any, url: str) -> Iterator[Visitor]:
    someone = Visitor(browser, url)
    yield someone
    someone.close()


@pytest.fixture(scope="module")
def late_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 4 ranks whose rank 3 loads its data 2 ms longer in every step."""
    folder = tmp_path_factory.mktemp("late")
    write_run(ddp_run(ranks=4, steps=4, straggler=(3, 2 * NS_PER_MS, "input")), folder)
    return folder


@pytest.fixture(scope="module")
def late_run(browser: Any, url: str, late_folder: Path) -> str:
    """Id of that run, uploaded by the page."""
    someone = Visitor(browser, url)
    run = someone.upload(sorted(late_folder.iterdir()), "late", "branch=main")
    someone.close()
    return run


@pytest.fixture
def keep(store_folder: Path, tmp_path: Path) -> Callable[..., str]:
    """Puts a run straight into the server's store; its id. Two ranks are written where no folder is given."""

    def keep_folder(name: str, folder: Path | None = None, run_id: str | None = None, **tags: str) -> str:
        if folder is None:
            folder = tmp_path / name
            write_run(ddp_run(ranks=2), folder)
        options = KeepOptions(name=name, tags=tags, run_id=run_id or new_run_id())
        return keep_run(open_store(store_folder / "store"), folder, options).run_id

    return keep_folder


@pytest.fixture(scope="module")
def h100(shared_traces: Path) -> dict[str, Any]:
    """What is known of the 8 x H100 set, and where its files lie."""
    folder = shared_traces / "nanogpt_h100_8rank"
    known: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return {**known, "folder": folder, "files": sorted(folder.glob("*.json.gz"))}


@pytest.fixture(scope="module")
def h100_run(browser: Any, url: str, h100: dict[str, Any]) -> str:
    """Id of the 8 x H100 set, uploaded by the page."""
    someone = Visitor(browser, url)
    run = someone.upload(h100["files"], "h100", "model=nanogpt")
    someone.close()
    return run


@pytest.fixture
def hostile_case() -> list[Path]:
    """The published case of hostile names."""
    folder = SHARED / "cases" / "60-hostile-names"
    if not folder.is_dir():
        pytest.skip("../shared/cases is not here: the cases are not part of the repository")
    return [folder / "rank0.pt.trace.json"]


def test_an_upload_leads_to_the_overview_with_the_verdict(visitor: Visitor, late_run: str) -> None:
    visitor.open(f"?run={late_run}")
    assert "The other ranks wait for rank 3, 2.00 ms per step" in visitor.text()


def test_the_overview_shows_the_known_figures_of_every_rank(
    visitor: Visitor, h100: dict[str, Any], h100_run: str
) -> None:
    visitor.open(f"?run={h100_run}&view=overview")
    rows = {row["Rank"]: row for row in visitor.table("ranks")}
    assert set(rows) == set(h100["ranks"])
    for rank, known in h100["ranks"].items():
        shown = rows[rank]
        assert int(shown["Window"]) == known["span_ns"]
        assert int(shown["Compute"]) == known["compute_ns"]
        assert int(shown["Communication"]) == known["communication_ns"]
        assert int(shown["Exposed"]) == known["exposed_communication_ns"]
        assert int(shown["Exposed memory"]) == known["exposed_memory_ns"]
        assert int(shown["Idle"]) == known["idle_ns"]
        assert float(shown["Hidden"]) == pytest.approx(known["overlap_ratio"], abs=1e-6)
    (exposed,) = [trace for trace in visitor.figure("windows") if trace["name"] == "exposed communication"]
    drawn = dict(zip(exposed["y"], exposed["x"], strict=True))
    for rank, known in h100["ranks"].items():
        assert drawn[f"rank {rank}"] * NS_PER_MS == pytest.approx(known["exposed_communication_ns"], abs=1)


def test_the_overlap_view_splits_exactly_what_is_exposed(
    visitor: Visitor, h100: dict[str, Any], h100_run: str
) -> None:
    visitor.open(f"?run={h100_run}&view=overlap")
    (heat,) = visitor.figure("step-map")
    assert (heat["x"], len(heat["y"])) == (["10", "11", "12", "13"], 8)
    waiting, transferring = visitor.figure("waits")
    waits = dict(zip(waiting["y"], waiting["x"], strict=True))
    own_wait = waits.pop(f"rank {h100['straggler']['rank']}")
    assert 4 * own_wait < min(waits.values())  # the others wait for it; of its transfer that would not hold
    for name, wait, transfer in zip(waiting["y"], waiting["x"], transferring["x"], strict=True):
        known = h100["ranks"][name.removeprefix("rank ")]["exposed_communication_ns"]
        assert (wait + transfer) * NS_PER_MS == pytest.approx(known, abs=2)
    total = sum(known["communication_ns"] for known in h100["ranks"].values())
    drawn = sum(sum(trace["x"]) for trace in visitor.figure("operations"))
    # Operations may overlap one another, and then count twice.
    assert drawn * NS_PER_MS == pytest.approx(total, rel=0.01)


def test_the_stragglers_view_names_the_known_rank(
    visitor: Visitor, h100: dict[str, Any], h100_run: str
) -> None:
    visitor.open(f"?run={h100_run}&view=stragglers")
    assert f"The others wait for rank {h100['straggler']['rank']}" in visitor.text()
    late = visitor.table("late")[0]
    assert late["Last rank"] == str(h100["straggler"]["rank"])
    waits = {row["Rank"]: int(row["Own exposed wait"]) for row in visitor.table("waiting")}
    assert min(waits, key=waits.__getitem__) == str(h100["straggler"]["rank"])


def test_the_timeline_shows_the_event_that_is_clicked(
    visitor: Visitor, h100: dict[str, Any], h100_run: str
) -> None:
    """The longest communication kernel of rank 0, read from its file here, fills the view and is clicked."""
    start_ns, duration_ns, name = longest_communication(h100["files"], rank=0)
    origin_ns = origin_of(visitor, h100_run)
    begin = start_ns - origin_ns
    visitor.open(f"?run={h100_run}&view=timeline&from={begin + 1000}&to={begin + duration_ns - 1000}")
    assert "events of 8 ranks" in visitor.text()
    found = click_down_the_middle(visitor, name)
    assert f"communication · {duration_ns / NS_PER_MS:.2f} ms" in found
    assert "rank 0, GPU 0 stream" in found


def longest_communication(files: list[Path], rank: int) -> tuple[int, int, str]:
    """Start (absolute), duration (ns) and name of a kernel, by plain reading of the rank's file."""
    (path,) = [path for path in files if f"rank{rank}-" in path.name]
    trace = json.loads(gzip.decompress(path.read_bytes()))
    kernels = [e for e in trace["traceEvents"] if e.get("cat") == "kernel" and e["name"].startswith("nccl")]
    longest = max(kernels, key=lambda event: event["dur"])
    start_ns = trace.get("baseTimeNanoseconds", 0) + round(longest["ts"] * 1000)
    return start_ns, round(longest["dur"] * 1000), longest["name"]


def origin_of(visitor: Visitor, run: str) -> int:
    """The run's time zero, by the report of the interface; rank 0's clock is the reference."""
    answer = visitor.page.request.get(visitor.address(f"api/v1/runs/{run}/report"))
    return int(read_json(answer.body()).run.origin_ns)


def click_down_the_middle(visitor: Visitor, name: str) -> str:
    """Facts of the event of that name, found by clicking from top to bottom."""
    canvas = visitor.page.locator("canvas[aria-label='Timeline of all ranks']")
    canvas.wait_for()
    box = canvas.bounding_box()
    for y in range(30, int(box["height"]), 6):
        canvas.click(position={"x": box["width"] * 0.6, "y": y})
        facts = str(visitor.page.locator(".details").inner_text()).replace("\xa0", " ")
        if name in facts:
            return facts
    raise AssertionError(f"{name} was not found on the timeline")


def test_zooming_asks_for_finer_events_and_changes_the_link(visitor: Visitor, late_run: str) -> None:
    visitor.open(f"?run={late_run}&view=timeline")
    canvas = visitor.page.locator("canvas[aria-label='Timeline of all ranks']")
    before = read_view(canvas)
    canvas.hover(position={"x": 700, "y": 100})
    for _ in range(12):
        visitor.page.mouse.wheel(0, -240)
    visitor.page.wait_for_function("() => new URLSearchParams(location.search).has('from')")
    visitor.settle()
    after = read_view(canvas)
    assert after["end"] - after["start"] < (before["end"] - before["start"]) / 10
    visitor.page.wait_for_function(CUT_BELOW, arg=before["part"])
    assert int(visitor.query("from")) == pytest.approx(after["start"], abs=2)


def test_a_million_events_are_merged_to_the_pixels_and_zoomed_to_single_ones(
    visitor: Visitor, store_folder: Path
) -> None:
    run = keep_a_million_events(open_store(store_folder / "store"))
    visitor.open(f"?run={run}&view=timeline")
    assert "1,000,000 events of 8 ranks" in visitor.text()
    canvas = visitor.page.locator("canvas[aria-label='Timeline of all ranks']")
    canvas.wait_for()
    # 16 of the 32 lanes fit on the screen, 1,042 pixels wide with half as much again on either side.
    assert 0 < int(canvas.get_attribute("data-rectangles")) < 40_000
    first = read_view(canvas)
    assert first["part"] > 12_000  # several kernels to a pixel
    canvas.hover(position={"x": 700, "y": 60})
    for _ in range(30):
        visitor.page.mouse.wheel(0, -240)
    visitor.page.wait_for_function(CUT_BELOW, arg=1_000)
    visitor.settle()
    assert "kernel_" in click_down_the_middle(visitor, "kernel_")


CUT_BELOW = """part => [...document.querySelectorAll('*')]
  .flatMap(element => element.shadowRoot ? [...element.shadowRoot.querySelectorAll('canvas[data-cut]')] : [])
  .some(canvas => Number(canvas.dataset.cut.split(' ')[2]) < part)"""


def read_view(canvas: Any) -> dict[str, int]:
    drawn = canvas.and_(canvas.page.locator("[data-view][data-cut]"))
    start, end = (int(value) for value in drawn.get_attribute("data-view").split())
    return {"start": start, "end": end, "part": int(drawn.get_attribute("data-cut").split()[2])}


def test_two_runs_are_compared_and_the_link_holds_both(
    visitor: Visitor, late_run: str, keep: Callable[..., str], tmp_path: Path
) -> None:
    write_run(ddp_run(ranks=4, steps=4), tmp_path)
    other = keep("even", tmp_path)
    visitor.open(f"?run={other}&view=compare&with={late_run}")
    rows = {row["Figure"]: row for row in visitor.table("compared-steady")}
    # Rank 3 came 2 ms late to every step: without it a step is that much shorter.
    duration = rows["step duration"]
    assert float(duration["Base"]) - float(duration["Head"]) == pytest.approx(2 * NS_PER_MS, abs=1)
    assert visitor.query("with") == late_run


def test_two_ticked_runs_are_compared_the_newer_with_the_older(
    visitor: Visitor, keep: Callable[..., str]
) -> None:
    long_ago = new_run_id(datetime(2026, 1, 1, tzinfo=timezone.utc))
    older, newer = keep("ticked 1", run_id=long_ago, pair="yes"), keep("ticked 2", pair="yes")
    visitor.open("?search=pair%3Dyes")
    for y in (52, 87):
        visitor.page.locator(".st-key-table-runs [data-testid=stDataFrame]").first.click(
            position={"x": 18, "y": y}
        )
        visitor.settle()
    visitor.page.click("button:has-text('Compare ticked 1 with ticked 2')")
    visitor.page.wait_for_selector(".rs-title:text-is('Compare')")
    visitor.settle()
    assert "No difference." in visitor.text()
    assert (visitor.query("run"), visitor.query("with")) == (newer, older)


def test_buckets_of_the_real_run_have_their_known_sizes(
    visitor: Visitor, keep: Callable[..., str], shared_traces: Path
) -> None:
    folder = shared_traces / "amd_resnet_ddp_4rank"
    known = json.loads((folder / "expected.json").read_text())
    run = keep("amd", folder)
    visitor.open(f"?run={run}&view=buckets")
    rows = visitor.table("buckets")
    elements = known["collectives"]["bucket_elements_in_launch_order"]
    assert [int(row["Bytes"]) for row in rows] == [4 * count for count in elements]
    for row, count in zip(rows, elements, strict=True):
        mean_ns = 1000 * known["per_bucket"][str(count)]["transfer_us_mean"]
        assert float(row["Transfer"]) == pytest.approx(mean_ns, rel=0.05)  # shown is the median
    visitor.open(f"?run={run}&view=collectives")
    counts = known["collectives"]
    assert visitor.row_count("collectives") == counts["all_reduce"] + counts["broadcast"]
    first = visitor.table("collectives")[0]
    assert (first["Op"], first["Ranks"], first["Last"]) == (
        "all_reduce",
        "4",
        str(known["straggler"]["rank"]),
    )


def test_a_ticked_run_is_deleted(visitor: Visitor, keep: Callable[..., str]) -> None:
    run = keep("to be deleted")
    visitor.open("?search=to%20be%20deleted")
    frame = visitor.page.locator(".st-key-table-runs [data-testid=stDataFrame]").first
    frame.click(position={"x": 18, "y": 52})
    visitor.page.click("button:has-text('Delete 1')")
    visitor.page.click(".st-key-delete button")
    visitor.page.wait_for_selector("text=No run matches")
    visitor.open(f"?run={run}")
    assert "This run is not here" in visitor.text()


def test_a_click_on_a_run_opens_it(visitor: Visitor, late_run: str) -> None:
    visitor.open("?search=branch%3Dmain")
    visitor.page.locator(".st-key-table-runs [data-testid=stDataFrame]").first.click(
        position={"x": 120, "y": 52}
    )
    visitor.page.wait_for_selector(".rs-title:text-is('Overview')")
    assert visitor.query("run") == late_run


def test_an_upload_leads_to_its_run_though_the_pages_socket_broke(visitor: Visitor, tmp_path: Path) -> None:
    """The socket, by which the page tells the server of the upload, is gone for a moment as that is done."""
    write_run(ddp_run(ranks=2), tmp_path)
    visitor.page.add_init_script("""
      window.WebSocket = class extends WebSocket {
        constructor(...given) { super(...given); window.socket = this; }
      };
    """)

    def complete(route: Any) -> None:
        visitor.page.evaluate("window.socket.close()")
        route.continue_()

    visitor.page.route("**/complete", complete)
    run = visitor.upload(sorted(tmp_path.iterdir()), "unlucky")
    assert visitor.open(f"?run={run}").page.inner_text(".rs-run") == "unlucky"


def test_an_upload_that_is_no_trace_says_so_and_leaves_nothing(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "holiday.json").write_bytes(b"\xff\xd8\xff\xe0 no trace at all")
    visitor.open()
    visitor.page.set_input_files("input[data-input=files]", str(tmp_path / "holiday.json"))
    visitor.page.click(".facts .go")
    visitor.page.wait_for_selector(".error:visible")
    assert "Not uploaded" in visitor.page.inner_text(".error")


def test_a_run_that_is_pushed_shows_the_same_figures_as_one_by_the_page(
    visitor: Visitor, url: str, late_folder: Path, late_run: str
) -> None:
    command = [sys.executable, "-m", "rankscope.cli.main", "push", str(late_folder), "--to", url]
    pushed = subprocess.run(
        [*command, "--name", "pushed", "--tag", "via=push"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    run = pushed.stdout.strip().partition("run=")[2].partition("&")[0]
    assert run not in ("", late_run)
    visitor.open(f"?run={run}")
    shown = visitor.table("ranks")
    assert len(shown) == 4
    assert shown == visitor.open(f"?run={late_run}").table("ranks")
    visitor.open("?search=via%3Dpush")
    assert [row["Run"] for row in visitor.table("runs")] == ["pushed"]


def test_hostile_names_are_shown_as_text_in_every_view(visitor: Visitor, hostile_case: list[Path]) -> None:
    dialogs: list[str] = []

    def note(dialog: Any) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    visitor.page.on("dialog", note)
    attack = '<img src=x onerror="alert(1)"> **b** :red[x] [a](javascript:alert(1))'
    visitor.upload(hostile_case, attack, "cmd==1+1<b>x</b>")
    for words in RUN_VIEWS:
        visitor.choose_view(words.title)
        assert visitor.query("view") == words.slug
        assert attack in str(visitor.page.inner_text(".rs-run")).replace("\xa0", " ")
        assert visitor.page.locator("img[src='x'], a[href^='javascript']").count() == 0
    visitor.open()
    assert visitor.table("runs")[0]["Run"].startswith('<img src=x onerror="alert(1)">')
    visitor.choose_view("Runs")
    assert dialogs == []


def test_an_upload_under_way_is_not_shown_to_others(
    browser: Any, url: str, visitor: Visitor, late_run: str
) -> None:
    begun = visitor.page.request.post(
        visitor.address("api/v1/runs"),
        data={"name": "half a secret", "files": [{"name": "a.json", "size_bytes": 9}]},
    ).json()
    visitor.open()
    assert "half a secret" not in visitor.text()
    assert "1 other upload is on the way." in visitor.text()
    visitor.page.request.delete(visitor.address(f"api/v1/runs/{begun['run_id']}"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_follows_the_visitors_theme(browser: Any, url: str, late_run: str, theme: str) -> None:
    someone = Visitor(browser, url, theme)
    someone.open(f"?run={late_run}")
    part = COMPUTE.light if theme == "light" else COMPUTE.dark
    bars = someone.page.locator(".st-key-windows .js-plotly-plot").first
    bars.wait_for()
    assert bars.evaluate("plot => plot.data[0].marker.color") == part
    background = someone.page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    assert background == ("rgb(255, 255, 255)" if theme == "light" else "rgb(20, 23, 28)")
    someone.close()


def test_no_page_of_a_run_loads_anything_from_elsewhere(visitor: Visitor, url: str, late_run: str) -> None:
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    visitor.open(f"?run={late_run}")
    foreign = {
        address for address in asked if not address.startswith((url, "ws://127.0.0.1", "data:", "blob:"))
    }
    assert foreign == set()

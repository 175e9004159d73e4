"""Uploads over HTTP: at once, in pieces, again after an interruption, several side by side."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from rankscope.pipeline import analyze_run, read_run
from rankscope.renderers.to_json import read_json
from rankscope.store import open_store
from rankscope_dashboard.api import Api
from rankscope_dashboard.limits import Limits
from rankscope_dashboard.merged import MergedTraces
from rankscope_dashboard.uploads import Uploads
from support.command import write_run
from support.dashboard_server import DashboardServer, running_server, wait_for_state, wait_until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardServer]:
    with running_server(tmp_path_factory.mktemp("server") / "store") as server:
        yield server


@pytest.fixture
def client(server: DashboardServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "run")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def check_report(client: httpx.Client, run_id: str, folder: Path) -> None:
    """The report is the one that a local analysis gives."""
    wait_for_state(client, run_id, "ready")
    uploaded = read_json(client.get(f"/runs/{run_id}/report").content)
    local = analyze_run(read_run(folder))
    assert uploaded.ranks == local.ranks
    assert uploaded.steps == local.steps
    assert uploaded.totals == local.totals
    assert [p.file for p in uploaded.problems] == [p.file for p in local.problems]


def begin(client: httpx.Client, files: dict[str, bytes], **fields: Any) -> str:
    sizes = [{"name": name, "size_bytes": len(content)} for name, content in files.items()]
    answer = client.post("/runs", json={"name": "resumable", **fields, "files": sizes})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["run_id"])


def put(client: httpx.Client, run_id: str, number: int, content: bytes, offset: int = 0) -> httpx.Response:
    return client.put(
        f"/runs/{run_id}/files/{number}", content=content, headers={"upload-offset": str(offset)}
    )


def test_a_form_with_many_files(client: httpx.Client, run_folder: Path) -> None:
    files = [("file", (name, content)) for name, content in contents(run_folder).items()]
    answer = client.post("/runs", data={"name": "form", "tag": ["branch=main", "cap=25"]}, files=files)
    assert answer.status_code == 202, answer.text
    run_id = answer.json()["run_id"]
    assert answer.headers["location"] == f"/api/v1/runs/{run_id}"
    check_report(client, run_id, run_folder)
    record = client.get(f"/runs/{run_id}").json()["record"]
    assert (record["name"], record["tags"]) == ("form", {"branch": "main", "cap": "25"})


def make_tar(files: dict[str, bytes], mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]  # mode is a variable
        for name, content in files.items():
            info = tarfile.TarInfo(f"run/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def make_zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"run/{name}", content)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
def test_an_archive_as_the_body(client: httpx.Client, run_folder: Path, kind: str) -> None:
    files = {**contents(run_folder), "README.md": b"# not a trace", "deep/settings.json": b"{}"}
    packed = make_zip(files) if kind == "zip" else make_tar(files, "w:gz" if kind == "tar.gz" else "w")
    # Neither the type nor the name says what it is.
    answer = client.post(
        "/runs",
        params={"name": kind, "file": "thing.json"},
        content=packed,
        headers={"content-type": "text/plain"},
    )
    assert answer.status_code == 202, answer.text
    check_report(client, answer.json()["run_id"], run_folder)


def test_one_trace_as_the_body_gzip_or_not(client: httpx.Client, run_folder: Path) -> None:
    content = (run_folder / "rank1.json").read_bytes()
    for body in (content, gzip.compress(content)):
        answer = client.post("/runs", params={"file": "rank1.json"}, content=body)
        found = wait_for_state(client, answer.json()["run_id"], "ready")
        assert found["record"]["ranks"] == 1


def test_in_pieces_and_again_after_an_interruption(client: httpx.Client, run_folder: Path) -> None:
    files = contents(run_folder)
    run_id = begin(client, files)
    first, second = files.values()
    assert put(client, run_id, 0, first[:100]).json()["received_bytes"] == 100
    # The client lost count: it asks.
    (state, _) = client.get(f"/runs/{run_id}/files").json()["files"]
    assert state == {
        "number": 0,
        "name": "rank0.json",
        "size_bytes": len(first),
        "received_bytes": 100,
    }
    wrong = put(client, run_id, 0, first[50:], 50)
    assert (wrong.status_code, wrong.json()["received_bytes"]) == (409, 100)
    early = client.post(f"/runs/{run_id}/complete")
    assert early.status_code == 409
    assert "rank0.json (100 of" in early.json()["message"]
    assert put(client, run_id, 0, first[100:], 100).status_code == 200
    assert put(client, run_id, 1, second).status_code == 200
    assert client.post(f"/runs/{run_id}/complete").status_code == 202
    assert client.post(f"/runs/{run_id}/complete").status_code == 202  # the first answer may be lost
    check_report(client, run_id, run_folder)
    assert client.post(f"/runs/{run_id}/complete").json()["state"] == "ready"


def test_a_client_that_breaks_off_keeps_what_arrived(client: httpx.Client, run_folder: Path) -> None:
    files = {"rank0.json": b'{"traceEvents": [' + b" " * 3_000_000 + b"]}"}
    run_id = begin(client, files)

    def broken() -> Iterator[bytes]:
        yield files["rank0.json"][:1_000_000]
        raise KeyError("the network went away")

    with pytest.raises(KeyError):
        client.put(f"/runs/{run_id}/files/0", content=broken())

    def received() -> int:
        return int(client.get(f"/runs/{run_id}/files").json()["files"][0]["received_bytes"])

    wait_until(lambda: received() == 1_000_000, "what was sent has been kept")
    # Refused as "busy" until the server has noticed that the first request is over.
    rest = files["rank0.json"][1_000_000:]
    wait_until(
        lambda: put(client, run_id, 0, rest, 1_000_000).status_code == 200, "the rest is taken from there"
    )
    assert received() == len(files["rank0.json"])


def test_four_side_by_side(server: DashboardServer, run_folder: Path) -> None:
    files = contents(run_folder)

    def upload(number: int) -> str:
        with server.client() as own:
            form = [("file", (name, content)) for name, content in files.items()]
            return str(own.post("/runs", data={"name": f"many {number}"}, files=form).json()["run_id"])

    with ThreadPoolExecutor(4) as pool:
        run_ids = list(pool.map(upload, range(4)))
    assert len(set(run_ids)) == 4
    with server.client() as own:
        names = {wait_for_state(own, run_id, "ready")["record"]["name"] for run_id in run_ids}
    assert names == {f"many {number}" for number in range(4)}


def test_a_bad_file_is_named_and_the_others_go_on(client: httpx.Client, run_folder: Path) -> None:
    files = [("file", (name, content)) for name, content in contents(run_folder).items()]
    files.append(("file", ("rank2.json.gz", gzip.compress(b'{"traceEvents": [')[:-9])))
    answer = client.post("/runs", data={"name": "bad"}, files=files)
    run_id = answer.json()["run_id"]
    record = wait_for_state(client, run_id, "ready")["record"]
    assert (record["ranks"], record["errors"]) == (2, 1)
    problems = client.get(f"/runs/{run_id}/report").json()["problems"]
    assert [p["file"] for p in problems if p["severity"] == "error"] == ["rank2.json.gz"]


def test_nothing_to_analyse_fails_with_the_reason(client: httpx.Client) -> None:
    answer = client.post("/runs", data={"name": "none"}, files=[("file", ("a.json", b"{}"))])
    found = wait_for_state(client, answer.json()["run_id"], "failed")
    assert "no file holds a traceEvents array" in found["message"]
    assert found["run_id"] in [p["run_id"] for p in client.get("/runs").json()["pending"]]
    assert client.delete(f"/runs/{found['run_id']}").status_code == 204
    assert client.get(f"/runs/{found['run_id']}").status_code == 404


def test_traces_are_not_kept_where_the_client_says_so(client: httpx.Client, run_folder: Path) -> None:
    files = [("file", (name, content)) for name, content in contents(run_folder).items()]
    answer = client.post("/runs", data={"keep_traces": "false"}, files=files)
    record = wait_for_state(client, answer.json()["run_id"], "ready")["record"]
    assert record["traces"] == 0


def test_list_search_delete(client: httpx.Client, run_folder: Path) -> None:
    files = [("file", (name, content)) for name, content in contents(run_folder).items()]
    run_id = client.post("/runs", data={"name": "findme", "tag": "team=blue"}, files=files).json()["run_id"]
    wait_for_state(client, run_id, "ready")
    for params in ({"query": "FINDME"}, {"tag": "team=blue"}):
        assert [r["run_id"] for r in client.get("/runs", params=params).json()["runs"]] == [run_id]
    assert client.get("/runs", params={"query": "nothing at all"}).json()["runs"] == []
    assert client.delete(f"/runs/{run_id}").status_code == 204
    assert client.delete(f"/runs/{run_id}").status_code == 404
    assert client.get("/runs", params={"query": "findme"}).json()["runs"] == []
    assert client.get(f"/runs/{run_id}/report").status_code == 404


def test_report_formats_tables_and_the_merged_trace(client: httpx.Client, run_folder: Path) -> None:
    import pyarrow.parquet as pq

    files = [("file", (name, content)) for name, content in contents(run_folder).items()]
    run_id = client.post("/runs", data={"name": "formats"}, files=files).json()["run_id"]
    wait_for_state(client, run_id, "ready")
    markdown = client.get(f"/runs/{run_id}/report", params={"format": "markdown"})
    assert markdown.headers["content-disposition"] == f'attachment; filename="{run_id}.md"'
    page = client.get(f"/runs/{run_id}/report", params={"format": "html"})
    assert page.text.lower().startswith("<!doctype html>")
    assert client.get(f"/runs/{run_id}/report", params={"format": "pdf"}).status_code == 400
    table = client.get(f"/runs/{run_id}/tables/steps")
    # Three steps on two ranks, and a row for what lies outside steps on each.
    steps = pq.read_table(io.BytesIO(table.content)).to_pylist()
    assert {row["step"] for row in steps} >= {4, 5, 6}
    assert client.get(f"/runs/{run_id}/tables/nonsense").status_code == 404
    for _ in range(2):  # made, then kept
        trace = client.get(f"/runs/{run_id}/trace")
        events = json.loads(gzip.decompress(trace.content))["traceEvents"]
        assert {e["pid"] for e in events if e.get("cat") == "communication"} == {0, 1}


def test_the_description_names_every_route(client: httpx.Client, tmp_path: Path) -> None:
    described = client.get("/openapi.json").json()
    operations = {
        (verb.upper(), path): operation
        for path, verbs in described["paths"].items()
        for verb, operation in verbs.items()
    }
    store, limits = open_store(tmp_path), Limits()
    api = Api(
        store=store,
        uploads=Uploads(store, limits, lambda: None),
        limits=limits,
        merged=MergedTraces(store, limits),
    )
    served = {
        (verb, route.path.replace(":int", ""))
        for route in api.routes()
        for verb in (route.methods or set()) - {"HEAD"}
    }
    assert set(operations) | {("GET", "/api/v1/openapi.json")} == served
    for (_, path), operation in operations.items():
        assert operation["summary"]
        assert "default" in operation["responses"]
        named = {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"}
        assert named == set(re.findall(r"{(\w+)}", path))

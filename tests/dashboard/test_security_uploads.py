"""Hostile uploads: names, bombs, lengths, slowness. Nothing is written where it must not be, nothing fills memory."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import socket
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rankscope.errors import InputError
from rankscope_dashboard.archives import Unpacker
from rankscope_dashboard.content import kind_of
from rankscope_dashboard.limits import Limits
from rankscope_dashboard.names import shown_name
from support.command import write_run
from support.dashboard_server import DashboardServer, running_server, wait_for_state, wait_until

MIB = 1 << 20
LIMITS = {
    "upload_bytes": 4 * MIB,
    "file_bytes": 2 * MIB,
    "files": 20,
    "unpacked_file_bytes": 8 * MIB,
    "unpacked_bytes": 16 * MIB,
    "block_seconds": 1.5,
    "open_requests": 4,
    "pending": 30,
}
TAR_NAMES = ["../../evil.json", "/srv/evil.json", "ok.json", "ok.json"]
HOSTILE_NAMES = [
    "../../../../tmp/rankscope-evil.json",
    "/tmp/rankscope-evil.json",  # noqa: S108
    "..\\..\\rankscope-evil.json",
    "C:\\rankscope-evil.json",
    "..",
    ".",
    "",
    "a\x00b.json",
    "\u202egnosj.json",
    "x" * 5000,
    "<script>alert(1)</script>.json",
    "job.json",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardServer]:
    with running_server(tmp_path_factory.mktemp("hostile") / "store", limits=LIMITS) as server:
        yield server


@pytest.fixture
def client(server: DashboardServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return (write_run(tmp_path_factory.mktemp("run") / "run") / "rank0.json").read_bytes()


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_name_is_shown_and_never_a_path(
    server: DashboardServer, client: httpx.Client, trace: bytes, name: str
) -> None:
    root = Path(server.store).parent
    answer = client.post("/runs", json={"name": name, "files": [{"name": name, "size_bytes": len(trace)}]})
    run_id = answer.json()["run_id"]
    (file,) = answer.json()["files"]
    assert file["name"] == shown_name(name, "file 0")
    client.put(f"/runs/{run_id}/files/0", content=trace)
    jobs = f"store/spool/jobs/{run_id}/"
    mine = {path for path in files_below(root) if path.startswith(jobs)}
    assert mine == {jobs + "job.json", jobs + "files/00000"}
    assert client.delete(f"/runs/{run_id}").status_code == 204
    assert not list(Path("/tmp").glob("rankscope-evil*"))  # noqa: S108


def test_a_run_with_hostile_names_is_analysed_and_writes_into_the_store_only(
    server: DashboardServer, client: httpx.Client, trace: bytes
) -> None:
    root = Path(server.store).parent
    outside = {path for path in files_below(root) if not path.startswith("store/")}
    name = HOSTILE_NAMES[0]
    answer = client.post("/runs", params={"name": name, "file": name}, content=trace)
    record = wait_for_state(client, answer.json()["run_id"], "ready")["record"]
    assert record["name"] == "rankscope-evil.json"
    assert {path for path in files_below(root) if not path.startswith("store/")} == outside
    assert not list(Path("/tmp").glob("rankscope-evil*"))  # noqa: S108


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("a\x00b\x1b[31m.json", "ab[31m.json"),
        ("\u202egnosj.json", "gnosj.json"),
        ("../..", "file"),
        ("  ", "file"),
        ("x" * 5000, "x" * 200),
        ("rank 3 – ü.json", "rank 3 – ü.json"),
    ],
)
def test_shown_names(name: str, shown: str) -> None:
    assert shown_name(name, "file") == shown


def packed(text: bytes) -> bytes:
    """Compressed, the same at any time of day: it stands in the names of tests."""
    return gzip.compress(text, mtime=0)


def hostile_tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in TAR_NAMES:
            info = tarfile.TarInfo(name)
            info.size = 2
            tar.addfile(info, io.BytesIO(b"{}"))
        for kind, target in ((tarfile.SYMTYPE, "/etc/passwd"), (tarfile.LNKTYPE, "/etc/passwd")):
            link = tarfile.TarInfo("link.json")
            link.type, link.linkname = kind, target
            tar.addfile(link)
        for kind in (tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE):
            info = tarfile.TarInfo("odd.json")
            info.type = kind
            tar.addfile(info)
    return buffer.getvalue()


def unpack(tmp_path: Path, content: bytes, **limits: Any) -> list[str]:
    archive, folder = tmp_path / "archive", tmp_path / "out"
    archive.write_bytes(content)
    folder.mkdir()
    found = [inner.name for inner in Unpacker(folder, Limits(**limits)).unpack(archive, "a")]
    assert files_below(tmp_path) == {"archive"} | {f"out/{n + 1:05d}" for n in range(len(found))}
    return found


def test_an_archive_writes_numbered_files_only(tmp_path: Path) -> None:
    assert unpack(tmp_path, hostile_tar()) == TAR_NAMES


def zip_of(files: dict[str, bytes], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"unpacked_file_bytes": 10 * MIB}, "size limit of 10 MiB"),
        ({"unpacked_bytes": 70 * MIB}, "size limit of 70 MiB"),  # the second one passes it
        ({"files": 1}, "more than 1 files"),
    ],
)
def test_a_bomb_is_stopped_while_it_unpacks(tmp_path: Path, limits: dict[str, int], message: str) -> None:
    bomb = zip_of({f"{n}.json": b" " * (60 * MIB) for n in range(2)})
    assert len(bomb) < MIB
    with pytest.raises(InputError, match=message):
        unpack(tmp_path, bomb, **limits)
    written = sum(path.stat().st_size for path in (tmp_path / "out").iterdir())
    assert written <= limits.get("unpacked_file_bytes", 70 * MIB)


def test_a_lying_zip_is_counted_by_what_comes_out(tmp_path: Path) -> None:
    """The size in the directory says 1 byte; zipfile then gives 1 byte and finds the checksum wrong."""
    bomb = zip_of({"a.json": b" " * (5 * MIB)})
    size = (5 * MIB).to_bytes(4, "little")
    lying = bomb.replace(size, (1).to_bytes(4, "little"))
    assert lying != bomb
    with pytest.raises(InputError, match="cannot be unpacked"):
        unpack(tmp_path, lying)


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04 nonsense", hostile_tar()[:700], packed(hostile_tar())[:120]]
)
def test_a_damaged_archive_says_so(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match="pack it again"):
        unpack(tmp_path, content)


def test_the_gzip_bomb_of_the_cases(client: httpx.Client, shared_traces: Path) -> None:
    folder = shared_traces.parent / "cases" / "61-gzip-bomb"
    files = [("file", (p.name, p.read_bytes())) for p in folder.glob("rank*")]
    run_id = client.post("/runs", data={"name": "bomb"}, files=files).json()["run_id"]
    wait_for_state(client, run_id, "ready")
    report = client.get(f"/runs/{run_id}/report").json()
    (problem,) = [p for p in report["problems"] if p["severity"] == "error"]
    assert problem["file"] == "rank1.pt.trace.json.gz"
    assert "size limit" in problem["message"]
    (rank,) = report["ranks"]
    assert (rank["rank"], rank["overlap_ns"], rank["communication_ns"]) == (0, 400_000, 600_000)


def test_a_zip_bomb_fails_and_leaves_nothing(server: DashboardServer, client: httpx.Client) -> None:
    bomb = zip_of({"rank0.json": b" " * (64 * MIB)})
    run_id = client.post("/runs", params={"name": "zip bomb"}, content=bomb).json()["run_id"]
    assert "size limit of 8 MiB" in wait_for_state(client, run_id, "failed")["message"]
    job = Path(server.store) / "spool" / "jobs" / run_id
    wait_until(lambda: not [path for path in job.iterdir() if path.is_dir()], "its files are gone")


def raw_request(server: DashboardServer, head: str, body: bytes = b"") -> str:
    """The status line of the answer to a request written by hand."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n" + body)
        return connection.recv(4096).decode().partition("\r\n")[0]


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/gzip", "application/json"])
def test_five_declared_gigabytes_are_refused_before_they_are_sent(server: DashboardServer, kind: str) -> None:
    head = (
        f"POST /api/v1/runs HTTP/1.1\nHost: 127.0.0.1\nContent-Type: {kind}\n"
        f"Content-Length: {5 * 1024 * MIB}\n"
    )
    assert " 413 " in raw_request(server, head)


def test_five_announced_gigabytes_are_refused(client: httpx.Client) -> None:
    answer = client.post("/runs", json={"files": [{"name": "x", "size_bytes": 5 * 1024 * MIB}]})
    assert (answer.status_code, answer.json()["limit_bytes"]) == (413, 2 * MIB)


def test_more_than_announced_is_refused(client: httpx.Client) -> None:
    run_id = client.post("/runs", json={"files": [{"name": "x", "size_bytes": 10}]}).json()["run_id"]
    assert client.put(f"/runs/{run_id}/files/0", content=b"x" * 11).status_code == 413
    assert client.get(f"/runs/{run_id}/files").json()["files"][0]["received_bytes"] == 0


def test_a_body_without_a_length_is_counted(server: DashboardServer, client: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * (256 << 10)

    before = files_below(Path(server.store))
    with contextlib.suppress(httpx.WriteError):  # the server may close the connection before all is sent
        assert client.post("/runs", content=endless()).status_code == 413
    assert files_below(Path(server.store)) == before


def test_too_many_files_are_refused(client: httpx.Client) -> None:
    files = [{"name": str(n), "size_bytes": 1} for n in range(21)]
    assert client.post("/runs", json={"files": files}).json()["error"] == "too-many-files"
    form = [("file", (str(n), b"{}")) for n in range(21)]
    assert client.post("/runs", files=form).json()["error"] == "too-many-files"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"json": {"tags": {"k" * 300: "v"}}}, 400),
        ({"json": {"tags": {str(n): "v" for n in range(60)}}}, 400),
        ({"json": {"files": [{"name": "x", "size_bytes": -1}]}}, 400),
        ({"json": {"files": "nonsense"}}, 400),
        ({"content": b"{", "headers": {"content-type": "application/json"}}, 400),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data"}}, 400),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data; boundary=y"}}, 400),
        ({"data": {"name": "n" * 5000}, "files": [("file", ("a", b"{}"))]}, 400),
        ({"params": {"tag": "novalue"}, "content": b"{}"}, 400),
        ({"content": b"\x7fELF not a trace"}, 415),
        ({"files": [("file", ("a.json", b"<html>"))]}, 415),
    ],
)
def test_nonsense_is_refused_with_a_reason(
    server: DashboardServer, client: httpx.Client, answer: dict[str, Any], status: int
) -> None:
    before = files_below(Path(server.store))
    got = client.post("/runs", **answer)
    assert got.status_code == status, got.text
    assert got.json()["message"]
    assert files_below(Path(server.store)) == before


def test_a_slow_client_is_cut_off_and_may_go_on(server: DashboardServer, client: httpx.Client) -> None:
    run_id = client.post("/runs", json={"files": [{"name": "x", "size_bytes": 1000}]}).json()["run_id"]
    head = f"PUT /api/v1/runs/{run_id}/files/0 HTTP/1.1\nHost: 127.0.0.1\nContent-Length: 1000\n"
    started = time.monotonic()
    assert " 408 " in raw_request(server, head, b'{"traceEvents": [')
    assert time.monotonic() - started >= LIMITS["block_seconds"]
    (state,) = client.get(f"/runs/{run_id}/files").json()["files"]
    assert state["received_bytes"] == 17


def test_slow_clients_do_not_hold_up_others(server: DashboardServer, client: httpx.Client) -> None:
    run_id = client.post(
        "/runs", json={"files": [{"name": str(n), "size_bytes": 9} for n in range(3)]}
    ).json()["run_id"]
    host, port = server.url.removeprefix("http://").split(":")
    slow = []
    for number in range(3):
        connection = socket.create_connection((host, int(port)))
        head = f"PUT /api/v1/runs/{run_id}/files/{number} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{{"
        connection.sendall(head.encode())
        slow.append(connection)
    assert client.get("/runs").status_code == 200
    assert client.post("/runs", json={"files": []}).status_code == 201
    for connection in slow:
        connection.close()


def test_two_requests_cannot_write_one_file(server: DashboardServer, client: httpx.Client) -> None:
    run_id = client.post("/runs", json={"files": [{"name": "x", "size_bytes": 1000}]}).json()["run_id"]
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        head = (
            f"PUT /api/v1/runs/{run_id}/files/0 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n"
        )
        connection.sendall(head.encode())
        time.sleep(0.3)  # until its request is being served
        answer = client.put(f"/runs/{run_id}/files/0", content=b"x")
        assert (answer.status_code, answer.json()["error"]) == (409, "busy")


@pytest.mark.parametrize("run_id", ["..%2f..%2fetc", "%2e%2e", "20260101T000000-000000000000%00", "x" * 3000])
def test_no_path_comes_from_a_run_id(client: httpx.Client, run_id: str) -> None:
    for method, tail in (
        ("GET", ""),
        ("GET", "/report"),
        ("DELETE", ""),
        ("GET", "/files"),
        ("GET", "/trace"),
    ):
        answer = client.request(method, f"/runs/{run_id}{tail}")
        assert answer.status_code in (400, 404)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "empty"),
        (b' \n{"traceEvents": []}', "json"),
        (b"\xef\xbb\xbf[]", "json"),
        (packed(b"{}"), "json"),
        (packed(b""), "json"),  # the reader says that it is empty
        (packed(b"hello"), "unknown"),
        (packed(hostile_tar()), "tar"),
        (hostile_tar(), "tar"),
        (zip_of({}), "zip"),
        (b"\x1f\x8b damaged", "json"),  # the reader says where
        (b"#!/bin/sh", "unknown"),
        (b"\x00" * 600, "unknown"),
    ],
)
def test_a_file_is_what_its_first_bytes_say(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "misleading.zip"
    path.write_bytes(content)
    assert kind_of(path) == kind


def test_json_that_is_no_trace_is_not_executed_or_shown_as_a_page(client: httpx.Client, trace: bytes) -> None:
    events = json.loads(trace)
    events["traceEvents"][1]["name"] = "<img src=x onerror=alert(1)>"
    answer = client.post("/runs", params={"file": "<b>.json"}, content=json.dumps(events).encode())
    run_id = answer.json()["run_id"]
    wait_for_state(client, run_id, "ready")
    page = client.get(f"/runs/{run_id}/report", params={"format": "html"})
    assert page.headers["content-disposition"].startswith("attachment")
    assert "<img src=x" not in page.text
    assert client.get(f"/runs/{run_id}/report").headers["content-type"] == "application/json"

"""`rankscope push` and `Collector(push=...)`: whole runs sent, whatever happens to the connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rankscope import upload
from rankscope.errors import InputError, UsageError
from rankscope.renderers.to_json import read_json
from rankscope.upload import Dashboard, Destination, push_run
from support.command import rankscope, write_run
from support.dashboard_server import DashboardServer, running_server, start_server, wait_for_state, wait_until

TOKEN = "a-secret-of-sixteen-or-more"  # noqa: S105


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardServer]:
    with running_server(tmp_path_factory.mktemp("push") / "store", token=TOKEN) as server:
        yield server


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "my-run")


def push(server: DashboardServer, run: Path, *words: str, token: str = TOKEN) -> Any:
    return rankscope("push", run, "--to", server.url, *words, RANKSCOPE_TOKEN=token)


def test_the_command_prints_the_link_and_nothing_else(server: DashboardServer, run_folder: Path) -> None:
    done = push(server, run_folder, "--tag", "branch=main", "--tag", "cap=25")
    assert (done.returncode, done.stderr) == (0, "")
    link = done.stdout.strip()
    assert link.startswith(f"{server.url}/?run=")
    run_id = link.removeprefix(f"{server.url}/?run=").partition("&")[0]
    with server.client(TOKEN) as client:
        record = client.get(f"/runs/{run_id}").json()["record"]
    assert (record["name"], record["tags"], record["ranks"]) == ("my-run", {"branch": "main", "cap": "25"}, 2)


def test_a_name_no_traces_and_no_waiting(server: DashboardServer, run_folder: Path) -> None:
    done = push(server, run_folder / "rank1.json", "--name", "one file", "--no-keep-traces", "--no-wait")
    run_id = done.stdout.partition("?run=")[2].partition("&")[0]
    with server.client(TOKEN) as client:
        record = wait_for_state(client, run_id, "ready")["record"]
    assert (record["name"], record["ranks"], record["traces"]) == ("one file", 1, 0)


def test_what_goes_wrong_is_said(server: DashboardServer, run_folder: Path, tmp_path: Path) -> None:
    wrong = push(server, run_folder, token="not the token at all")  # noqa: S106
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "--token-file" in wrong.stderr
    none = push(server, tmp_path / "absent")
    assert (none.returncode, "does not exist" in none.stderr) == (2, True)
    tag = push(server, run_folder, "--tag", "novalue")
    assert (tag.returncode, "--tag: 'novalue'; expected key=value" in tag.stderr) == (2, True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "x.json").write_text("{}")
    failed = push(server, tmp_path / "empty")
    assert (failed.returncode, "could not analyse the run: no trace" in failed.stderr) == (2, True)


def test_no_server_is_given_up_after_the_patience(run_folder: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(InputError, match="could not be reached for 0 s"):
            push_run(sorted(run_folder.iterdir()), Destination(url=url, patience_seconds=0.2))


@pytest.mark.parametrize("url", ["", "host:8501", "ftp://host", "http://", "/runs"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no address of a dashboard"):
        Dashboard(Destination(url=url))


def test_a_server_that_is_killed_and_comes_back(
    tmp_path: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of the first file; the transfer goes on where it was, on the same address."""
    monkeypatch.setattr(upload, "_PIECE_BYTES", 300)
    first = start_server(tmp_path / "store")
    port = int(first.url.rpartition(":")[2])
    again: list[DashboardServer] = []
    sent: list[int] = []

    def on_sent(size_bytes: int) -> None:
        sent.append(size_bytes)
        if len(sent) == 3:
            first.kill()
            thread = threading.Thread(
                target=lambda: again.append(start_server(tmp_path / "store", port=port))
            )
            thread.start()
            threads.append(thread)

    threads: list[threading.Thread] = []
    files = sorted(run_folder.iterdir())
    pushed = push_run(files, Destination(url=first.url), name="survivor", on_sent=on_sent)
    threads[0].join()
    try:
        assert sum(sent) == sum(path.stat().st_size for path in files)
        with again[0].client() as client:
            wait_for_state(client, pushed.run_id, "ready")
            assert read_json(client.get(f"/runs/{pushed.run_id}/report").content).run.ranks == [0, 1]
    finally:
        again[0].kill()


class _Flaky(BaseHTTPRequestHandler):
    """A dashboard that answers each request badly first: not at all, 503, or with half of what it got."""

    calls: dict[str, int] = {}  # noqa: RUF012 - one for all connections is meant
    received = bytearray()
    protocol_version = "HTTP/1.1"

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        count = self.calls[self.path] = self.calls.get(self.path, 0) + 1
        if count == 1:
            self.close_connection = True
        elif count == 2:
            self.answer(503, b"<html>busy</html>")
        else:
            self.answer(200, b'{"run_id": "1"}')

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        count = self.calls[self.path] = self.calls.get(self.path, 0) + 1
        if int(self.headers["upload-offset"]) != len(self.received):
            self.answer(409, b'{"error": "wrong-offset", "received_bytes": %d}' % len(self.received))
        elif count == 1:  # half arrives, and the answer is lost
            self.received.extend(content[: len(content) // 2])
            self.close_connection = True
        else:
            self.received.extend(content)
            self.answer(200, b'{"received_bytes": %d}' % len(self.received))

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


def test_a_flaky_connection_is_borne(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "_FIRST_PAUSE_SECONDS", 0.01)
    trace = tmp_path / "rank0.json"
    trace.write_bytes(bytes(range(256)) * 1000)
    flaky = ThreadingHTTPServer(("127.0.0.1", 0), _Flaky)
    thread = threading.Thread(target=flaky.serve_forever)
    thread.start()
    sent: list[int] = []
    try:
        destination = Destination(url=f"http://127.0.0.1:{flaky.server_port}/", patience_seconds=30)
        push_run([trace], destination, on_sent=sent.append)
    finally:
        flaky.shutdown()
        thread.join()
        flaky.server_close()
    assert bytes(_Flaky.received) == trace.read_bytes()
    assert sum(sent) == 256_000


def test_another_kind_of_server_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(_Flaky):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.answer(404, b"<html>not here</html>")

    other = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    thread = threading.Thread(target=other.serve_forever)
    thread.start()
    (tmp_path / "t.json").write_text("{}")
    try:
        with pytest.raises(InputError, match="is that the address of a dashboard"):
            push_run([tmp_path / "t.json"], Destination(url=f"http://127.0.0.1:{other.server_port}"))
    finally:
        other.shutdown()
        thread.join()
        other.server_close()


def test_the_library_needs_nothing_beside_python(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; before = set(sys.modules); import rankscope.upload\n"
        "found = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(found - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['rankscope']"


@pytest.mark.torch
def test_the_collector_pushes_after_its_last_window(server: DashboardServer, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from rankscope import Collector, Push

    model = torch.nn.Linear(8, 8)
    destination = Push(to=server.url, name="from training", tags={"by": "collector"}, token=TOKEN)
    with Collector(tmp_path / "run", wait=0, warmup=1, active=2, push=destination) as collector:
        for _ in range(5):
            model(torch.ones(2, 8)).sum().backward()
            collector.step()
    with server.client(TOKEN) as client:

        def pushed() -> list[Any]:
            found: list[Any] = client.get("/runs", params={"tag": "by=collector"}).json()["runs"]
            return found

        wait_until(lambda: len(pushed()) == 1, "the run has been pushed")
        (record,) = pushed()
    assert (record["name"], record["steps"]) == ("from training", 2)


@pytest.mark.torch
def test_a_push_that_fails_breaks_nothing(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from rankscope import Collector, Push
    from rankscope.collector import RankscopeWarning

    model = torch.nn.Linear(8, 8)
    nowhere = Push(to="http://127.0.0.1:9", patience_seconds=0.1)

    def train() -> int:
        with Collector(tmp_path / "run", wait=0, warmup=0, active=1, push=nowhere) as collector:
            for _ in range(2):
                model(torch.ones(2, 8)).sum().backward()
                collector.step()
        for thread in threading.enumerate():
            if thread.name == "rankscope-when-done":
                thread.join()
        return len(collector.files)

    with pytest.warns(RankscopeWarning, match="could not be reached"):
        written = train()
    assert written == 1

"""The server killed in the middle: nothing lost that was acknowledged, nothing half shown."""

from __future__ import annotations

import errno
import gzip
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil
import pytest
from starlette.applications import Starlette

from rankscope.pipeline import analyze_run, read_run
from rankscope.pipeline.keep import KeepOptions, keep_run
from rankscope.renderers.to_json import read_json
from rankscope.store import Job, new_run_id, open_store
from rankscope_dashboard import supervisor as supervisor_module
from rankscope_dashboard.api import Api
from rankscope_dashboard.limits import Limits
from rankscope_dashboard.merged import MergedTraces
from rankscope_dashboard.supervisor import Supervisor
from rankscope_dashboard.uploads import Uploads
from support.command import write_run
from support.dashboard_server import DashboardServer, start_server, wait_for_state, wait_until


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Any]:
    """Starts servers on one store, one after another; the last is killed at the end."""
    started: list[DashboardServer] = []

    def start(**options: Any) -> DashboardServer:
        started.append(start_server(tmp_path / "store", **options))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.kill()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes]:
    folder = write_run(tmp_path / "run")
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def begin(client: httpx.Client, files: dict[str, bytes], name: str = "run") -> str:
    sizes = [{"name": file, "size_bytes": len(content)} for file, content in files.items()]
    return str(client.post("/runs", json={"name": name, "files": sizes}).json()["run_id"])


def upload(client: httpx.Client, files: dict[str, bytes], name: str = "run") -> str:
    run_id = begin(client, files, name)
    for number, content in enumerate(files.values()):
        assert client.put(f"/runs/{run_id}/files/{number}", content=content).status_code == 200
    assert client.post(f"/runs/{run_id}/complete").status_code == 202
    return run_id


def slow_files(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same run with so much white space, well packed, that reading it takes a moment."""
    return {f"{name}.gz": gzip.compress(content + b" " * (150 << 20), 1) for name, content in files.items()}


def workers_of(server: DashboardServer) -> list[psutil.Process]:
    return psutil.Process(server.process.pid).children(recursive=True)


def test_killed_in_the_middle_of_an_upload(servers: Any, files: dict[str, bytes], tmp_path: Path) -> None:
    first = servers()
    with first.client() as client:
        run_id = begin(client, files)
        one, two = files.values()
        assert client.put(f"/runs/{run_id}/files/0", content=one).json()["received_bytes"] == len(one)
        assert client.put(f"/runs/{run_id}/files/1", content=two[:300]).json()["received_bytes"] == 300
    first.kill()
    with servers().client() as client:
        # What was acknowledged is there, and nothing is shown as a run.
        states = client.get(f"/runs/{run_id}/files").json()["files"]
        assert [state["received_bytes"] for state in states] == [len(one), 300]
        listed = client.get("/runs").json()
        assert listed["runs"] == []
        assert [status["state"] for status in listed["pending"]] == ["receiving"]
        rest = client.put(f"/runs/{run_id}/files/1", content=two[300:], headers={"upload-offset": "300"})
        assert rest.json()["received_bytes"] == len(two)
        client.post(f"/runs/{run_id}/complete")
        wait_for_state(client, run_id, "ready")
        report = read_json(client.get(f"/runs/{run_id}/report").content)
        assert report.ranks == analyze_run(read_run(tmp_path / "run")).ranks


def test_killed_in_the_middle_of_analyses(servers: Any, files: dict[str, bytes]) -> None:
    first = servers()
    with first.client() as client:
        run_ids = [upload(client, slow_files(files), "slow"), upload(client, files, "waiting")]
        wait_until(
            lambda: client.get(f"/runs/{run_ids[0]}").json()["state"] == "analysing", "the analysis has begun"
        )
        workers = workers_of(first)
        first.kill()
    assert workers
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive, "a worker outlived its server"
    store = open_store(first.store)
    assert store.list_runs() == []
    assert store.rebuild_index() == 0
    second = servers()
    with second.client() as client:
        for run_id in run_ids:
            wait_for_state(client, run_id, "ready")
        assert sorted(r["name"] for r in client.get("/runs").json()["runs"]) == ["slow", "waiting"]
    wait_until(lambda: not list((Path(first.store) / "spool" / "jobs").iterdir()), "the spool is empty")


def test_killed_between_storing_a_run_and_saying_so(servers: Any, files: dict[str, bytes]) -> None:
    first = servers()
    with first.client() as client:
        run_id = upload(client, files)
        wait_for_state(client, run_id, "ready")
    wait_until(lambda: open_store(first.store).jobs.get(run_id) is None, "the job is done")
    first.kill()
    store = open_store(first.store)
    record = store.record(run_id)
    store.jobs.save(Job(run_id=run_id, name="run", created_at="", state="analysing", attempts=1))
    with servers().client() as client:
        wait_until(lambda: store.jobs.get(run_id) is None, "the new server sees that it is done")
        assert [r["content"] for r in client.get("/runs").json()["runs"]] == [record.content]


def test_a_run_that_kills_the_server_each_time_is_given_up(servers: Any, files: dict[str, bytes]) -> None:
    first = servers()
    with first.client() as client:
        run_id = begin(client, files)
    first.kill()
    jobs = open_store(first.store).jobs
    jobs.change(run_id, lambda job: replace(job, state="analysing", attempts=3))
    with servers().client() as client:
        assert "cut off 3 times" in wait_for_state(client, run_id, "failed")["message"]


def test_a_worker_that_is_killed_fails_its_run_only(servers: Any, files: dict[str, bytes]) -> None:
    server = servers()
    with server.client() as client:
        run_id, other = upload(client, slow_files(files)), upload(client, files)
        wait_until(
            lambda: client.get(f"/runs/{run_id}").json()["stage"] in ("unpacking", "reading traces"),
            "the analysis is under way",
        )
        busy = max(workers_of(server), key=lambda process: sum(process.cpu_times()[:2]))
        os.kill(busy.pid, signal.SIGKILL)
        assert "killed (signal 9)" in wait_for_state(client, run_id, "failed")["message"]
        wait_for_state(client, other, "ready")


def test_an_analysis_that_takes_too_long_is_ended(servers: Any, files: dict[str, bytes]) -> None:
    server = servers(limits={"analysis_seconds": 0.1})
    with server.client() as client:
        run_id = upload(client, slow_files(files))
        assert "took longer than 0 s" in wait_for_state(client, run_id, "failed")["message"]


def test_a_run_deleted_while_it_is_analysed_does_not_come_back(servers: Any, files: dict[str, bytes]) -> None:
    server = servers()
    with server.client() as client:
        run_id, other = upload(client, slow_files(files)), upload(client, files)
        wait_until(lambda: client.get(f"/runs/{run_id}").json()["state"] == "analysing", "it is analysed")
        assert client.delete(f"/runs/{run_id}").status_code == 204
        wait_for_state(client, other, "ready")
        assert [r["run_id"] for r in client.get("/runs").json()["runs"]] == [other]


def test_a_run_deleted_just_after_it_was_stored_does_not_come_back(tmp_path: Path) -> None:
    """The moment between the worker's last act and the server's noting it, made to last."""
    store = open_store(tmp_path / "store")
    record = keep_run(store, write_run(tmp_path / "run"))  # as the worker leaves it; its job has been deleted
    supervisor = Supervisor(store, Limits())
    supervisor._finish(record.run_id, "")
    supervisor.stop()
    assert store.list_runs() == []


def test_the_queue_goes_on_after_a_fault_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor_module, "_RETRY_SECONDS", 0.01)
    store = open_store(tmp_path / "store")
    store.jobs.folder.mkdir(parents=True)
    supervisor = Supervisor(store, Limits())
    supervisor.start()
    try:
        aside = store.jobs.folder.rename(tmp_path / "aside")
        store.jobs.folder.write_text("in the way")
        supervisor.notify()
        wait_until(lambda: "trying again" in caplog.text, "the fault has been met")
        store.jobs.folder.unlink()
        aside.rename(store.jobs.folder)
        # It has been tried too often, which is told without another analysis.
        job = store.jobs.save(Job(run_id=new_run_id(), name="r", created_at="", state="queued", attempts=3))
        supervisor.notify()
        wait_until(lambda: store.status(job.run_id).state == "failed", "the next run has its turn")
    finally:
        supervisor.stop()


def test_what_was_sent_at_once_is_dropped_when_the_disk_is_full(tmp_path: Path) -> None:
    """It cannot be resumed: what arrived of it would only fill the disk further."""

    class Full(Uploads):
        async def receive(self, *_args: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    store, limits = open_store(tmp_path / "store"), Limits()
    uploads = Full(store, limits, lambda: None)
    api = Api(store=store, uploads=uploads, limits=limits, merged=MergedTraces(store, limits))

    async def post() -> httpx.Response:
        transport = httpx.ASGITransport(Starlette(routes=api.routes()))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.post("/api/v1/runs", content=b"{}")

    answer = anyio.run(post)
    assert (answer.status_code, answer.json()["error"]) == (507, "disk-full")
    assert store.jobs.all() == []


def test_old_runs_are_deleted_by_the_server(servers: Any, files: dict[str, bytes], tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    for name in ("one", "two"):
        keep_run(store, tmp_path / "run", KeepOptions(name=name))
    with servers(retention={"max_runs": 1}).client() as client:
        wait_until(lambda: len(client.get("/runs").json()["runs"]) == 1, "one of them is gone")


def test_the_queue_shows_progress(servers: Any, files: dict[str, bytes]) -> None:
    server = servers()
    with server.client() as client:
        run_id = upload(client, slow_files(files))
        seen: list[dict[str, Any]] = []

        def is_ready() -> bool:
            seen.append(client.get(f"/runs/{run_id}").json())
            return bool(seen[-1]["state"] == "ready")

        wait_until(is_ready, "it is ready")
    stages = {status["stage"] for status in seen if status["state"] == "analysing"}
    assert "reading traces" in stages
    shares = [status["progress"] for status in seen if status["progress"] is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_second_server_on_the_same_spool_is_refused(servers: Any, tmp_path: Path) -> None:
    servers()
    with pytest.raises(AssertionError, match="the server ended at once"):
        start_server(tmp_path / "store")


def test_ctrl_c_ends_the_server_and_its_workers(servers: Any) -> None:
    server = servers()
    workers = workers_of(server)
    server.stop()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive

"""The store in an object store, against a real S3 server on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rankscope.errors import RunNotFoundError
from rankscope.pipeline import read_run
from rankscope.pipeline.keep import KeepOptions, keep_run
from rankscope.store import NewFile, NewRun, RunRecord, Store, new_run_id, open_store
from rankscope.store import index as index_module
from support.command import write_run

pytest.importorskip("s3fs")
moto_server = pytest.importorskip("moto.server")

# Deprecations inside the S3 client and the server's libraries are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """URL of an empty bucket; the client finds the server by the environment, as it does in earnest."""
    import boto3  # type: ignore[import-untyped]

    server = moto_server.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    settings = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="runs")
        yield "s3://runs"
    server.stop()


@pytest.fixture
def store(bucket: str, tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    return open_store(f"{bucket}/{request.node.name}", spool=tmp_path / "spool")


def small_run(name: str) -> NewRun:
    record = RunRecord(run_id=new_run_id(), name=name, created_at="2026-01-01T00:00:00+00:00")
    return NewRun(record=record, files=[NewFile(role="report", name="r", content=name.encode())])


def test_an_empty_bucket_holds_no_runs(store: Store) -> None:
    assert store.list_runs() == []
    assert store.rebuild_index() == 0


def test_a_run_goes_in_and_comes_back(store: Store, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    record = keep_run(store, folder, KeepOptions(tags={"branch": "main"}))
    again = open_store(store.url, spool=tmp_path)
    assert again.list_runs("main") == [record]
    assert again.report(record.run_id).run.ranks == [0, 1]
    assert len(again.timeline(record.run_id)) > 0
    assert again.run(record.run_id).ranks == read_run(folder).ranks
    trace = again.traces(record.run_id)[0]
    with again.open_file(record.run_id, trace) as file:
        assert file.read() == (folder / trace.name).read_bytes()


def test_the_shared_run_from_the_bucket_gives_the_same_report(
    store: Store, shared_traces: Path, tmp_path: Path
) -> None:
    folder = shared_traces / "amd_resnet_ddp_4rank"
    local = open_store(tmp_path / "local")
    there, here = keep_run(store, folder), keep_run(local, folder)
    assert store.report(there.run_id) == local.report(here.run_id)


def test_runs_are_deleted_at_once(store: Store) -> None:
    kept, gone = store.put(small_run("kept")), store.put(small_run("gone"))
    assert store.delete(gone.run_id)
    assert store.list_runs() == [kept]
    with pytest.raises(RunNotFoundError):
        store.report_text(gone.run_id)
    assert store._blobs.names(f"runs/{gone.run_id}/files") == []


def test_a_run_from_another_process_is_seen_at_once(store: Store) -> None:
    ours = store.put(small_run("ours"))
    assert store.list_runs() == [ours]  # whatever a client might remember of this
    code = (
        "import sys; from rankscope.store import *\n"
        "record = RunRecord(run_id=new_run_id(), name='theirs', created_at='')\n"
        "open_store(sys.argv[1], spool='/nonexistent').put(NewRun(record=record))"
    )
    subprocess.run([sys.executable, "-c", code, store.url], check=True, timeout=120)
    assert sorted(record.name for record in store.list_runs()) == ["ours", "theirs"]


def test_a_writer_killed_in_the_middle_leaves_nothing_to_be_seen(store: Store, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from rankscope.store import *\n"
        "def files():\n"
        "    yield NewFile(role='report', name='r', content=b'1')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "record = RunRecord(run_id=sys.argv[2], name='half', created_at='')\n"
        "open_store(sys.argv[1], spool='/nonexistent').put(NewRun(record=record, files=files()))"
    )
    run_id = new_run_id()
    done = subprocess.run([sys.executable, "-c", code, store.url, run_id], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert store._blobs.names("runs") == [run_id]  # its first file did arrive
    assert store.list_runs() == []
    assert store.rebuild_index() == 0
    with pytest.raises(RunNotFoundError):
        store.record(run_id)


def test_writers_side_by_side_lose_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_FOLD_ABOVE", 3)

    def write(number: int) -> str:
        own = open_store(store.url, spool=os.devnull)
        return own.put(small_run(str(number))).run_id

    with ThreadPoolExecutor(4) as pool:
        written = set(pool.map(write, range(16)))
    assert {record.run_id for record in store.list_runs()} == written
    assert store.rebuild_index() == 16
    assert {record.run_id for record in open_store(store.url).list_runs()} == written

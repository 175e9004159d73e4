"""Uploads on their way: states on the disk, progress, and what is left after a crash."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rankscope.errors import RunNotFoundError
from rankscope.store import Job, JobFile, Jobs, Progress, Store, new_run_id


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path / "jobs")


def job(**fields: object) -> Job:
    values: dict[str, object] = {
        "run_id": new_run_id(),
        "name": "n",
        "created_at": "2026-01-01T00:00:00+00:00",
    }
    return Job(**{**values, **fields})  # type: ignore[arg-type]  # any of its fields


def test_no_folder_means_no_jobs(jobs: Jobs) -> None:
    assert jobs.all() == []
    assert jobs.get(new_run_id()) is None


def test_a_job_is_there_for_another_process(jobs: Jobs) -> None:
    saved = jobs.save(job(tags={"a": "b"}, files=[JobFile(name="x", size_bytes=3)]))
    assert Jobs(jobs.folder).all() == [saved]


def test_a_folder_without_a_job_is_nobodys(jobs: Jobs) -> None:
    (jobs.folder / new_run_id()).mkdir(parents=True)
    assert jobs.all() == []


def test_received_share_counts_bytes_on_the_disk(jobs: Jobs) -> None:
    one = jobs.save(job(files=[JobFile(name="x", size_bytes=30), JobFile(name="y", size_bytes=10)]))
    jobs.file_path(one.run_id, 0).write_bytes(b"1" * 20)
    assert jobs.received_bytes(one.run_id, 0) == 20
    assert jobs.received_bytes(one.run_id, 1) == 0
    assert jobs.status(one).progress == 0.5
    unknown = jobs.save(job(files=[JobFile(name="x", size_bytes=30), JobFile(name="y")]))
    assert jobs.status(unknown).progress is None


def test_progress_of_an_analysis(jobs: Jobs) -> None:
    one = jobs.save(job(state="analysing"))
    assert jobs.status(one).stage == "starting"
    jobs.report_progress(one.run_id, Progress(share=0.25, stage="reading traces"))
    status = jobs.status(one)
    assert (status.state, status.progress, status.stage) == ("analysing", 0.25, "reading traces")


def test_progress_of_a_deleted_job_is_nobodys_business(jobs: Jobs) -> None:
    jobs.report_progress(new_run_id(), Progress(share=0.5))
    assert jobs.all() == []


def test_a_failed_job_keeps_its_message_and_drops_its_files(jobs: Jobs) -> None:
    one = jobs.save(job(state="analysing", files=[JobFile(name="x")]))
    jobs.file_path(one.run_id, 0).write_bytes(b"1")
    jobs.fail(one.run_id, "because")
    assert not jobs.file_path(one.run_id, 0).exists()
    assert jobs.status(jobs.all()[0]).message == "because"


def test_changing_what_is_gone_says_so(jobs: Jobs) -> None:
    with pytest.raises(RunNotFoundError, match="no upload"):
        jobs.change(new_run_id(), lambda job: job)


def test_abandoned_uploads_go_and_others_stay(jobs: Jobs) -> None:
    old = jobs.save(job())
    fresh, queued = jobs.save(job()), jobs.save(job(state="queued"))
    for one in (old, queued):
        os.utime(jobs.folder / one.run_id / "job.json", (1, 1))
    assert jobs.drop_abandoned(3600) == [old.run_id]
    assert {j.run_id for j in jobs.all()} == {fresh.run_id, queued.run_id}


def test_failed_uploads_go_too_once_there_was_time_to_read_why(jobs: Jobs) -> None:
    old, fresh = jobs.save(job(state="analysing")), jobs.save(job(state="analysing"))
    for one in (old, fresh):
        jobs.fail(one.run_id, "because")
    os.utime(jobs.folder / old.run_id / "job.json", (1, 1))
    assert jobs.drop_abandoned(3600) == [old.run_id]
    assert [j.run_id for j in jobs.all()] == [fresh.run_id]


def test_a_damaged_job_is_nobodys_and_holds_up_no_other(jobs: Jobs) -> None:
    damaged, good = jobs.save(job()), jobs.save(job())
    (jobs.folder / damaged.run_id / "job.json").write_bytes(b'{"run_id": ')
    assert jobs.all() == [good]
    assert jobs.get(damaged.run_id) is None
    assert jobs.remove(damaged.run_id)


def test_an_upload_to_which_something_was_added_is_not_abandoned(jobs: Jobs) -> None:
    one = jobs.save(job(files=[JobFile(name="x")]))
    os.utime(jobs.folder / one.run_id / "job.json", (1, 1))
    jobs.file_path(one.run_id, 0).write_bytes(b"1")
    assert jobs.drop_abandoned(3600) == []


def test_the_store_tells_how_far_a_run_has_come(store: Store) -> None:
    one = store.jobs.save(job(state="queued", name="mine"))
    assert store.status(one.run_id).state == "queued"
    assert [status.name for status in store.pending()] == ["mine"]
    store.jobs.save(replace(one, state="failed", message="why"))
    assert store.status(one.run_id).message == "why"
    assert store.delete(one.run_id)
    with pytest.raises(RunNotFoundError):
        store.status(one.run_id)

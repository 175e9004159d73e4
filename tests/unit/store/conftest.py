"""A run on the disk, and records without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rankscope.store import NewFile, NewRun, RunRecord, Store, open_store
from support.command import write_run

RUN_IDS = [f"20260101T00000{n}-{n:012x}" for n in range(10)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store")


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Two ranks, steps 4 to 6 of 100 us: compute 50, all-reduce 60 of which 23 are hidden."""
    return write_run(tmp_path / "run")


@pytest.fixture
def put(store: Store) -> Callable[..., RunRecord]:
    """Puts a run that is only a record and one small file."""

    def put_run(number: int, content: bytes = b"x", **fields: object) -> RunRecord:
        values = {
            "run_id": RUN_IDS[number],
            "name": f"run {number}",
            "created_at": f"2026-01-0{number + 1}T00:00:00+00:00",
        }
        record = RunRecord(**{**values, **fields})  # type: ignore[arg-type]  # any of its fields
        return store.put(NewRun(record=record, files=[NewFile(role="report", name="r", content=content)]))

    return put_run

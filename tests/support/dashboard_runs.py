"""A store with runs of every kind for the tests of the dashboard's views."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankscope.model.categories import EventClass
from rankscope.model.report import Measures, Report, RunFacts, Tool, Totals
from rankscope.model.timeline import Timeline, TimelineLane
from rankscope.pipeline.keep import KeepOptions, keep_run
from rankscope.renderers.to_json import render_json
from rankscope.store import NewFile, NewRun, RunRecord, Store, new_run_id, open_store
from rankscope.store.parquet import to_parquet
from rankscope.store.timeline_tables import timeline_to_tables
from rankscope.testing.synth import ddp_run, write_run

STRAGGLER_NS = 2_000_000


@dataclass(frozen=True)
class ViewRuns:
    """A store and the ids of its runs.

    `late` has 4 ranks of which rank 3 loads its data 2 ms longer in every step; `lone` is rank 0 of 2 without the
    other; `broken` has 2 ranks whose second file is cut in the middle; `hostile` has names that attack.
    """

    store: Store
    late: str
    lone: str
    broken: str
    hostile: str


def keep_view_runs(folder: Path) -> ViewRuns:
    """Write the runs and keep them in a store below `folder`."""
    store = open_store(folder / "store")
    late = ddp_run(ranks=4, steps=4, straggler=(3, STRAGGLER_NS, "input"))
    write_run(late, folder / "late")
    write_run(ddp_run(ranks=2).without_files_of([1]), folder / "lone")
    write_run(ddp_run(ranks=2), folder / "broken")
    cut_in_half(sorted((folder / "broken").iterdir())[1])
    write_run(ddp_run(ranks=2), folder / "hostile")
    attack = KeepOptions(name='<img src=x onerror="alert(1)"> **b** :red[x]', tags={"=cmd": "<b>"})
    return ViewRuns(
        store=store,
        late=keep_run(store, folder / "late", KeepOptions(tags={"branch": "main"})).run_id,
        lone=keep_run(store, folder / "lone").run_id,
        broken=keep_run(store, folder / "broken").run_id,
        hostile=keep_run(store, folder / "hostile", attack).run_id,
    )


def keep_a_million_events(store: Store) -> str:
    """Keep a run of 8 ranks with 4 streams each and 1,000,000 events on them; its id.

    Each stream holds 31,250 kernels of 10 us, one every 12 us.
    """
    lanes = tuple(
        TimelineLane(
            rank=rank,
            label=f"GPU {rank} stream {stream}",
            kind="device",
            starts_ns=np.arange(31_250, dtype=np.int64) * 12_000,
            durations_ns=np.full(31_250, 10_000, np.int64),
            names=np.arange(31_250, dtype=np.int32) % 50,
            classes=np.full(31_250, EventClass.COMPUTE, np.uint8),
        )
        for rank in range(8)
        for stream in range(4)
    )
    end_ns = 31_250 * 12_000
    names = tuple(f"kernel_{number}" for number in range(50))
    timeline = Timeline(origin_ns=0, step=None, start_ns=0, end_ns=end_ns, lanes=lanes, names=names)
    events, places = timeline_to_tables(timeline)
    facts = RunFacts(name="million", source="", ranks=list(range(8)))
    report = Report(tool=Tool(version="0"), run=facts, totals=Totals(run=Measures()))
    record = RunRecord(run_id=new_run_id(), name="million", created_at="2026-01-01T00:00:00+00:00")
    files = [
        NewFile(role="report", name="report.json", content=render_json(report).encode()),
        NewFile(role="table", name="events", content=to_parquet(events)),
        NewFile(role="table", name="lanes", content=to_parquet(places)),
    ]
    return store.put(NewRun(record=record, files=files)).run_id


def cut_in_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])

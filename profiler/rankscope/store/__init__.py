"""Where runs are kept: a folder or an fsspec URL, written atomically.

    store = open_store("~/rankscope-runs")          # or "s3://bucket/prefix"
    for record in store.list_runs("resnet", tags={"branch": "main"}): ...
    report = store.report(record.run_id)            # rankscope.model.report.Report
    table = store.table(record.run_id, "collectives")  # pyarrow; also "arrivals", "communications", ...
    timeline = store.timeline(record.run_id)        # all ranks on the common clock
    store.status(run_id), store.pending()           # receiving, queued, analysing, ready, failed
    store.delete(run_id); store.apply_retention(max_runs=1000); store.rebuild_index()

`record.content` changes whenever a run's content does: it is the key for caches. Runs are put into a store by
`rankscope.pipeline.keep.keep_run`, which analyses them.
"""

from __future__ import annotations

from rankscope.store.jobs import Job, JobFile, Jobs, Progress, RunStatus
from rankscope.store.record import RunManifest, RunRecord, StoredFile, new_run_id
from rankscope.store.store import NewFile, NewRun, Store, open_store

__all__ = [
    "Job",
    "JobFile",
    "Jobs",
    "NewFile",
    "NewRun",
    "Progress",
    "RunManifest",
    "RunRecord",
    "RunStatus",
    "Store",
    "StoredFile",
    "new_run_id",
    "open_store",
]

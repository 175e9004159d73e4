"""A store with runs of every kind for the tests of the dashboard's views."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rankscope.pipeline.keep import KeepOptions, keep_run
from rankscope.store import Store, open_store
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


def cut_in_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])

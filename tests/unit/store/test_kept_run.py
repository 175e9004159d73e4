"""A run goes into the store and comes out of it the same."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankscope.errors import InputError, RunNotFoundError
from rankscope.model.categories import EventClass
from rankscope.model.run import Run
from rankscope.pipeline import AnalyzeOptions, analyze_fully, analyze_run, read_run
from rankscope.pipeline.keep import KeepOptions, keep_run
from rankscope.renderers.to_json import render_json
from rankscope.store import Store


def assert_equal(one: Any, other: Any, where: str = "") -> None:
    """Compare everything in two trees of dataclasses and arrays."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        np.testing.assert_array_equal(one, other, where)
    elif is_dataclass(one):
        for field in fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif isinstance(one, tuple | list):
        assert len(one) == len(other), where
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_equal(a, b, f"{where}[{number}]")
    else:
        assert one == other, where


def check_run_comes_back(store: Store, folder: Path) -> Run:
    record = keep_run(store, folder)
    original, kept = read_run(folder), store.run(record.run_id)
    assert_equal(original.windows, kept.windows)
    assert_equal(original.problems, kept.problems)
    return kept


def test_the_same_run_comes_back(store: Store, run_folder: Path) -> None:
    kept = check_run_comes_back(store, run_folder)
    again = analyze_run(kept, AnalyzeOptions(detail="full"))
    original = analyze_run(read_run(run_folder), AnalyzeOptions(detail="full"))
    assert again.collectives == original.collectives
    assert again.ranks == original.ranks


@pytest.mark.parametrize("name", ["gloo_ddp_caps/cap10", "megatron_tp2_2rank", "torchrec_straggler_4rank"])
def test_real_runs_come_back(store: Store, shared_traces: Path, name: str) -> None:
    check_run_comes_back(store, shared_traces / name)


def test_names_that_utf8_cannot_hold_come_back(store: Store, tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "bad \ud800 name", "pid": 0, "tid": 7, "ts": 1, "dur": 2}
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "rank0.json").write_text(json.dumps({"traceEvents": [event]}))
    check_run_comes_back(store, folder)


def test_the_record_holds_the_figures(store: Store, run_folder: Path) -> None:
    record = keep_run(store, run_folder, KeepOptions(name="mine", tags={"cap": "25"}))
    # Three steps on two ranks: all-reduce [30, 90) of which compute [3, 53) hides 23 us; 37 exposed.
    assert record.exposed_communication_ns == 6 * 37_000
    assert record.overlap_ratio == pytest.approx(23 / 60)
    assert (record.name, record.tags, record.ranks, record.steps) == ("mine", {"cap": "25"}, 2, 3)
    assert record.traces == 2
    assert store.list_runs() == [record]


def test_the_report_is_the_summary_with_the_tags_as_labels(store: Store, run_folder: Path) -> None:
    record = keep_run(store, run_folder, KeepOptions(tags={"cap": "25"}))
    report = store.report(record.run_id)
    assert report.run.labels == {"cap": "25"}
    assert report.communications == []
    fresh = analyze_run(read_run(run_folder), AnalyzeOptions(labels=(("cap", "25"),)))
    assert json.loads(store.report_text(record.run_id)) == json.loads(render_json(fresh))


def test_tables_hold_the_rows_of_the_full_report(store: Store, run_folder: Path) -> None:
    record = keep_run(store, run_folder)
    full = analyze_run(read_run(run_folder), AnalyzeOptions(detail="full"))
    collectives = store.table(record.run_id, "collectives", ["index", "op"]).to_pylist()
    assert collectives == [{"index": row.index, "op": row.op} for row in full.collectives]
    arrivals = store.table(record.run_id, "arrivals").to_pylist()
    assert {(a["index"], a["rank"]): a["arrival_ns"] for a in arrivals} == {
        (row.index, rank): time for row in full.collectives for rank, time in (row.arrivals_ns or {}).items()
    }
    assert store.table(record.run_id, "communications").num_rows == 6
    with pytest.raises(RunNotFoundError, match="has no table 'p2p'"):
        store.table(record.run_id, "p2p")


def test_the_timeline_holds_all_events_from_the_origin(store: Store, run_folder: Path) -> None:
    record = keep_run(store, run_folder)
    timeline = store.timeline(record.run_id)
    streams = [lane for lane in timeline.lanes if lane.rank == 0 and lane.kind == "device"]
    (device,) = [lane for lane in streams if (lane.classes == EventClass.COMPUTE).all()]
    lanes = {(lane.rank, lane.kind): lane for lane in timeline.lanes}
    # Step 4 begins at 400 us, which is the report's origin, and its kernel 3 us later.
    assert device.starts_ns.tolist() == [3_000, 103_000, 203_000]
    assert device.durations_ns.tolist() == [50_000] * 3
    assert lanes[1, "exposed"].durations_ns.tolist() == [37_000] * 3
    assert lanes[0, "annotations"].starts_ns[0] == 0


def test_the_timeline_is_on_the_common_clock(store: Store, shared_traces: Path) -> None:
    folder = shared_traces / "torchrec_straggler_4rank"
    record = keep_run(store, folder)
    analysis = analyze_fully(read_run(folder))
    timeline = store.timeline(record.run_id)
    for result in analysis.results:
        offset = analysis.together.clocks.of_rank[result.events.window.rank].offset_ns
        rows = np.concatenate([result.events.compute, result.events.communication, result.events.memory])
        first = int(result.events.table.start_ns[rows].min()) - offset - analysis.origin_ns
        mine = [
            lane
            for lane in timeline.lanes
            if lane.rank == result.events.window.rank and lane.kind == "device"
        ]
        assert min(int(lane.starts_ns[0]) for lane in mine) == first


def test_traces_are_kept_unless_refused(store: Store, run_folder: Path) -> None:
    (run_folder / "settings.json").write_text("{}")  # beside the traces, and none
    kept = keep_run(store, run_folder)
    traces = store.traces(kept.run_id)
    assert [t.name for t in traces] == ["rank0.json", "rank1.json"]
    with store.open_file(kept.run_id, traces[0]) as file:
        assert file.read() == (run_folder / "rank0.json").read_bytes()
    refused = keep_run(store, run_folder, KeepOptions(keep_traces=False))
    assert store.traces(refused.run_id) == ()
    assert refused.traces == 0
    assert store.run(refused.run_id).ranks == (0, 1)


def test_a_bad_file_is_counted_and_the_others_go_on(store: Store, run_folder: Path) -> None:
    (run_folder / "rank2.json").write_text('{"traceEvents": [')
    record = keep_run(store, run_folder)
    assert (record.errors, record.ranks) == (1, 2)
    assert [p.file for p in store.report(record.run_id).problems if p.severity == "error"] == ["rank2.json"]


def test_nothing_to_analyse_stores_nothing(store: Store, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(InputError, match="no trace"):
        keep_run(store, tmp_path)
    assert store.list_runs() == []


def test_progress_goes_up_to_storing(store: Store, run_folder: Path) -> None:
    told: list[tuple[float, str]] = []
    keep_run(store, run_folder, on_progress=lambda share, stage: told.append((share, stage)))
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert [stage for _, stage in told][-2:] == ["comparing ranks", "storing"]

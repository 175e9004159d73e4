"""Repeating a trace in time: every event again, later, under ids of its own."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rankscope.errors import InputError
from rankscope.testing.corrupt import repeat_in_time
from rankscope.testing.synth import TraceStyle, ddp_run, write_run


def load(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    whole: dict[str, Any] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return whole


def times_of(event: dict[str, Any]) -> tuple[int, int]:
    return round(event["ts"] * 1_000), round(event.get("dur", 0) * 1_000)


@pytest.mark.parametrize("pretty", [True, False])
@pytest.mark.parametrize("torch", ["2.1", "2.4", "2.12"])
def test_events_come_again_one_period_later(tmp_path: Path, torch: Any, pretty: bool) -> None:
    style = TraceStyle(torch=torch, pretty=pretty, file_names="plain", compress=False)
    write_run(ddp_run(ranks=1), tmp_path, style=style)
    source, target = tmp_path / "rank0.json", tmp_path / "big.json"
    period_ns = repeat_in_time(source, target, times=3)
    before, after = load(source), load(target)
    events, count = after["traceEvents"], len(before["traceEvents"])
    assert len(events) == 3 * count
    assert {k: v for k, v in after.items() if k != "traceEvents"} == {
        k: v for k, v in before.items() if k != "traceEvents"
    }
    assert events[:count] == before["traceEvents"]
    for place, event in enumerate(events):
        start, duration = times_of(before["traceEvents"][place % count])
        assert times_of(event) == (start + place // count * period_ns, duration)


def test_ids_and_steps_are_unique_and_still_join(tmp_path: Path) -> None:
    style = TraceStyle(torch="2.12", file_names="plain")
    write_run(ddp_run(ranks=1), tmp_path, style=style)
    repeat_in_time(tmp_path / "rank0.json.gz", tmp_path / "big.json.gz", times=4)
    events = load(tmp_path / "big.json.gz")["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    launches = {e["args"]["correlation"] for e in events if e.get("cat") == "cuda_runtime"}
    correlations = [e["args"]["correlation"] for e in kernels]
    assert len(set(correlations)) == len(correlations)
    assert set(correlations) <= launches
    operators = [e["args"]["External id"] for e in events if e.get("cat") == "cpu_op"]
    assert len(set(operators)) == len(operators)
    sequences = [e["args"]["Seq"] for e in kernels if "Seq" in e["args"]]
    assert len(set(sequences)) == len(sequences) == 4 * 9
    steps = [e["name"] for e in events if e.get("cat") == "user_annotation"]
    steps = [name for name in steps if name.startswith("ProfilerStep#")]
    assert len(set(steps)) == len(steps) == 4 * 3


def test_repeats_do_not_touch(tmp_path: Path) -> None:
    write_run(ddp_run(ranks=1), tmp_path, style=TraceStyle(file_names="plain"))
    period_ns = repeat_in_time(tmp_path / "rank0.json.gz", tmp_path / "big.json", times=2)
    spans = [times_of(e) for e in load(tmp_path / "rank0.json.gz")["traceEvents"] if "dur" in e]
    assert period_ns > max(s + d for s, d in spans) - min(s for s, _ in spans)
    assert period_ns % 1_000_000 == 0


def test_once_is_a_copy(tmp_path: Path) -> None:
    write_run(ddp_run(ranks=1), tmp_path, style=TraceStyle(file_names="plain", compress=False))
    repeat_in_time(tmp_path / "rank0.json", tmp_path / "copy.json", times=1)
    assert (tmp_path / "copy.json").read_bytes() == (tmp_path / "rank0.json").read_bytes()


def test_chunks_tear_no_number_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(ddp_run(ranks=1), tmp_path, style=TraceStyle(file_names="plain", compress=False))
    source = tmp_path / "rank0.json"
    whole, torn = tmp_path / "whole.json", tmp_path / "torn.json"
    repeat_in_time(source, whole, times=3)
    monkeypatch.setattr("rankscope.testing.repeat._CHUNK_BYTES", 97)
    repeat_in_time(source, torn, times=3)
    assert whole.read_bytes() == torn.read_bytes()


def test_brackets_in_the_tail_are_not_the_end(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    tail = (
        '"info": {"groups": [{"ranks": [0, 1]}, {"ranks": [2]}]}, "messages": ["a]", "b"], "traceName": "x]}"'
    )
    source.write_text('{"traceEvents": [{"ts": 5, "dur": 2, "args": {"grid": [8, 1, 1]}}], ' + tail + "}")
    repeat_in_time(source, tmp_path / "b.json", times=2)
    found = load(tmp_path / "b.json")
    # 2 us and 1 ms of distance, in whole milliseconds
    assert [event["ts"] for event in found["traceEvents"]] == [5, 2005]
    assert found["messages"] == ["a]", "b"]


def test_a_file_without_events_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"schemaVersion": 1}')
    with pytest.raises(InputError, match="no traceEvents array"):
        repeat_in_time(tmp_path / "a.json", tmp_path / "b.json", times=2)
    (tmp_path / "c.json").write_text('{"traceEvents": [{"ts": 5, "dur": 2}, {"ts"')
    with pytest.raises(InputError, match="the end of traceEvents"):
        repeat_in_time(tmp_path / "c.json", tmp_path / "b.json", times=2)

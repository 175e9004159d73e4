"""The timeline of a whole run as Parquet: its events lane by lane, and its lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rankscope.model.timeline import Timeline, TimelineLane


def timeline_to_tables(timeline: Timeline) -> tuple[Any, Any]:
    """The events, sorted by lane and start, and the lanes.

    Returns:
        events: lane int32, start_ns int64 (relative to the report's origin, on the common clock),
            duration_ns int64, class uint8 (an `EventClass`), name (text, as a dictionary).
        lanes: lane int32, rank int32, kind, label, first int64 and count int64 (its rows in events).
    """
    counts = np.array([len(lane) for lane in timeline.lanes], np.int64)
    events = pa.table(
        {
            "lane": np.repeat(np.arange(len(counts), dtype=np.int32), counts),
            "start_ns": _join([lane.starts_ns for lane in timeline.lanes], np.int64),
            "duration_ns": _join([lane.durations_ns for lane in timeline.lanes], np.int64),
            "class": _join([lane.classes for lane in timeline.lanes], np.uint8),
            "name": pa.DictionaryArray.from_arrays(
                pa.array(_join([lane.names for lane in timeline.lanes], np.int32)),
                pa.array([_printable(name) for name in timeline.names], pa.string()),
            ),
        }
    )
    lanes = pa.table(
        {
            "lane": np.arange(len(counts), dtype=np.int32),
            "rank": np.array([lane.rank for lane in timeline.lanes], np.int32),
            "kind": [lane.kind for lane in timeline.lanes],
            "label": [_printable(lane.label) for lane in timeline.lanes],
            "first": np.concatenate([[0], np.cumsum(counts)])[:-1].astype(np.int64),
            "count": counts,
        }
    )
    return events, lanes


def timeline_from_tables(events: Any, lanes: Any, origin_ns: int) -> Timeline:  # noqa: ANN401
    """The timeline that `timeline_to_tables` wrote; its arrays are read-only views of the tables."""
    events = events.combine_chunks()
    names = events.column("name").combine_chunks()
    if not isinstance(names, pa.DictionaryArray):
        names = names.dictionary_encode()
    numbers = names.indices.to_numpy().astype(np.int32, copy=False)
    starts, durations, classes = (
        events.column(name).to_numpy() for name in ("start_ns", "duration_ns", "class")
    )
    found = [
        TimelineLane(
            rank=row["rank"],
            label=row["label"],
            kind=row["kind"],
            starts_ns=starts[row["first"] : row["first"] + row["count"]],
            durations_ns=durations[row["first"] : row["first"] + row["count"]],
            names=numbers[row["first"] : row["first"] + row["count"]],
            classes=classes[row["first"] : row["first"] + row["count"]],
        )
        for row in lanes.to_pylist()
    ]
    return Timeline(
        origin_ns=origin_ns,
        step=None,
        start_ns=int(starts.min()) if len(starts) else 0,
        end_ns=int((starts + durations).max()) if len(starts) else 0,
        lanes=tuple(found),
        names=tuple(names.dictionary.to_pylist()),
    )


def _join(parts: list[Any], dtype: Any) -> Any:  # noqa: ANN401
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype, copy=False)


def _printable(text: str) -> str:
    """The text with unpaired surrogates, which UTF-8 cannot hold, spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()

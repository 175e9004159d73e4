from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

from rankscope.model.categories import EventClass
from rankscope.model.timeline import LaneKind, Timeline, TimelineLane
from rankscope.renderers.timeline_columns import encode_timeline


def make_lane(starts: list[int], durations: list[int], kind: LaneKind = "device") -> TimelineLane:
    count = len(starts)
    return TimelineLane(
        rank=3,
        label="GPU 0 stream\n7",
        kind=kind,
        starts_ns=np.array(starts, np.int64),
        durations_ns=np.array(durations, np.int64),
        names=np.arange(count, dtype=np.int32),
        classes=np.full(count, EventClass.COMMUNICATION, np.uint8),
    )


def encode(*lanes: TimelineLane, names: tuple[str, ...] = ()) -> dict[str, Any]:
    timeline = Timeline(origin_ns=7, step=5, start_ns=0, end_ns=90, lanes=lanes, names=names, merged=True)
    tree: dict[str, Any] = json.loads(json.dumps(encode_timeline(timeline)))
    return tree


def decode(text: str, dtype: str) -> list[float]:
    values: list[float] = np.frombuffer(base64.b64decode(text), dtype).tolist()
    return values


def test_no_lanes() -> None:
    assert encode()["lanes"] == []
    assert encode(make_lane([], []))["lanes"][0]["starts"] == ""


def test_columns_come_back_as_they_were() -> None:
    tree = encode(make_lane([-5, 10], [20, 80]), names=("a", "b"))
    assert (tree["step"], tree["start"], tree["end"], tree["merged"], tree["times"]) == (
        5,
        0,
        90,
        True,
        "int32",
    )
    (lane,) = tree["lanes"]
    assert decode(lane["starts"], "<i4") == [-5, 10]
    assert decode(lane["durations"], "<i4") == [20, 80]
    assert decode(lane["names"], "<i4") == [0, 1]
    assert decode(lane["classes"], "u1") == [1, 1]
    assert (lane["rank"], lane["kind"]) == (3, "device")


@pytest.mark.parametrize(
    ("start", "duration", "times", "dtype"),
    [
        (2**31 - 2, 1, "int32", "<i4"),
        (2**31 - 1, 1, "float64", "<f8"),
        (-(2**31), 1, "int32", "<i4"),
        (-(2**31) - 1, 1, "float64", "<f8"),
    ],
)
def test_times_that_do_not_fit_32_bits_take_64(start: int, duration: int, times: str, dtype: str) -> None:
    tree = encode(make_lane([start], [duration]), make_lane([0], [1]))
    assert tree["times"] == times
    assert decode(tree["lanes"][0]["starts"], dtype) == [start]
    assert decode(tree["lanes"][1]["durations"], dtype) == [1]


def test_names_are_inert_and_short() -> None:
    tree = encode(make_lane([0], [1]), names=("\u202egnp.exe", "k" * 10_000))
    assert tree["names"][0] == r"\u202egnp.exe"
    assert len(tree["names"][1]) == 300
    assert tree["lanes"][0]["label"] == r"GPU 0 stream\n7"


def test_every_class_has_a_color_and_the_exposed_lane_its_own() -> None:
    tree = encode(make_lane([0], [1]), make_lane([0], [1], kind="exposed"))
    assert set(tree["parts"]) == {str(int(event_class)) for event_class in EventClass}
    assert tree["parts"][str(int(EventClass.COMMUNICATION))] == "hidden"
    assert [lane["part"] for lane in tree["lanes"]] == [None, "exposed"]

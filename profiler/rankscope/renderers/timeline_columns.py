"""A timeline as compact columns for the script that draws it in the page."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from rankscope.model.categories import EventClass
from rankscope.model.timeline import Timeline, TimelineLane
from rankscope.renderers.escape import make_inert
from rankscope.renderers.palette import ANNOTATION, COMPUTE, EXPOSED, HIDDEN, MEMORY, WAITING

_LONGEST_NAME = 300
_INT32 = np.iinfo(np.int32)

_PART_OF_CLASS = {
    EventClass.COMPUTE: COMPUTE,
    EventClass.COMMUNICATION: HIDDEN,
    EventClass.MEMORY: MEMORY,
    EventClass.SYNC: WAITING,
    EventClass.ANNOTATION: ANNOTATION,
    EventClass.HOST: ANNOTATION,
}


def encode_timeline(timeline: Timeline) -> dict[str, Any]:
    """The timeline in JSON types: base64 columns, little-endian, times in ns relative to its origin.

    Times are int32 where they fit (2.1 s to either side of the origin), else float64. `parts` gives the colour
    of each class by name; what is exposed has a lane and a colour of its own.
    """
    has_short_times = all(_fits_int32(lane) for lane in timeline.lanes)
    times = np.dtype("<i4") if has_short_times else np.dtype("<f8")
    return {
        "step": timeline.step,
        "start": timeline.start_ns,
        "end": timeline.end_ns,
        "merged": timeline.merged,
        "times": "int32" if has_short_times else "float64",
        "names": [make_inert(name, _LONGEST_NAME) for name in timeline.names],
        "parts": {str(int(event_class)): part.slug for event_class, part in _PART_OF_CLASS.items()},
        "lanes": [_encode_lane(lane, times) for lane in timeline.lanes],
    }


def _fits_int32(lane: TimelineLane) -> bool:
    if len(lane) == 0:
        return True
    last = int((lane.starts_ns + lane.durations_ns).max())
    return int(lane.starts_ns.min()) >= int(_INT32.min) and last <= int(_INT32.max)


def _encode_lane(lane: TimelineLane, times: np.dtype[Any]) -> dict[str, Any]:
    return {
        "rank": lane.rank,
        "label": make_inert(lane.label),
        "kind": lane.kind,
        "part": EXPOSED.slug if lane.kind == "exposed" else None,
        "starts": _encode(lane.starts_ns.astype(times)),
        "durations": _encode(lane.durations_ns.astype(times)),
        "names": _encode(lane.names.astype("<i4")),
        "classes": _encode(lane.classes),
    }


def _encode(column: npt.NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(column).tobytes()).decode("ascii")

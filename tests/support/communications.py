"""Communication events of several ranks as literals, in place of traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from rankscope.correlate.device_events import NO_TIME
from rankscope.correlate.run_communications import NO_PEER, NO_SEQUENCE, RunCommunications, Token
from rankscope.model.groups import GroupKey


@dataclass(frozen=True, kw_only=True)
class Event:
    """One communication event; times are ns on the rank's own clock."""

    start: int
    end: int
    op: str = "all_reduce"
    size: int | None = 1_000
    group: tuple[int, ...] = ()
    ordinal: int = 0
    step: int = -1
    seq: int = NO_SEQUENCE
    peer: int = NO_PEER


def comms_of(events_of_rank: Mapping[int, Sequence[Event]]) -> RunCommunications:
    """The events of all ranks; an event without a group is in that of all ranks."""
    everybody = tuple(sorted(events_of_rank))
    tokens: dict[Token, int] = {}
    groups: dict[GroupKey, int] = {}
    rows = []
    for part, (rank, events) in enumerate(sorted(events_of_rank.items())):
        for index, e in enumerate(sorted(events, key=lambda e: e.start)):
            token = tokens.setdefault(Token(e.op, "float32", e.size), len(tokens))
            group = groups.setdefault(GroupKey(e.group or everybody, e.ordinal), len(groups))
            rows.append(
                (rank, e.start, e.end, NO_TIME, token, group, e.step, e.seq, NO_SEQUENCE, e.peer, part, index)
            )
    names = [f.name for f in fields(RunCommunications) if f.name not in ("tokens", "groups")]
    columns = dict(zip(names, np.array(rows, np.int64).reshape(-1, len(names)).T, strict=True))
    return RunCommunications(**columns, tokens=tuple(tokens), groups=tuple(groups))

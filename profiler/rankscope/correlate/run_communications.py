"""The communication events of all ranks in one table of columns: what matching, clocks and replay work on."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankscope.correlate.communications import Communications
from rankscope.correlate.device_events import NO_TIME
from rankscope.correlate.launches import NO_ROW
from rankscope.model.categories import POINT_TO_POINT_OPS, SYNCHRONISING_OPS
from rankscope.model.groups import GroupKey
from rankscope.model.intervals import Bool, Int64
from rankscope.model.table import NO_ID, TraceTable

NO_SEQUENCE = -1
NO_PEER = -1
_SEQUENCE_POSITION = 1
_PEERS_IN_NAME = re.compile(r"(?:send|recv) (\d+)(?:->|<-)(\d+)")


@dataclass(frozen=True, slots=True, order=True)
class Token:
    """What must be equal on all ranks of one collective: operation, element type and size (None: unknown)."""

    op: str
    dtype: str | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommunications:
    """Communication events of a run, sorted by rank and start; times are on each rank's own clock.

    Attributes:
        rank: int64[n], global rank.
        start_ns, end_ns: int64[n], absolute nanoseconds.
        launch_ns: int64[n], when the host asked for it, NO_TIME where the trace does not say.
        token: int64[n], index into `tokens`.
        group: int64[n], index into `groups`.
        step: int64[n], step number, -1 outside steps.
        seq: int64[n], `Seq` of the kernel, NO_SEQUENCE if absent.
        input_sequence: int64[n], `Concrete Inputs[1]` of the host row where numeric.
        peer: int64[n], global rank at the other end of a send or recv, NO_PEER if unknown.
        part, index: int64[n], which `Communications` an event is from and its place there.
        tokens, groups: the distinct ones.
    """

    rank: Int64
    start_ns: Int64
    end_ns: Int64
    launch_ns: Int64
    token: Int64
    group: Int64
    step: Int64
    seq: Int64
    input_sequence: Int64
    peer: Int64
    part: Int64
    index: Int64
    tokens: tuple[Token, ...]
    groups: tuple[GroupKey, ...]

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks with communication events, in order."""
        return tuple(int(r) for r in np.unique(self.rank))

    def is_op(self, ops: Sequence[str]) -> Bool:
        """bool[n]: whether each event's operation is one of `ops`."""
        wanted = np.array([token.op in ops for token in self.tokens], bool)
        return wanted[self.token] if len(self.tokens) else np.zeros(len(self), bool)

    @property
    def is_synchronising(self) -> Bool:
        """bool[n]: operations that end on no rank before all have arrived."""
        return self.is_op(SYNCHRONISING_OPS)

    @property
    def is_point_to_point(self) -> Bool:
        """bool[n]: sends and receives."""
        return self.is_op(POINT_TO_POINT_OPS)


def join_ranks(parts: Sequence[Communications], steps: Sequence[Int64]) -> RunCommunications:
    """One table of all events.

    Args:
        parts: communications of every window and device.
        steps: for each of those the step number of each event.
    """
    tokens: dict[Token, int] = {}
    groups: dict[GroupKey, int] = {}
    labels: dict[tuple[tuple[int, ...], int], GroupKey] = {}
    columns: dict[str, list[Int64]] = {key: [] for key in _COLUMNS}
    for number, (part, step) in enumerate(zip(parts, steps, strict=True)):
        for key, values in _columns_of(part, step, number, tokens, groups, labels).items():
            columns[key].append(values)
    joined = {key: np.concatenate(v) if v else np.empty(0, np.int64) for key, v in columns.items()}
    order = np.lexsort((joined["start_ns"], joined["rank"]))
    return RunCommunications(
        **{key: column[order] for key, column in joined.items()},
        tokens=tuple(tokens),
        groups=tuple(groups),
    )


_COLUMNS = (
    "rank",
    "start_ns",
    "end_ns",
    "launch_ns",
    "token",
    "group",
    "step",
    "seq",
    "input_sequence",
    "peer",
    "part",
    "index",
)


def _columns_of(
    part: Communications,
    step: Int64,
    number: int,
    tokens: dict[Token, int],
    groups: dict[GroupKey, int],
    labels: dict[tuple[tuple[int, ...], int], GroupKey],
) -> dict[str, Int64]:
    table, rows = part.events.table, part.rows
    token_of, group_of = [], []
    for kind in part.kinds:
        token_of.append(tokens.setdefault(Token(kind.op, kind.dtype, kind.size_bytes), len(tokens)))
        key = labels.setdefault(kind.group.identity, kind.group)  # one label, though names may differ by rank
        group_of.append(groups.setdefault(key, len(groups)))
    kinds = part.kind
    return {
        "rank": np.full(len(rows), part.events.window.rank, np.int64),
        "start_ns": table.start_ns[rows],
        "end_ns": table.ends_of(rows),
        "launch_ns": np.where(
            part.launch_row == NO_ROW, NO_TIME, table.start_ns[np.maximum(part.launch_row, 0)]
        ),
        "token": np.array(token_of, np.int64)[kinds] if token_of else np.empty(0, np.int64),
        "group": np.array(group_of, np.int64)[kinds] if group_of else np.empty(0, np.int64),
        "step": step,
        "seq": _argument(part, table.arguments.sequence),
        "input_sequence": _input_sequences(part),
        "peer": _peers(part),
        "part": np.full(len(rows), number, np.int64),
        "index": np.arange(len(rows), dtype=np.int64),
    }


def _argument(part: Communications, column: Int64) -> Int64:
    """A column of the arguments for each event, NO_ID where absent."""
    known = part.argument_row >= 0
    if len(column) == 0:
        return np.full(len(part), NO_ID, np.int64)
    values: Int64 = np.where(known, column[np.maximum(part.argument_row, 0)], NO_ID).astype(np.int64)
    return values


def _input_sequences(part: Communications) -> Int64:
    """The number at place 1 of `Concrete Inputs` of each event's host row, NO_SEQUENCE if none.

    The first number of the list is the RANK in many versions: only the very place counts.
    """
    table = part.events.table
    arguments = table.arguments
    result = np.full(len(part), NO_SEQUENCE, np.int64)
    if len(arguments.row) == 0:
        return result
    number_of_text = np.full(len(arguments.texts) + 1, NO_SEQUENCE, np.int64)
    for text in np.unique(arguments.inputs[arguments.inputs >= 0]).tolist():
        number_of_text[text] = _sequence_in(arguments.texts[text])
    asked = np.flatnonzero(part.host_row != NO_ROW)
    place = np.minimum(np.searchsorted(arguments.row, part.host_row[asked]), len(arguments.row) - 1)
    found = arguments.row[place] == part.host_row[asked]
    result[asked[found]] = number_of_text[arguments.inputs[place[found]]]
    return result


def _sequence_in(inputs: str) -> int:
    try:
        values = json.loads(inputs)
        text = values[_SEQUENCE_POSITION]
    except (ValueError, IndexError, TypeError, KeyError):
        return NO_SEQUENCE
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 18 else NO_SEQUENCE


def _peers(part: Communications) -> Int64:
    """Global rank at the other end of each send or recv, NO_PEER where unknown or not point-to-point."""
    table = part.events.table
    peers = np.full(len(part), NO_PEER, np.int64)
    ops = np.array([kind.op for kind in part.kinds])
    for op, column in (("send", table.arguments.destination), ("recv", table.arguments.source)):
        mine = np.flatnonzero(np.isin(part.kind, np.flatnonzero(ops == op)))
        if len(mine):
            said = _argument(part, column)[mine]  # `Src Rank` and `Dst Rank` are global ranks
            local = _peers_in_annotations(table, part, mine)
            peers[mine] = [
                int(known) if known != NO_ID else _global(part, int(i), int(p))
                for i, known, p in zip(mine, said, local, strict=True)
            ]
    return peers


def _peers_in_annotations(table: TraceTable, part: Communications, mine: Int64) -> Int64:
    """Peers within their group, from names such as `nccl:recv 1<-0`: the second number is the other end."""
    names = [table.names[table.name[row]] if row != NO_ROW else "" for row in part.annotation_row[mine]]
    matches = [_PEERS_IN_NAME.search(name) for name in names]
    return np.array([int(m.group(2)) if m else NO_PEER for m in matches], np.int64)


def _global(part: Communications, index: int, local: int) -> int:
    """Global rank of a peer that is numbered within its group; of two members the other one, if it is not numbered."""
    ranks = part.kinds[part.kind[index]].group.ranks
    if local < 0:
        mine = part.events.window.rank
        others = [rank for rank in ranks if rank != mine]
        return others[0] if len(ranks) == 2 and len(others) == 1 else NO_PEER
    return ranks[local] if local < len(ranks) else NO_PEER

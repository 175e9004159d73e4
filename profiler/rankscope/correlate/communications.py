"""What each communication event of a rank is: operation, dtype, size, group and the host row that asked for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from rankscope.correlate.device_events import DeviceEvents
from rankscope.correlate.launches import NO_ROW, find_enclosing, find_launches
from rankscope.correlate.window_groups import WindowGroups
from rankscope.model.categories import (
    COALESCED_OP,
    UNKNOWN_OP,
    Category,
    op_of_collective_name,
    op_of_kernel_name,
)
from rankscope.model.collective import dtype_name, element_size_bytes, sized_elements
from rankscope.model.groups import GroupKey
from rankscope.model.intervals import Int64
from rankscope.model.table import NO_ID, TraceTable

_PARAM_COMMS = frozenset({"record_param_comms"})
_NCCL_ANNOTATION = re.compile(r"^(?:nccl|rccl|xccl|hccl):")
_NO_ARGUMENTS = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicationKind:
    """What several events have in common.

    Attributes:
        op: canonical operation, "unknown" if nothing says it.
        dtype: PyTorch's name of the element type, or None.
        size_bytes: the collective's size S as docs/metrics.md defines it, or None.
        group: the process group.
        coalesced: whether the event carries several collectives in one launch.
    """

    op: str
    dtype: str | None
    size_bytes: int | None
    group: GroupKey
    coalesced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Communications:
    """Communication events of one window on one device, in order of start.

    Attributes:
        events: the device's events.
        rows: int64[k], rows of the table.
        kind: int64[k], index into `kinds`.
        kinds: the distinct kinds.
        launch_row: int64[k], host row that launched the event (on a CPU-only run the c10d operator that put it
            into the queue); NO_ROW if the trace holds none.
        host_row: int64[k], `record_param_comms` (NCCL) row that asked for it; NO_ROW if none.
        argument_row: int64[k], index into the table's `arguments` that describes it; -1 if none.
        annotation_row: int64[k], the `nccl:<op>` annotation that holds its launch; NO_ROW if none.
    """

    events: DeviceEvents
    rows: Int64
    kind: Int64
    kinds: tuple[CommunicationKind, ...]
    launch_row: Int64
    host_row: Int64
    argument_row: Int64
    annotation_row: Int64

    def __len__(self) -> int:
        return len(self.rows)


def resolve_communications(events: DeviceEvents, world_size: int | None) -> Communications:
    """The communication events of one device with all that the trace says of them.

    The operation is, in this order: `Collective name` of the kernel, of the `record_param_comms` row with its
    External id, of the one that holds its launch, the `nccl:<op>` annotation that holds its launch on the same
    thread, the kernel's name.

    Args:
        events: one window on one device.
        world_size: ranks of the job, for traces that name no groups.
    """
    table, rows = events.table, events.communication
    launch_row = find_launches(table, rows) if events.device != "cpu" else find_enqueues(table, rows)
    argument_row, host_row = _find_arguments(table, rows, launch_row)
    annotation = _find_annotations(table, launch_row)
    kind, kinds = _find_kinds(events, argument_row, annotation, WindowGroups(events.window, world_size))
    return Communications(
        events=events,
        rows=rows,
        kind=kind,
        kinds=kinds,
        launch_row=launch_row,
        host_row=host_row,
        argument_row=argument_row,
        annotation_row=annotation,
    )


def find_enqueues(table: TraceTable, rows: Int64) -> Int64:
    """The c10d operator that put each gloo or MPI event into the queue; NO_ROW if the trace does not tell.

    Workers take from the queue in order, so the n-th operator of a kind belongs to the n-th event of it; where one
    side has more, the last ones belong together.
    """
    found = np.full(len(rows), NO_ROW, np.int64)
    ops = np.array([op_of_collective_name(name) if name.startswith("c10d::") else "" for name in table.names])
    host = table.rows_of_category(Category.CPU_OP)
    host = host[ops[table.name[host]] != ""] if len(host) else host
    kinds = np.array([op_of_collective_name(name) for name in table.names])
    for op in np.unique(ops[table.name[host]]).tolist():
        asked = host[ops[table.name[host]] == op]
        mine = np.flatnonzero(kinds[table.name[rows]] == op)
        count = min(len(asked), len(mine))
        if count:
            pairs = asked[len(asked) - count :], mine[len(mine) - count :]
            in_order = table.start_ns[pairs[0]] <= table.start_ns[rows[pairs[1]]]
            found[pairs[1][in_order]] = pairs[0][in_order]
    return found


def _find_arguments(table: TraceTable, rows: Int64, launch_row: Int64) -> tuple[Int64, Int64]:
    """(index into `arguments`, host row) of each communication event."""
    arguments = table.arguments
    own = _argument_index(table, rows)
    has_collective = np.zeros(len(rows), bool)
    has_collective[own >= 0] = arguments.collective[own[own >= 0]] != NO_ID
    is_cpu = table.category[rows] == Category.USER_ANNOTATION
    comms = _asking_rows(table)
    linked = _by_external_id(table, comms, rows)
    enclosing = find_enclosing(table, comms, np.where(is_cpu, NO_ROW, launch_row))
    host_row = np.where(linked != NO_ROW, linked, enclosing)
    from_host = np.where(host_row == NO_ROW, _NO_ARGUMENTS, _argument_index(table, np.maximum(host_row, 0)))
    argument_row: Int64 = np.where(has_collective | is_cpu, own, from_host)
    return argument_row, host_row


def _argument_index(table: TraceTable, rows: Int64) -> Int64:
    """Index into `arguments` of each row, -1 where it carries none."""
    known = table.arguments.row
    if len(known) == 0:
        return np.full(len(rows), _NO_ARGUMENTS, np.int64)
    index = np.minimum(np.searchsorted(known, rows), len(known) - 1)
    found: Int64 = np.where(known[index] == rows, index, _NO_ARGUMENTS)
    return found


def _asking_rows(table: TraceTable) -> Int64:
    """`record_param_comms` rows that ask for a transfer: `wait` is one too, and is left out."""
    rows = table.rows_named(_PARAM_COMMS)
    index = _argument_index(table, rows)
    waits = np.array([table.arguments.texts[t] in ("wait",) for t in range(len(table.arguments.texts))], bool)
    if not waits.any():
        return rows
    collective = np.where(index >= 0, table.arguments.collective[np.maximum(index, 0)], NO_ID)
    asking: Int64 = rows[~((collective != NO_ID) & waits[np.maximum(collective, 0)])]
    return asking


def _by_external_id(table: TraceTable, comms: Int64, rows: Int64) -> Int64:
    """The `record_param_comms` row with each row's External id, NO_ROW if there is none or several."""
    found = np.full(len(rows), NO_ROW, np.int64)
    comms = comms[table.external_id[comms] > 0]
    if len(comms) == 0:
        return found
    order = comms[np.argsort(table.external_id[comms], kind="stable")]
    ids, wanted = table.external_id[order], table.external_id[rows]
    first = np.searchsorted(ids, wanted, side="left")
    once = (np.searchsorted(ids, wanted, side="right") - first == 1) & (wanted > 0)
    found[once] = order[first[once]]
    return found


def _find_annotations(table: TraceTable, launch_row: Int64) -> Int64:
    """The `nccl:<op>` annotation that holds each launch on its thread, NO_ROW if none."""
    matching = np.array([_NCCL_ANNOTATION.match(name) is not None for name in table.names], bool)
    if not matching.any():
        return np.full(len(launch_row), NO_ROW, np.int64)
    holders = np.flatnonzero(matching[table.name] & (table.category == Category.USER_ANNOTATION))
    return find_enclosing(table, holders, launch_row)


def _find_kinds(
    events: DeviceEvents, argument_row: Int64, annotation: Int64, groups: WindowGroups
) -> tuple[Int64, tuple[CommunicationKind, ...]]:
    """Distinct kinds, each worked out once: index of each event's kind, and the kinds."""
    table, rows = events.table, events.communication
    if len(rows) == 0:
        return np.empty(0, np.int64), ()
    arguments = table.arguments
    known = argument_row >= 0
    at = np.maximum(argument_row, 0)
    columns = [table.name[rows], np.where(annotation == NO_ROW, NO_ID, table.name[np.maximum(annotation, 0)])]
    for values in (
        arguments.collective,
        arguments.dtype,
        arguments.in_elements,
        arguments.out_elements,
        arguments.group_name,
        arguments.group_description,
        arguments.group_ranks,
        arguments.group_size,
    ):
        columns.append(np.where(known, values[at], NO_ID) if len(values) else np.full(len(rows), NO_ID))
    keys = np.stack(columns, axis=1).astype(np.int64)
    distinct, kind = np.unique(keys, axis=0, return_inverse=True)
    return kind.reshape(-1), tuple(_kind(table, key.tolist(), groups) for key in distinct)


def _kind(table: TraceTable, key: list[int], groups: WindowGroups) -> CommunicationKind:
    name, annotation, collective, dtype_text, n_in, n_out, group_name, description, ranks, size = key
    arguments = table.arguments
    op = _op(
        arguments.text(collective),
        None if annotation == NO_ID else table.names[annotation],
        table.names[name],
    )
    dtype = arguments.text(dtype_text)
    elements = sized_elements(op, n_in if n_in >= 0 else None, n_out if n_out >= 0 else None)
    element_size = element_size_bytes(dtype)
    return CommunicationKind(
        op=op,
        dtype=dtype_name(dtype),
        size_bytes=elements * element_size if elements is not None and element_size is not None else None,
        group=groups.find(
            arguments.text(group_name),
            arguments.text(description),
            arguments.text(ranks),
            size if size > 0 else None,
        ),
        coalesced=op == COALESCED_OP or "coalesced" in (arguments.text(collective) or ""),
    )


def _op(collective: str | None, annotation: str | None, kernel: str) -> str:
    for text in (collective, annotation):
        if text is not None:
            op = op_of_collective_name(text)
            if op != UNKNOWN_OP:
                return op
    if re.match(r"^(?:gloo|mpi|ucc):", kernel):
        return op_of_collective_name(kernel)
    return op_of_kernel_name(kernel)

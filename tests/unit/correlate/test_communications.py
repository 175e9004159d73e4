"""What each communication event is: operation, size, dtype and group, from the source that says it best."""

from __future__ import annotations

from typing import Any

import pytest

from rankscope.correlate.communications import CommunicationKind, Communications, resolve_communications
from rankscope.correlate.device_events import device_events
from rankscope.correlate.launches import NO_ROW
from support.reading import run_of
from support.trace_text import (
    ALL_REDUCE,
    Row,
    annotation,
    collective,
    cpu_op,
    gloo,
    kernel,
    launch,
    nccl,
    param_comms,
)

GENERIC = "ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def resolved(*events: Row, world_size: int = 2, groups: list[Any] | None = None) -> Communications:
    info: dict[str, Any] = {"backend": "nccl", "rank": 0, "world_size": world_size}
    if groups is not None:
        info["pg_config"] = groups
    run = run_of({0: events}, metadata={"distributedInfo": info})
    (found,) = device_events(run)
    return resolve_communications(found, run.world_size)


def kind_of(*events: Row, **more: Any) -> CommunicationKind:
    """The kind of the only communication event."""
    found = resolved(*events, **more)
    assert len(found) == 1
    return found.kinds[int(found.kind[0])]


def test_nothing() -> None:
    found = resolved(kernel("gemm", 0, 1))
    assert len(found) == 0
    assert found.kinds == ()
    assert found.launch_row.tolist() == found.host_row.tolist() == found.argument_row.tolist() == []


# The same kernel with all five sources, each of which says another operation.
OWN = collective("allreduce", 8, 8)
BY_ID = param_comms(100, 5, collective("broadcast", 8, 8), external_id=55)
AROUND = param_comms(8, 10, collective("_reduce_oop", 8, 8), external_id=66)
NOTE = annotation("nccl:_all_gather_base", 7, 20)
LAUNCH = launch(1, 10)
REDUCE_SCATTER = "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def kernel_with(args: dict[str, Any] | None = None) -> Row:
    return nccl(50, 5, name=REDUCE_SCATTER, correlation=1, args=args)


@pytest.mark.parametrize(
    ("events", "op"),
    [
        ([kernel_with({**OWN, "External id": 55}), BY_ID, AROUND, NOTE, LAUNCH], "all_reduce"),
        ([kernel_with({"External id": 55}), BY_ID, AROUND, NOTE, LAUNCH], "broadcast"),
        ([kernel_with(), BY_ID, AROUND, NOTE, LAUNCH], "reduce"),
        ([kernel_with({"External id": 77}), BY_ID, AROUND, NOTE, LAUNCH], "reduce"),
        ([kernel_with(), BY_ID, NOTE, LAUNCH], "all_gather"),
        ([kernel_with(), BY_ID, NOTE], "reduce_scatter"),
        ([kernel_with()], "reduce_scatter"),
    ],
    ids=["Collective name", "External id", "holds the launch", "id of nobody", "nccl: annotation", "no launch", "name"],
)  # fmt: skip
def test_op_comes_from_the_best_source_there_is(events: list[Row], op: str) -> None:
    assert kind_of(*events).op == op


def test_an_id_of_two_host_rows_tells_nothing() -> None:
    twin = param_comms(200, 5, collective("allgather", 8, 8), external_id=55)
    assert kind_of(kernel_with({"External id": 55}), BY_ID, twin, AROUND, LAUNCH).op == "reduce"


def test_a_wait_asks_for_nothing() -> None:
    """FACTS: a `wait` is a record_param_comms too, with 0 elements and group size 1."""
    wait = param_comms(9, 3, collective("wait", 0, 0, size=1), external_id=55)
    kind = kind_of(kernel_with({"External id": 55}), wait, AROUND, LAUNCH)
    assert (kind.op, kind.size_bytes) == ("reduce", 32)


def test_an_annotation_counts_on_the_thread_of_the_launch_alone() -> None:
    elsewhere = annotation("nccl:all_gather", 7, 20, thread=9)
    assert kind_of(kernel_with(), elsewhere, LAUNCH).op == "reduce_scatter"


def test_an_operation_that_nobody_knows_leads_to_the_next_source() -> None:
    odd = collective("something_new", 8, 8)
    assert kind_of(kernel_with(odd), NOTE, LAUNCH).op == "all_gather"
    assert kind_of(kernel_with(odd)).op == "reduce_scatter"


@pytest.mark.parametrize(
    ("name", "op"), [(GENERIC, "unknown"), (SEND_RECV, "send_recv"), (ALL_REDUCE, "all_reduce")]
)
def test_name_of_the_kernel_alone(name: str, op: str) -> None:
    """RCCL calls every kernel Generic; all-to-all uses SendRecv too, so that is no send."""
    assert kind_of(nccl(0, 5, name=name)).op == op


@pytest.mark.parametrize(
    ("said", "op"),
    [("all_to_all", "all_to_all"), ("send", "send"), ("recv", "recv"), ("recvAnySource", "recv")],
)
def test_a_send_recv_kernel_is_what_it_is_linked_to(said: str, op: str) -> None:
    assert kind_of(nccl(0, 5, name=SEND_RECV, args=collective(said, 8, 8))).op == op


def test_rccl_generic_with_a_collective_name() -> None:
    assert kind_of(nccl(0, 5, name=GENERIC, args=collective("_allgather_base", 8, 64))).op == "all_gather"


def test_coalesced() -> None:
    """A coalesced launch carries no group, size or op; a coalesced collective carries its own."""
    note = annotation("nccl:coalesced", 7, 20)
    kind = kind_of(nccl(50, 5, name=GENERIC, correlation=1), note, LAUNCH)
    assert (kind.op, kind.coalesced, kind.size_bytes) == ("coalesced", True, None)
    kind = kind_of(nccl(50, 5, args=collective("allreduce_coalesced", 8, 8)))
    assert (kind.op, kind.coalesced, kind.size_bytes) == ("all_reduce", True, 32)
    assert not kind_of(nccl(50, 5, args=collective("allreduce", 8, 8))).coalesced


@pytest.mark.parametrize(
    ("args", "size_bytes"),
    [
        (collective("allreduce", 10, 10), 40),
        (collective("allreduce", 10, 10, dtype="BFloat16"), 20),
        (collective("_allgather_base", 10, 80), 320),  # what comes out
        (collective("_reduce_scatter_base", 80, 10), 320),  # the total that goes in
        (collective("broadcast", 10, 10, dtype="Long"), 80),
        (collective("barrier", 0, 0, dtype="Char"), 0),
        (collective("allreduce", None, 10), None),
        (collective("allreduce", 10, 10, dtype=None), None),
        (collective("allreduce", 10, 10, dtype="Posit16"), None),
    ],
)
def test_size_in_bytes(args: dict[str, Any], size_bytes: int | None) -> None:
    assert kind_of(nccl(0, 5, args=args)).size_bytes == size_bytes


@pytest.mark.parametrize("elements", [(1 << 40) + 1, 1 << 62, 10**30])
def test_more_elements_than_a_device_holds_are_no_size(elements: int) -> None:
    assert kind_of(nccl(0, 5, args=collective("allreduce", elements, elements))).size_bytes is None
    assert kind_of(gloo("all_reduce", 0, 5, dims=[[elements]])).size_bytes is None


def test_size_and_dtype_of_the_host_row() -> None:
    kind = kind_of(kernel_with(), AROUND, LAUNCH)
    assert (kind.size_bytes, kind.dtype) == (32, "float32")


def test_size_of_a_gloo_operation_is_in_its_dims() -> None:
    kind = kind_of(gloo("all_reduce", 0, 5, dims=[[512, 512], [512]]), cpu_op("aten::mm", 0, 1))
    assert (kind.op, kind.dtype, kind.size_bytes) == ("all_reduce", "float32", 4 * 262_656)
    assert kind_of(gloo("all_reduce", 0, 5), cpu_op("aten::mm", 0, 1)).size_bytes is None


def test_events_of_one_kind_share_it_and_keep_their_order() -> None:
    found = resolved(
        nccl(9, 1, args=collective("allreduce", 8, 8)),
        nccl(5, 1, args=collective("broadcast", 8, 8)),
        nccl(1, 1, args=collective("allreduce", 8, 8)),
    )
    assert [found.kinds[k].op for k in found.kind] == ["all_reduce", "broadcast", "all_reduce"]
    assert len(found.kinds) == 2


def test_rows_behind_an_event() -> None:
    found = resolved(kernel_with(), AROUND, NOTE, LAUNCH, nccl(90, 1))
    table = found.events.table
    names = [[table.names[table.name[row]] if row != NO_ROW else None for row in rows] for rows in
             (found.launch_row, found.host_row)]  # fmt: skip
    assert names == [["cudaLaunchKernel", None], ["record_param_comms", None]]


DEFAULT = {"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1, 2, 3]}
PAIR = {"pg_name": "1", "pg_desc": "tp", "ranks": [0, 1]}
SECOND_PAIR = {"pg_name": "2", "pg_desc": "tp2", "ranks": [1, 0]}
GROUPS = [DEFAULT, PAIR, SECOND_PAIR]


@pytest.mark.parametrize(
    ("said", "ranks", "ordinal", "label"),
    [
        ({"group": "0", "ranks": "[0, 1, 2, 3]"}, (0, 1, 2, 3), 0, "default_pg [0-3]"),
        ({"group": "1", "ranks": "[0, 1]", "size": 2}, (0, 1), 0, "tp [0-1]"),
        ({"group": "2", "ranks": "[0, 1]", "size": 2}, (0, 1), 1, "tp2 [0-1] #2"),
        (
            {"group": "0", "ranks": "[0, 1, ...", "size": 4},
            (0, 1, 2, 3),
            0,
            "default_pg [0-3]",
        ),  # cut: pg_config
        ({"group": "0"}, (0, 1, 2, 3), 0, "default_pg [0-3]"),
        ({"group": "9", "ranks": "[2, 3]", "description": "dp"}, (2, 3), 0, "dp [2-3]"),
        ({"group": "9", "ranks": [2, 3]}, (2, 3), 0, "[2-3]"),
        ({"ranks": "[1, 0]"}, (0, 1), 0, "tp [0-1]"),
        ({"group": "9", "ranks": "[0, 1]"}, (0, 1), 2, "[0-1] #3"),
        ({"group": "0", "ranks": "[0, 1]", "size": 2}, (0, 1), 0, "tp [0-1]"),  # another group of that name
        ({"group": "9", "ranks": "[0, 1, ..."}, (), 0, "unknown group"),
        ({"group": "9"}, (), 0, "unknown group"),
        ({}, (), 0, "unknown group"),  # three groups: which one is not said
        ({"ranks": "[" + "9" * 5000 + "]"}, (), 0, "unknown group"),
    ],
)
def test_group(said: dict[str, Any], ranks: tuple[int, ...], ordinal: int, label: str) -> None:
    group = kind_of(nccl(0, 5, args=collective("allreduce", 8, 8, **said)), world_size=4, groups=GROUPS).group
    assert (group.ranks, group.ordinal, group.label) == (ranks, ordinal, label)


def test_where_there_is_one_group_of_all_ranks_it_is_that() -> None:
    """No gloo row carries a group."""
    alone = {"pg_name": "5", "pg_desc": "", "ranks": [0]}
    rows = [gloo("all_reduce", 0, 5), cpu_op("aten::mm", 0, 1)]
    assert kind_of(*rows, world_size=4, groups=[DEFAULT]).group.ranks == (0, 1, 2, 3)
    assert kind_of(*rows, world_size=4, groups=[DEFAULT, alone]).group.ranks == (0, 1, 2, 3)
    assert kind_of(*rows, world_size=4, groups=[PAIR]).group.ranks == ()
    assert kind_of(*rows, world_size=4).group.ranks == ()
    assert kind_of(*rows, world_size=1).group.ranks == (0,)


def test_a_group_with_a_known_name_and_no_ranks_is_unknown() -> None:
    empty = {"pg_name": "0", "pg_desc": "default_pg", "ranks": []}
    args = collective("allreduce", 8, 8, group="0", size=4)
    assert kind_of(nccl(0, 5, args=args), world_size=4, groups=[empty]).group.ranks == ()

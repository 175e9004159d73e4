"""Tiny programs in which the time of every row is worked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rankscope.errors import UsageError
from rankscope.testing.program import (
    COMMUNICATION,
    COMPUTE,
    Collective,
    Compute,
    Copy,
    DeviceSync,
    Group,
    HostWork,
    Item,
    PointToPoint,
    Region,
    StreamWait,
    step,
)
from rankscope.testing.schedule import lay_out
from rankscope.testing.timeline import RankTimeline

WORLD = Group(name="0", ranks=(0, 1))
ALONE = Group(name="0", ranks=(0,))


def reduce_of(transfer_ns: int, *, jitter_ns: int = 0, after: tuple[str, ...] = (COMPUTE,)) -> Collective:
    return Collective(
        group="0",
        op="all_reduce",
        elements=8,
        transfer_ns=transfer_ns,
        end_jitter_ns=jitter_ns,
        host_overhead_ns=10_000,
        after=after,
    )


def kernel(duration_ns: int) -> Compute:
    return Compute(name="gemm", duration_ns=duration_ns)


def device_times(rows: RankTimeline) -> list[tuple[str, int, int]]:
    return [(span.stream, span.start_ns, span.end_ns) for span in rows.device]


def host_times(rows: RankTimeline) -> list[tuple[str, str, int, int]]:
    return [(span.kind, span.name, span.start_ns, span.end_ns) for span in rows.host]


def test_a_kernel_starts_when_its_launch_row_ends() -> None:
    rows = lay_out({0: (kernel(20_000), kernel(30_000))}, [ALONE]).ranks[0]
    # Each operator takes 6 us, its launch row from 1 to 5 us; the second kernel waits for the first.
    assert host_times(rows) == [
        ("operator", "aten::mm", 0, 6_000),
        ("launch", "", 1_000, 5_000),
        ("operator", "aten::mm", 6_000, 12_000),
        ("launch", "", 7_000, 11_000),
    ]
    assert device_times(rows) == [(COMPUTE, 5_000, 25_000), (COMPUTE, 25_000, 55_000)]


def test_a_slow_host_leaves_its_stream_idle() -> None:
    program = (kernel(20_000), HostWork(duration_ns=50_000), kernel(30_000))
    rows = lay_out({0: program}, [ALONE]).ranks[0]
    # 6 + 50 us of host, then the launch ends 5 us later.
    assert device_times(rows) == [(COMPUTE, 5_000, 25_000), (COMPUTE, 61_000, 91_000)]
    assert [name for _, name, _, _ in host_times(rows) if name not in ("aten::mm", "")] == []


def test_rows_round_a_collective() -> None:
    rows = lay_out({0: (reduce_of(7_000),)}, [ALONE]).ranks[0]
    # 1 us to record_param_comms, 10 us overhead to the launch, 4 us launch, and 1 us for each end behind it.
    assert host_times(rows) == [
        ("operator", "c10d::allreduce_", 0, 18_000),
        ("record", "record_param_comms", 1_000, 17_000),
        ("annotation", "nccl:all_reduce", 2_000, 16_000),
        ("launch", "", 11_000, 15_000),
    ]
    assert device_times(rows) == [(COMMUNICATION, 15_000, 22_000)]


def test_rows_of_a_bucket_with_two_parameters() -> None:
    bucket = Collective(
        group="0",
        op="all_reduce",
        elements=30,
        transfer_ns=7_000,
        parameters=(10, 20),
        host_overhead_ns=10_000,
    )
    rows = lay_out({0: (bucket,)}, [ALONE]).ranks[0]
    evaluate = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    assert host_times(rows) == [
        ("operator", evaluate, 0, 3_000),
        ("operator", "torch::autograd::AccumulateGrad", 1_000, 2_000),
        ("operator", evaluate, 3_000, 24_000),
        ("operator", "torch::autograd::AccumulateGrad", 4_000, 5_000),
        ("operator", "c10d::allreduce_", 5_000, 23_000),
        ("record", "record_param_comms", 6_000, 22_000),
        ("annotation", "nccl:all_reduce", 7_000, 21_000),
        ("launch", "", 16_000, 20_000),
    ]
    inner = [span.shape for span in rows.host if span.name == "torch::autograd::AccumulateGrad"]
    assert inner == [(10,), (20,)]


def test_a_collective_ends_on_all_ranks_after_the_last_arrival() -> None:
    programs: dict[int, tuple[Item, ...]] = {
        0: (kernel(100_000), reduce_of(40_000)),
        1: (kernel(160_000), reduce_of(40_000, jitter_ns=3_000)),
    }
    ranks = lay_out(programs, [WORLD]).ranks
    # Compute ends at 5 + 100 and 5 + 160 us; the collective ends 40 us after 165, on rank 1 another 3 us later.
    assert device_times(ranks[0])[1] == (COMMUNICATION, 105_000, 205_000)
    assert device_times(ranks[1])[1] == (COMMUNICATION, 165_000, 208_000)


def test_the_order_of_ranks_changes_nothing() -> None:
    programs: dict[int, tuple[Item, ...]] = {
        0: (kernel(100_000), reduce_of(40_000), DeviceSync(), kernel(9_000)),
        1: (kernel(160_000), reduce_of(40_000), DeviceSync(), kernel(9_000)),
    }
    backwards = dict(reversed(programs.items()))
    assert lay_out(programs, [WORLD]).ranks == lay_out(backwards, [WORLD]).ranks


def test_a_stream_is_serial_and_compute_goes_on_beside_it() -> None:
    program = (kernel(50_000), reduce_of(100_000), kernel(30_000), reduce_of(20_000), kernel(10_000))
    rows = lay_out({0: program}, [ALONE]).ranks[0]
    assert device_times(rows) == [
        (COMPUTE, 5_000, 55_000),
        (COMMUNICATION, 55_000, 155_000),
        (COMPUTE, 55_000, 85_000),
        (COMMUNICATION, 155_000, 175_000),  # ready at 85 us, behind the first until 155
        (COMPUTE, 85_000, 95_000),
    ]


def test_compute_waits_where_it_is_told_to() -> None:
    wait = StreamWait(stream=COMPUTE, on=COMMUNICATION)
    program = (kernel(50_000), reduce_of(100_000), wait, kernel(30_000), kernel(5_000))
    rows = lay_out({0: program}, [ALONE]).ranks[0]
    assert device_times(rows)[2:] == [(COMPUTE, 155_000, 185_000), (COMPUTE, 185_000, 190_000)]


def test_what_is_called_after_a_waiting_stream_waits_too() -> None:
    wait = StreamWait(stream=COMPUTE, on=COMMUNICATION)
    second = Collective(group="0", op="all_reduce", elements=1, transfer_ns=5_000, stream="other")
    rows = lay_out({0: (kernel(50_000), reduce_of(100_000), wait, second)}, [ALONE]).ranks[0]
    assert device_times(rows)[2] == ("other", 155_000, 160_000)


def test_a_collective_that_waits_for_nothing_starts_with_its_launch() -> None:
    rows = lay_out({0: (kernel(500_000), reduce_of(7_000, after=()))}, [ALONE]).ranks[0]
    assert device_times(rows)[1] == (COMMUNICATION, 21_000, 28_000)


def test_a_send_and_its_receive_end_together() -> None:
    def message(op: str, peer: int, after: tuple[str, ...]) -> PointToPoint:
        return PointToPoint(
            op="send" if op == "send" else "recv",
            group="0",
            peer=peer,
            elements=4,
            transfer_ns=9_000,
            after=after,
            host_overhead_ns=10_000,
        )

    ranks = lay_out(
        {0: (kernel(100_000), message("send", 1, (COMPUTE,))), 1: (message("recv", 0, ()),)}, [WORLD]
    ).ranks
    assert device_times(ranks[0])[1] == (COMMUNICATION, 105_000, 114_000)
    assert device_times(ranks[1]) == [(COMMUNICATION, 15_000, 114_000)]
    assert ranks[0].host[4].name == "nccl:send 0->1"
    assert ranks[1].host[2].name == "nccl:recv 1<-0"


def test_a_step_ends_when_the_device_has() -> None:
    rows = lay_out({0: (step(4, kernel(50_000), DeviceSync()), step(5, kernel(1_000)))}, [ALONE]).ranks[0]
    markers = {number: (span.start_ns, span.end_ns) for number, span in rows.steps().items()}
    assert markers == {4: (0, 55_000), 5: (55_000, 61_000)}
    assert [span.step for span in rows.device] == [4, 5]
    assert ("sync", "", 6_000, 55_000) in host_times(rows)


def test_regions_nest_and_choose_the_thread() -> None:
    inner = Region(name=None, items=(kernel(9_000),), thread="backward")
    rows = lay_out({0: (Region(name="outer", items=(inner,)), kernel(9_000))}, [ALONE]).ranks[0]
    assert [(s.name, s.thread) for s in rows.host if s.kind != "launch"] == [
        ("outer", "main"),
        ("aten::mm", "backward"),
        ("aten::mm", "main"),
    ]
    assert (rows.host[0].start_ns, rows.host[0].end_ns) == (0, 6_000)


def test_copies_are_device_work() -> None:
    copy = Copy(kind="HtoD", duration_ns=8_000, size_bytes=64)
    rows = lay_out({0: (copy, kernel(2_000))}, [ALONE]).ranks[0]
    assert device_times(rows) == [(COMPUTE, 5_000, 13_000), (COMPUTE, 13_000, 15_000)]


def test_gloo_computes_on_the_host_and_communicates_on_workers() -> None:
    program = (
        kernel(100_000),
        reduce_of(40_000),
        kernel(20_000),
        StreamWait(stream=COMPUTE, on=COMMUNICATION),
        kernel(5_000),
    )
    rows = lay_out({0: program}, [ALONE], "gloo").ranks[0]
    # The c10d operator takes the 10 us of host overhead, and its collective starts where it ends.
    assert host_times(rows) == [
        ("operator", "aten::mm", 0, 100_000),
        ("operator", "c10d::allreduce_", 100_000, 110_000),
        ("operator", "aten::mm", 110_000, 130_000),
        ("operator", "aten::mm", 150_000, 155_000),
    ]
    assert device_times(rows) == [(COMMUNICATION, 110_000, 150_000)]


def test_a_collective_that_others_never_call_is_named() -> None:
    with pytest.raises(
        UsageError, match=r"ranks \[0\] wait for ever.*\n.*all_reduce of 8 .* has ranks \[0\]"
    ):
        lay_out({0: (reduce_of(1_000),), 1: ()}, [WORLD])


def test_different_calls_at_one_position_are_named() -> None:
    programs: dict[int, tuple[Item, ...]] = {0: (reduce_of(1_000),), 1: (reduce_of(2_000),)}
    with pytest.raises(UsageError, match="ranks 0 and 1 do not call the same collective at position 0"):
        lay_out(programs, [WORLD])


@pytest.mark.parametrize("groups", [[Group(name="0", ranks=(1,))], []])
def test_a_call_outside_of_its_group_is_refused(groups: Sequence[Group]) -> None:
    with pytest.raises(UsageError, match="rank 0 calls all_reduce in group '0', of which it is not a member"):
        lay_out({0: (reduce_of(1_000),)}, groups)

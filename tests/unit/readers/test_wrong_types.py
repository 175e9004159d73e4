"""Events whose values are of impossible types: what can be used is used, nothing is guessed, nothing crashes."""

from __future__ import annotations

from typing import Any

import pytest

from rankscope.errors import TraceSyntaxError
from rankscope.model.run import Run
from rankscope.model.table import NO_ID, Lane
from rankscope.pipeline import analyze_run
from rankscope.readers.identity import identify
from rankscope.readers.trace_file import TraceFile
from support.reading import read_text, try_to_read
from support.trace_text import (
    Bare,
    annotation,
    collective,
    cpu_op,
    gloo,
    job,
    kernel,
    launch,
    nccl,
    step,
    trace_text,
)

GOOD = kernel("good", 7, 3)
DEEP = Bare("[" * 2000 + "]" * 2000)
IMPOSSIBLE = [None, True, False, [], [1], {}, {"a": 1}]


def file_of(*events: Any) -> TraceFile:
    return read_text(trace_text([*events, GOOD]))


def report_all(file: TraceFile) -> None:
    """Everything behind the reader works on the table too."""
    windows, problems = identify([file])
    analyze_run(Run(name="r", source="r", windows=windows, problems=(*file.problems, *problems)))


@pytest.mark.parametrize("value", IMPOSSIBLE, ids=repr)
@pytest.mark.parametrize("field", ["ts", "dur"])
def test_time_of_a_wrong_type_is_a_bad_event(field: str, value: Any) -> None:
    file = file_of({**kernel("bad", 5, 5), field: value})
    assert file.table.names == ("good",)
    (problem,) = file.problems
    assert problem.kind == "bad-event"
    assert "'bad'" in problem.message


@pytest.mark.parametrize("field", ["ts", "dur"])
def test_time_that_is_absent_is_a_bad_event(field: str) -> None:
    event = kernel("bad", 5, 5)
    del event[field]
    file = file_of(event)
    assert file.table.names == ("good",)
    assert [problem.kind for problem in file.problems] == ["bad-event"]


@pytest.mark.parametrize("name", [5, 1.5, None, True, [1], {"a": 1}], ids=repr)
def test_name_of_a_wrong_type_leaves_an_event_without_name(name: Any) -> None:
    file = file_of({**kernel("", 5, 5), "name": name})
    assert file.table.names == ("", "good")
    assert file.table.duration_ns.tolist() == [5_000, 3_000]
    report_all(file)


@pytest.mark.parametrize("args", [[], [1], "text", 5, None, True], ids=repr)
def test_args_that_are_no_object_count_as_none(args: Any) -> None:
    file = file_of({**kernel("k", 5, 5), "args": args})
    assert len(file.table) == 2
    assert file.table.device.tolist() == [0, 0]  # from pid
    assert file.table.correlation.tolist() == [NO_ID, NO_ID]


@pytest.mark.parametrize("cat", [5, None, [1], {}], ids=repr)
def test_category_of_a_wrong_type_is_no_device_time(cat: Any) -> None:
    file = file_of({**kernel("k", 5, 5), "cat": cat})
    assert len(file.table) == 2
    assert file.table.gpu_devices() == (0,)
    assert (file.table.device == 0).sum() == 1


@pytest.mark.parametrize(
    "stray", [5, 1.5, "text", None, True, [], [[1, 2]], {}, {"ph": 5}, {"ph": None}], ids=repr
)
def test_strays_in_the_list_of_events_disturb_no_other(stray: Any) -> None:
    file = file_of(stray)
    assert file.table.names == ("good",)
    assert {p.kind for p in file.problems} <= {"bad-event"}
    report_all(file)


@pytest.mark.parametrize("ph", ["M", "i", "s", "f", "B", "E", "C", "", "x"])
def test_only_complete_events_are_events(ph: str) -> None:
    file = file_of({**kernel("k", 5, 5), "ph": ph})
    assert file.table.names == ("good",)
    assert file.problems == ()
    assert file.events == 2


@pytest.mark.parametrize(
    "value",
    [[1], {"a": 1}, True, None, "text", "9" * 5000, Bare("9" * 5000), Bare("1e400"), -1, 1.5, DEEP, ""],
    ids=lambda v: str(v)[:8],
)  # fmt: skip
@pytest.mark.parametrize(
    "key",
    [
        "correlation", "External id", "device", "stream", "Collective name", "dtype", "In msg nelems",
        "Out msg nelems", "Group size", "Process Group Name", "Process Group Ranks", "Seq", "Src Rank",
        "Input Dims", "Input type", "Concrete Inputs",
    ],
)  # fmt: skip
def test_argument_of_a_wrong_type_costs_no_event(key: str, value: Any) -> None:
    """The event stays, with its times and its other arguments; only nesting beyond the decoder loses the file."""
    rows = [
        nccl(1, 2, args={**collective("allreduce", 8, 8), key: value}),
        gloo("all_reduce", 3, 1, dims=[[8]]) | {"args": {"Input Dims": [[8]], key: value}},
        cpu_op("record_param_comms", 4, 1, args={"Collective name": "allreduce", key: value}),
        launch(5, 5) | {"args": {"correlation": 5, key: value}},
    ]
    file = try_to_read(trace_text([*rows, GOOD]))
    if isinstance(file, TraceFile):
        assert file.table.duration_ns.tolist() == [2_000, 1_000, 1_000, 1_000, 3_000]
        report_all(file)
    else:
        assert value is DEEP


def test_a_wrong_argument_leaves_the_others() -> None:
    args = {
        **collective("allreduce", 8, 9, size=2),
        "dtype": ["Float"],
        "correlation": 77,
        "Input Dims": [[10**30]],
    }
    table = file_of(nccl(1, 2, args=args)).table
    arguments = table.arguments
    assert table.correlation.tolist() == [77, NO_ID]
    assert arguments.text(int(arguments.collective[0])) == "allreduce"
    assert (arguments.in_elements.tolist(), arguments.out_elements.tolist()) == ([8], [9])
    assert arguments.group_size.tolist() == [2]
    assert arguments.dtype.tolist() == [NO_ID]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (5, 5), (0, 0), ("5", 5), (5.0, 5), ((1 << 63) - 1, (1 << 63) - 1),
        (1 << 63, NO_ID), (10**30, NO_ID), (5.5, NO_ID), ("five", NO_ID), ("9" * 30, NO_ID),
    ],
)  # fmt: skip
def test_ids(written: Any, kept: int) -> None:
    """Ids beyond 64 bits (pytorch writes some as unsigned) are absent, and never another number."""
    table = file_of(kernel("k", 1, 1, args={"correlation": written, "External id": written})).table
    assert table.correlation.tolist() == [kept, NO_ID]
    assert table.external_id.tolist() == [kept, NO_ID]


def test_negative_ids_join_nothing() -> None:
    rows = [launch(-5, 1), kernel("k", 2, 1, correlation=-5)]
    table = file_of(*rows).table
    assert (table.correlation <= 0).all()


def test_old_spelling_of_the_external_id() -> None:
    assert file_of(kernel("k", 1, 1, args={"external id": 9})).table.external_id.tolist() == [9, NO_ID]


def test_element_count_beyond_64_bits_is_unknown() -> None:
    table = file_of(gloo("all_reduce", 1, 1, dims=[[10**10, 10**10]])).table
    assert table.arguments.in_elements.tolist() == [NO_ID]


def test_pids_of_any_kind_make_lanes() -> None:
    """`pid` may be text ("Spans", "Traces"); tids of old files are texts with the stream in them."""
    rows = [
        {**annotation("a", 1, 1), "pid": "Spans", "tid": "PyTorch Profiler"},
        {**annotation("b", 2, 1), "pid": [1], "tid": None},
        {**kernel("c", 3, 1), "pid": 1, "tid": "stream 7", "args": {}},
        {**kernel("d", 4, 1), "pid": "GPU 3", "tid": "stream " + "9" * 5000, "args": {}},
        {**kernel("e", 5, 1), "pid": None, "tid": None, "args": {}},
    ]
    table = file_of(*rows).table
    lanes = {table.names[name]: table.lanes[lane] for name, lane in zip(table.name, table.lane, strict=True)}
    assert lanes["a"] == Lane(pid="Spans", tid="PyTorch Profiler")
    assert (lanes["c"].device, lanes["c"].stream) == (1, 7)
    assert (lanes["d"].device, lanes["d"].stream) == (3, None)
    assert table.device.tolist() == [-1, -1, 1, 3, 0, 0]


RICH = trace_text(
    [
        step(1, 0, 50),
        launch(1, 1),
        kernel("gemm", Bare("2.125"), 10, correlation=1),
        cpu_op("record_param_comms", 3, 4, args=collective("allreduce", 8, 8, group="0", ranks=[0, 1])),
        nccl(5, 9, correlation=2, args=collective("allreduce", 8, 8, group="0", ranks="[0, 1]", size=2)),
        gloo("all_reduce", 6, 2, dims=[[2, 3], [4]]),
    ],
    {"baseTimeNanoseconds": 17, **job(0, 2, pg_config=[{"pg_name": "0", "pg_desc": "d", "ranks": [0, 1]}])},
)


def test_any_byte_wrong_is_a_problem_or_a_report_and_never_a_crash() -> None:
    stored = RICH.encode()
    wrongs = (b"", b'"', b"[", b"]", b"{", b"}", b",", b"\\", b"9", b"-", b"\xff", b"\x00")
    for index in range(len(stored)):
        for number, wrong in enumerate(wrongs):
            answer = try_to_read(stored[:index] + wrong + stored[index + 1 :])
            if isinstance(answer, TraceSyntaxError):
                assert answer.offset is not None, (index, wrong)
            elif isinstance(answer, TraceFile) and (index + number) % 6 == 0:  # all would take a minute
                report_all(answer)

"""The arguments of communication rows, by the spellings of all torch versions (FACTS.md)."""

from __future__ import annotations

from typing import Any

import pytest

from rankscope.model.table import NO_ID, Arguments
from support.reading import read_text, table_of
from support.trace_text import (
    Bare,
    annotation,
    collective,
    cpu_op,
    gloo,
    kernel,
    nccl,
    param_comms,
    trace_text,
)

FULL = collective(
    "allreduce", 8, 9, dtype="BFloat16", group="3", description="tp", ranks="[0, 1]", size=2, seq=41
)  # fmt: skip


def arguments_of(*events: Any) -> Arguments:
    return table_of(events).arguments


def texts_of(arguments: Arguments, column: str) -> list[str | None]:
    return [arguments.text(int(index)) for index in getattr(arguments, column)]


def test_no_arguments() -> None:
    arguments = arguments_of(kernel("k", 0, 1), annotation("a", 0, 1, args={"x": 1}))
    assert arguments.row.tolist() == []
    assert arguments.texts == ()


def test_everything_that_torch_2_12_writes() -> None:
    extra = {"Src Rank": 4, "Dst Rank": 5}
    arguments = arguments_of(kernel("k", 0, 1), nccl(1, 1, args={**FULL, **extra}))
    assert arguments.row.tolist() == [1]
    for column, value in {
        "in_elements": 8, "out_elements": 9, "group_size": 2, "sequence": 41, "source": 4, "destination": 5,
    }.items():  # fmt: skip
        assert getattr(arguments, column).tolist() == [value], column
    for column, text in {
        "collective": "allreduce", "dtype": "BFloat16", "group_name": "3", "group_description": "tp",
        "group_ranks": "[0, 1]", "inputs": None,
    }.items():  # fmt: skip
        assert texts_of(arguments, column) == [text], column


def test_torch_2_2_wrote_msg_size() -> None:
    args = {"Collective name": "allreduce", "In msg size": 7, "Out msg size": 6, "Group size": 2}
    arguments = arguments_of(nccl(1, 1, args=args))
    assert (arguments.in_elements.tolist(), arguments.out_elements.tolist()) == ([7], [6])
    assert arguments.sequence.tolist() == [NO_ID]


def test_zero_elements_are_a_number_and_not_absent() -> None:
    assert arguments_of(nccl(1, 1, args=collective("barrier", 0, 0))).in_elements.tolist() == [0]


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ("[0, 1]", "[0, 1]"),
        ([0, 1], "[0,1]"),
        ("[0, 1, ...", "[0, 1, ..."),
        ("", None),
        ([], None),
        (None, None),
    ],
)
def test_ranks_are_a_list_in_some_versions_and_its_text_in_others(ranks: Any, text: str | None) -> None:
    args = {**collective("allreduce", 8), "Process Group Ranks": ranks}
    assert texts_of(arguments_of(nccl(1, 1, args=args)), "group_ranks") == [text]


def test_a_number_as_group_name_is_its_text() -> None:
    assert texts_of(arguments_of(nccl(1, 1, args={**FULL, "Process Group Name": 3})), "group_name") == ["3"]


@pytest.mark.parametrize(
    ("dims", "elements"),
    [
        ([[512, 512]], 262_144),
        ([[512, 512], [512]], 262_656),  # every tensor counts
        ([[[2, 3], [4]]], 10),  # a list of tensors
        ([[]], NO_ID),  # a scalar has no dimensions
        ([], NO_ID),
        ([[0]], NO_ID),
        ([[2, 3], [], "x"], 6),
        ("text", NO_ID),
        (Bare("null"), NO_ID),
    ],
)
def test_size_of_a_gloo_row_is_in_its_dims(dims: Any, elements: int) -> None:
    """gloo writes no `record_param_comms`: only `Input Dims` and `Input type`."""
    assert arguments_of(gloo("all_reduce", 1, 1, dims=dims)).in_elements.tolist() == [elements]


@pytest.mark.parametrize(
    ("types", "dtype"),
    [(["float"], "float"), (["TensorList"], None), ([""], None), ([], None), ([5], None), (5, None)],
)
def test_dtype_of_a_gloo_row(types: Any, dtype: str | None) -> None:
    args = {"Input Dims": [[4]], "Input type": types}
    assert texts_of(arguments_of(annotation("gloo:all_reduce", 1, 1, args=args)), "dtype") == [dtype]


def test_inputs_are_kept_of_record_param_comms_alone() -> None:
    inputs = {"Concrete Inputs": ["", "17", "0"]}
    arguments = arguments_of(
        param_comms(1, 1, {"Collective name": "allreduce", **inputs}), nccl(2, 1, args={**FULL, **inputs})
    )
    assert texts_of(arguments, "inputs") == ['["","17","0"]', None]


def test_bytes_that_are_not_utf8_in_the_inputs() -> None:
    text = trace_text([cpu_op("record_param_comms", 1, 1, args={"Concrete Inputs": ["?"]})])
    arguments = read_text(text.encode().replace(b"?", b"\xff")).table.arguments
    assert texts_of(arguments, "inputs") == ['["\ufffd"]']


def test_rows_of_arguments_follow_their_events_when_sorted() -> None:
    events = [
        nccl(9, 1, args=collective("broadcast", 3)),
        kernel("k", 5, 1),
        nccl(1, 1, args=collective("allreduce", 1)),
        nccl(7, 1, args=collective("reduce", 2)),
    ]
    arguments = arguments_of(*events)
    assert arguments.row.tolist() == [0, 2, 3]
    assert texts_of(arguments, "collective") == ["allreduce", "reduce", "broadcast"]
    assert arguments.in_elements.tolist() == [1, 2, 3]

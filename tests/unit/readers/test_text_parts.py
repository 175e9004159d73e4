"""One file read in parts is the file read in one piece, or is read in one piece after all."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.model.categories import Classifier
from rankscope.pipeline import ReadOptions, read_run
from rankscope.readers import side_by_side, text_parts
from rankscope.readers.text_parts import Part, PartOfText, unpacked_size
from rankscope.readers.trace_file import TraceFile, read_part
from support.reading import columns_of, read_text
from support.trace_text import Bare, collective, cpu_op, job, kernel, launch, nccl, trace_text

EVENTS = [
    *(launch(i, i) for i in range(3)),
    cpu_op("aten::add", 0, 9),
    kernel("größe ▲", 3, 5, correlation=1),
    nccl(2, 9, args=collective("allreduce", 8, 8, group="0", ranks="[0, 1]", size=2, seq=3)),
    kernel("negative first", 4, -1),
    cpu_op("aten::mul", 3, 2, thread=7),
    kernel("on another stream", 3, 5, stream=20),
    nccl(2, 9, args=collective("broadcast", 8, 8, group="1", ranks="[0, 1]", size=2, seq=4)),
    kernel("negative second", 4, -2),
    kernel("größe ▲", 1, Bare("1.125")),
]
AROUND = {**job(0, 2), "deviceProperties": [{"id": 0}, {"id": 1}], "traceName": "x"}
TEXT = trace_text(EVENTS, AROUND).encode()


def read_parts(text: bytes, count: int, size_bytes: int | None = None) -> TraceFile | None:
    """The trace by its parts, as several processes would read it; None if it is to be read in one piece."""
    size = len(text) if size_bytes is None else size_bytes
    parts = [
        read_part(io.BytesIO(text), Classifier(), Part(index=i, count=count, size_bytes=size))
        for i in range(count)
    ]
    whole = parts[0]
    for part in parts[1:]:
        if whole is None or part is None:
            return None
        whole.append(part)
    return None if whole is None else whole.finish("trace.json")


def facts_of(file: TraceFile | None) -> Any:
    return None if file is None else replace(file, table=columns_of(file.table))  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_the_parts_together_are_the_file(count: int) -> None:
    whole = read_text(TEXT)
    assert "2 event(s) left out with a negative duration" in whole.problems[0].message
    assert len(whole.table) == 10
    assert facts_of(read_parts(TEXT, count)) == facts_of(whole)


def test_each_part_is_a_trace_with_some_of_the_events() -> None:
    """Events of 23 bytes from byte 22 on: they end at 44, 70 and 96, and parts begin at the ends from 45 and 90 on."""
    events = [b'{"ph":"X","ts":%d,"x":1}' % i for i in range(4)]
    text = b'{"a":1,"traceEvents":[' + b" , ".join(events) + b'],"z":[{"b":1},{"b":2}]}'
    parts = [Part(index=i, count=3, size_bytes=135) for i in range(3)]
    read = [b"".join(iter(PartOfText(io.BytesIO(text), part, max_bytes=999).read, b"")) for part in parts]
    assert read == [
        b'{"a":1,"traceEvents":[' + events[0] + b" , " + events[1] + b" ]}",
        b'{"traceEvents":[ ' + events[2] + b" ]}",
        b'{"traceEvents":[ ' + events[3] + b'],"z":[{"b":1},{"b":2}]}',
    ]


TEXTS = st.sampled_from(["x", "},{", '"},{"', "]}", "}", ",", "{", "\\", '"ph":"X"', "},\n {"])
NESTED = st.recursive(
    TEXTS, lambda inner: st.lists(st.dictionaries(TEXTS, inner, max_size=2), max_size=3), max_leaves=4
)
ROWS = st.builds(
    lambda name, start, duration, note: kernel(name, start, duration, args={"x": note}),
    TEXTS,
    st.integers(0, 5),
    st.integers(-1, 5),
    NESTED,
)


@settings(deadline=None)
@given(
    st.lists(ROWS, max_size=12), st.integers(2, 5), st.integers(0, 3000), st.integers(1, 64), st.booleans()
)
def test_whatever_the_text_holds_its_parts_are_the_file_or_nothing(
    rows: list[Any], count: int, size_bytes: int, block: int, spaced: bool
) -> None:
    """Wherever it is cut, in whatever blocks it is read, however wrong its size."""
    separators = (", ", ": ") if spaced else (",", ":")
    text = json.dumps({**AROUND, "traceEvents": rows, "z": [{}, {}]}, separators=separators).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_parts, "READ_BYTES", block)
        file = read_parts(text, count, size_bytes)
    assert file is None or facts_of(file) == facts_of(read_text(text))


@pytest.mark.parametrize(
    "text",
    [
        trace_text(EVENTS, {}).encode().removeprefix(b'{"traceEvents":').removesuffix(b"}"),  # a bare array
        TEXT[:-300],
        TEXT.replace(b"aten::mul", b"aten\x01mul"),
        b'{"traceEvents":[{"ph":"X"}],"deviceProperties":[' + b",".join([b'{"id":0}'] * 99) + b"]}",
        b'{"no":"events"}',
    ],
    ids=["no object around", "cut", "to be repaired", "most of it is not events", "no trace"],
)
def test_what_cannot_be_read_in_parts(text: bytes) -> None:
    assert read_parts(text, 2) is None


@pytest.mark.parametrize("block", [1, 2, 3, 5, 7, 30, 64])
def test_cuts_are_the_same_in_whatever_blocks_the_text_arrives(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Boundaries of up to 9 bytes lie across the ends of blocks, and each part is read in blocks of its own."""
    monkeypatch.setattr(text_parts, "READ_BYTES", block)
    text = (
        b'{"traceEvents":[' + b" \n ,  \n ".join(b'{"ph":"X","ts":%d,"dur":1}' % i for i in range(9)) + b"]}"
    )
    for size_bytes in range(len(text) - 20, len(text) + 20):
        file = read_parts(text, 3, size_bytes)
        assert file is not None
        assert [start // 1000 for start in file.table.start_ns.tolist()] == list(range(9))


def test_an_event_longer_than_parts_leaves_them_empty() -> None:
    text = trace_text([kernel("a", 0, 1), kernel("b" * 2000, 1, 1), kernel("c", 2, 1)]).encode()
    assert facts_of(read_parts(text, 6)) == facts_of(read_text(text))


def test_a_text_larger_than_allowed_is_read_in_one_piece() -> None:
    """Whichever part notices: the error is for who reads all of it."""
    last = Part(index=1, count=2, size_bytes=len(TEXT))
    assert read_part(io.BytesIO(TEXT), Classifier(), last, max_unpacked_bytes=len(TEXT)) is not None
    assert read_part(io.BytesIO(TEXT), Classifier(), last, max_unpacked_bytes=len(TEXT) - 1) is None


@pytest.mark.parametrize("packed", [False, True])
def test_the_size_of_the_text(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(TEXT) if packed else TEXT)
    with path.open("rb") as file:
        assert unpacked_size(file) == len(TEXT)
        assert file.tell() == 0


@pytest.mark.parametrize("name", ["rank0.json", "rank0.json.gz"])
def test_several_processes_read_one_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "_SMALLEST_PART_BYTES", 100)
    (tmp_path / name).write_bytes(gzip.compress(TEXT) if name.endswith("gz") else TEXT)
    one, three = (read_run(tmp_path, ReadOptions(processes=n)) for n in (1, 3))
    assert columns_of(three.windows[0].table) == columns_of(one.windows[0].table)
    assert three.problems == one.problems


def test_a_broken_file_is_told_as_one_process_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "_SMALLEST_PART_BYTES", 100)
    (tmp_path / "rank0.json").write_bytes(TEXT[:-300])
    (problem,) = read_run(tmp_path, ReadOptions(processes=2)).problems
    assert problem == read_run(tmp_path, ReadOptions(processes=1)).problems[0]
    assert problem.kind == "truncated"

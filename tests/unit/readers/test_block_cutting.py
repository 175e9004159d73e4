"""A trace read in blocks of any size is the trace read in one piece: its rows, repairs and faults."""

from __future__ import annotations

import pytest

from rankscope.errors import TraceSyntaxError
from support.reading import columns_of, read_text
from support.trace_text import (
    Bare,
    Row,
    annotation,
    array_text,
    cpu_op,
    job,
    kernel,
    nccl,
    to_json,
    trace_text,
)

SIZES = [1, 2, 3, 5, *range(16, 98), 200, 1000]


def tricky_events() -> list[Row]:
    """Rows whose own text holds what looks like the boundary of events or the end of the array."""
    return [
        kernel("plain", Bare("1.500"), 2),
        kernel('},{"ph":"X"}],', 3, 1),
        annotation("}]}", 4, 1, args={"l": [{"a": 1}, {"b": [{"c": 2}, {"d": 3}]}, {}]}),
        cpu_op(
            'say "},{" \\ and }]', 5, 1, args={"Input Dims": [[2, 3], [], [[4], [5]]], "n": {"x": {"y": {}}}}
        ),
        nccl(6, 1, args={"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float"}),
        kernel("größer ▲ 😀", 7, 1, args={"deep": [[[[{"a": [{}, {}]}]]]]}),
        annotation("", 8, 1, args={"empty": [], "objects": [{}, {}, {}]}),
        kernel("last", 9, 1),
    ]


OTHER_KEYS = {**job(0, 2), "traceName": 'a "},{" b', "deviceProperties": [{"id": 0}, {"id": 1}]}
TEXTS = {
    "compact": trace_text(tricky_events(), OTHER_KEYS),
    "pretty": trace_text(tricky_events(), OTHER_KEYS, pretty=True),
    "metadata first": trace_text(tricky_events(), OTHER_KEYS, metadata_first=True),
    "spread out": '{ "traceEvents" :\n[ ' + " \n,\r\n\t".join(map(to_json, tricky_events())) + " ]\n}\n",
    "array": array_text(tricky_events()),
    "open array": array_text(tricky_events())[:-1],
}


@pytest.mark.parametrize("form", TEXTS)
def test_any_block_size_gives_the_same_rows(form: str) -> None:
    whole = read_text(TEXTS[form])
    assert [whole.table.names[i] for i in whole.table.name] == [row["name"] for row in tricky_events()]
    for size in SIZES:
        file = read_text(TEXTS[form], block_bytes=size)
        assert columns_of(file.table) == columns_of(whole.table), size
        assert (file.events, file.metadata, file.problems) == (whole.events, whole.metadata, ()), size


def test_any_block_size_repairs_the_same_places() -> None:
    """A line feed and a bad escape in names, two bytes that are not UTF-8, and two numbers that are none."""
    text = (
        TEXTS["compact"].encode()
        .replace(b'"plain"', b'"pl\nai\\_n"')
        .replace(b'"last"', b'"\xff\xfe"')
        .replace(b'"x":{"y":{}}', b'"x":NaN,"y":[{},{}],"z":-Infinity')
    )  # fmt: skip
    whole = read_text(text)
    assert {(p.kind, p.offset) for p in whole.problems} == {
        ("control-character", text.index(b"\n")),
        ("escape", text.index(b"\\_")),
        ("encoding", text.index(b"\xff")),
        ("not-a-number", text.index(b"NaN")),
    }
    messages = {p.kind: p.message for p in whole.problems}
    assert "2 place(s)" in messages["encoding"]
    assert "2 place(s)" in messages["not-a-number"]
    for size in SIZES:
        file = read_text(text, block_bytes=size)
        assert columns_of(file.table) == columns_of(whole.table), size
        assert set(file.problems) == set(whole.problems), size


@pytest.mark.parametrize(
    "broken",
    [
        TEXTS["compact"].replace('"ts":5', '"ts"5'),
        TEXTS["compact"].replace('"ts":5', '"ts":{"ph":"X","name":"of another rank"},'),
        TEXTS["compact"].replace('"name":"last"', '"name":"la'),
        TEXTS["compact"].replace("},{", "}{", 1),
        TEXTS["compact"].replace("},{", "},,{", 1),
    ],
    ids=["no colon", "two ranks in one file", "string left open", "no comma", "two commas"],
)
def test_any_block_size_finds_the_fault_at_the_same_place(broken: str) -> None:
    with pytest.raises(TraceSyntaxError) as whole:
        read_text(broken)
    for size in SIZES:
        with pytest.raises(TraceSyntaxError) as caught:
            read_text(broken, block_bytes=size)
        assert caught.value.offset == whole.value.offset, size


def test_an_event_larger_than_a_block_with_objects_inside() -> None:
    """6 MiB of one event, full of `},{`: no boundary of events, and no fault either."""
    large = annotation("large", 1, 1, args={"objects": [{"a": i} for i in range(550_000)]})
    text = trace_text([kernel("before", 0, 1), large, kernel("after", 2, 1)])
    assert len(text) > 6 << 20
    assert read_text(text).table.names == ("before", "large", "after")

"""Text that is almost JSON: what known writers get wrong is put right, counted, and its place said."""

from __future__ import annotations

import msgspec
import pytest

from rankscope.errors import TraceSyntaxError
from rankscope.readers.repair import repair_json
from support.reading import read_text
from support.trace_text import Bare, kernel, trace_text


@pytest.mark.parametrize(
    ("broken", "value", "faults"),
    [
        (b'{"a": "x\ny\tz"}', {"a": "x\ny\tz"}, {"control-character": (8, 2)}),
        (b'{"a": "C:\\_dir\\q"}', {"a": "C:\\_dir\\q"}, {"escape": (9, 2)}),
        (b'{"a": "\\u12"}', {"a": "\\u12"}, {"escape": (7, 1)}),
        (b'{"a": NaN}', {"a": None}, {"not-a-number": (6, 1)}),
        (b'[Infinity, -Infinity, inf, -nan]', [None] * 4, {"not-a-number": (1, 4)}),
        (b'[-Infinity]', [None], {"not-a-number": (1, 1)}),
        (b'{"a": "\xff\xfeb"}', {"a": "\ufffd\ufffdb"}, {"encoding": (7, 2)}),
        (
            b'["\xff", NaN, "\x01", "\\q"]',
            ["\ufffd", None, "\x01", "\\q"],
            {"encoding": (2, 1), "not-a-number": (6, 1), "control-character": (12, 1), "escape": (17, 1)},
        ),
        (b'["a\\ud83d", "\\ude00", "\\ud83dx\\u0041"]', ["a\ufffd", "\ufffd", "\ufffdxA"], {"surrogate": (3, 3)}),
        (b'["\\ud83d\\ud83d\\ude00"]', ["\ufffd\U0001f600"], {"surrogate": (2, 1)}),
        (b'["\\\n"]', ["\\\n"], {"escape": (2, 1), "control-character": (3, 1)}),
    ],
)  # fmt: skip
def test_repairs(broken: bytes, value: object, faults: dict[str, tuple[int, int]]) -> None:
    repair = repair_json(broken)
    assert msgspec.json.decode(repair.text) == value
    assert {kind: (index, repair.counts[kind]) for kind, index in repair.faults.items()} == faults


@pytest.mark.parametrize(
    "right",
    [
        b"{}",
        b"",
        b'{"NaN": "Infinity -inf nan", "b": [null, true, false, 1e-5, -1]}',
        '{"größer": "▲ \ufffd", "esc": "\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u00e9 \\uD83D\\uDE00 \\ud7ff"}'.encode(),
    ],
)
def test_what_is_right_stays_as_it_is(right: bytes) -> None:
    repair = repair_json(right)
    assert repair.text == right
    assert repair.faults == repair.counts == {}


@pytest.mark.parametrize("lost", [b'["open', b"[nothing]", b"[Information]", b"[N]", b'[1 "\xff"]'])
def test_what_is_beyond_repair_stays_broken(lost: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(repair_json(lost).text)


def test_offsets_count_in_the_file_as_it_is() -> None:
    """A byte that is not UTF-8 becomes three; the faults behind it still stand where they stand in the file."""
    text = trace_text([kernel("a?", 0, 1), kernel("b", Bare("NaN"), 1), kernel("c!", 2, 1)])
    stored = text.encode().replace(b"?", b"\xff\xff\xff").replace(b"!", b"\x02")
    file = read_text(stored)
    assert {(p.kind, p.offset) for p in file.problems} == {
        ("encoding", stored.index(b"\xff")),
        ("not-a-number", stored.index(b"NaN")),
        ("control-character", stored.index(b"\x02")),
        ("bad-event", None),
    }
    assert file.table.names == ("a\ufffd\ufffd\ufffd", "c\x02")


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("field", ["ts", "dur"])
def test_a_time_that_is_no_number_is_a_bad_event_and_never_zero(word: str, field: str) -> None:
    event = {**kernel("bad", 5, 5), field: Bare(word)}
    file = read_text(trace_text([event, kernel("good", 7, 1)]))
    assert file.table.names == ("good",)
    assert file.table.start_ns.tolist() == [7_000]
    assert {p.kind for p in file.problems} == {"not-a-number", "bad-event"}


def test_not_a_number_among_the_arguments_costs_nothing() -> None:
    file = read_text(trace_text([kernel("k", 5, 1, args={"est. achieved occupancy %": Bare("NaN")})]))
    assert len(file.table) == 1
    (problem,) = file.problems
    assert problem.kind == "not-a-number"
    assert "1 place(s)" in problem.message


def test_repairs_of_the_metadata_are_said_too() -> None:
    text = trace_text([kernel("k", 5, 1)], {"host_name": "a@b"}).replace("@", "\x01")
    file = read_text(text)
    assert file.metadata["host_name"] == "a\x01b"
    (problem,) = file.problems
    assert (problem.kind, problem.offset) == ("control-character", text.index("\x01"))


def test_a_fault_beyond_repair_is_placed_although_others_were_repaired() -> None:
    text = trace_text([kernel("a\x01", 0, 1), kernel("b", 1, 1)]).replace('"b"', '"b')
    with pytest.raises(TraceSyntaxError) as caught:
        read_text(text)
    assert caught.value.offset is not None

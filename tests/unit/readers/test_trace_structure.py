"""The top level of a trace file: where the events stand, what is no trace, and what ends badly."""

from __future__ import annotations

import pytest

from rankscope.errors import TraceSyntaxError
from rankscope.readers.trace_file import NotATraceError
from support.reading import read_text
from support.trace_text import Bare, array_text, job, kernel, to_json, trace_text

EVENTS = [kernel("a", 0, 1), kernel("b", 5, 1)]
ROWS = ",".join(map(to_json, EVENTS))


def names_in(text: str | bytes) -> list[str]:
    table = read_text(text).table
    return [table.names[i] for i in table.name]


def fault_of(text: str | bytes) -> TraceSyntaxError:
    with pytest.raises(TraceSyntaxError) as caught:
        read_text(text)
    assert caught.value.offset is not None
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        trace_text(EVENTS),
        trace_text(EVENTS, job(0, 2)),
        trace_text(EVENTS, job(0, 2), metadata_first=True),
        '{"before":{"x":[1,{"y":"}]"}]},"traceEvents":[' + ROWS + '],"after":[[],{}]}',
        '\n {\t"traceEvents"\r\n: [\n' + ROWS + "\n]\n}\n\n",
        array_text(EVENTS),
        array_text(EVENTS)[:-1],  # Chrome's format allows the closing bracket to be missing
        array_text(EVENTS)[:-1] + ",\n",
        "  " + array_text(EVENTS) + "\n",
    ],
)
def test_where_the_events_may_stand(text: str) -> None:
    assert names_in(text) == ["a", "b"]


@pytest.mark.parametrize(
    "text", ['{"traceEvents":[]}', "[]", "[", " [ \n", '{"traceEvents": [ \n ] , "x": 1}']
)
def test_no_events(text: str) -> None:
    file = read_text(text)
    assert file.events == 0
    assert len(file.table) == 0
    assert file.problems == ()


def test_metadata_before_and_after_is_kept() -> None:
    text = '{"host_name":"n1","traceEvents":[' + ROWS + '],"distributedInfo":{"rank":3},"unknown":{"rank":4}}'
    assert read_text(text).metadata == {"host_name": "n1", "distributedInfo": {"rank": 3}}


@pytest.mark.parametrize("text", ["{}", '{"hello": [1, 2]}', '{"a":{"traceEvents":[]}}', " { } "])
def test_json_without_events_is_no_trace(text: str) -> None:
    with pytest.raises(NotATraceError):
        read_text(text)


@pytest.mark.parametrize(("text", "size"), [("", 0), (" ", 1), ("\n\t \r\n", 5)])
def test_empty_file(text: str, size: int) -> None:
    fault = fault_of(text)
    assert (fault.slug, fault.offset) == ("empty", 0)
    assert size == 0 or f"{size} bytes of whitespace" in str(fault)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("traceEvents", 0),
        ("\x00\x01", 0),
        ('  "text"', 2),
        ('{"traceEvents":null}', 15),
        ('{"traceEvents": {"ph":"X"}}', 16),
        ('{"traceEvents":[],"traceEvents":[]}', 32),
        ('{"traceEvents":[]}{"traceEvents":[]}', 18),
        ('{"traceEvents":[]} x', 19),
        ("[] []", 3),
        ('{"traceEvents":[] "x":1}', 18),
        ('{"traceEvents" []}', 15),
        ('{5:1}', 1),
        ('{"x": tru}', 9),
        ('{"x": [1,}', 9),
        ('{"traceEvents":[5 5]}', 18),
    ],
)  # fmt: skip
def test_place_of_a_fault(text: str, offset: int) -> None:
    assert fault_of(text).offset == offset


def test_two_traces_in_one_file_are_recognised() -> None:
    text = trace_text(EVENTS)
    fault = fault_of(text + text)
    assert fault.offset == len(text)
    assert "joined" in str(fault)


def test_a_byte_order_mark_loses_nothing() -> None:
    """Offsets count in the file as it is: the fault stands at 3 + 1."""
    mark = b"\xef\xbb\xbf"
    assert names_in(mark + trace_text(EVENTS).encode()) == ["a", "b"]
    assert fault_of(mark + b"{+: 1}").offset == 4


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_another_encoding_is_named(encoding: str) -> None:
    fault = fault_of(("\ufeff" + trace_text(EVENTS)).encode(encoding))
    assert fault.offset == 0
    assert "UTF-16" in str(fault)


def test_half_a_character_in_a_name_loses_nothing() -> None:
    """Some tools cut names in the middle of a character; in strings that are skipped it may stand too."""
    text = trace_text([kernel("cut @", 0, 1, args={"note": "@"}), kernel("b", 5, 1)]).replace("@", r"\ud83d")
    found = read_text(text)
    assert found.table.names == ("cut \ufffd", "b")
    assert [(p.kind, p.offset) for p in found.problems] == [("surrogate", text.index("\\"))]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize(
    "frame",
    [
        '{"traceEvents":[{"ph":"X","args":{"x":@}}]}',
        '{"traceEvents":[{"ph":"X","ts":1,"dur":1,"args":{"Input Dims":@}}]}',
        '{"traceEvents":[@]}',
        '{"x":@,"traceEvents":[]}',
        "@",
    ],
)
def test_deep_nesting_is_a_fault_and_no_crash(frame: str, opening: str) -> None:
    """100,000 brackets, and the same without the closing ones."""
    closing = {"[": "]", '{"a":': "}"}[opening]
    nested = opening * 100_000 + ("1" if opening != "[" else "") + closing * 100_000
    for text in (frame.replace("@", nested), frame.replace("@", opening * 100_000)):
        with pytest.raises((TraceSyntaxError, NotATraceError)) as caught:
            read_text(text)
        assert getattr(caught.value, "offset", 0) is not None


@pytest.mark.parametrize("depth", [5, 300, 500, 700, 900])
def test_nesting_that_the_decoder_takes_is_taken_by_all(depth: int) -> None:
    """What walks through decoded lists must not run out of stack where the decoder did not."""
    dims = Bare("[" * depth + "]" * depth)
    odd = kernel("odd", 1, 1, args={"dtype": [1], "Input Dims": dims})
    gloo = {
        "ph": "X",
        "cat": "user_annotation",
        "name": "gloo:all_reduce",
        "ts": 1,
        "dur": 1,
        "pid": 1,
        "tid": 1,
    }
    text = trace_text([*EVENTS, odd, {**gloo, "args": {"Input Dims": dims}}])
    assert len(read_text(text).table) == 4


@pytest.mark.parametrize("pretty", [True, False])
def test_a_trace_cut_anywhere_is_no_trace(pretty: bool) -> None:
    """Never figures from a part of the file: a problem, at the place where the text ends."""
    text = trace_text([kernel('},{"', 0, 1), *EVENTS], job(0, 2), pretty=pretty)
    for length in range(1, len(text)):
        fault = fault_of(text[:length])
        assert fault.offset is not None
        assert length - 6 <= fault.offset <= length, text[:length]
    assert names_in(text) == ['},{"', "a", "b"]


def test_a_trace_cut_inside_a_character_is_no_trace() -> None:
    text = trace_text([kernel("größer ▲ 😀", 0, 1)]).encode()
    for length in range(1, len(text)):
        fault_of(text[:length])


def test_a_bare_array_cut_anywhere_gives_whole_events_or_a_problem() -> None:
    """Its closing bracket may be missing, so a cut between events cannot be told from an end."""
    text = array_text(EVENTS)
    first = len(to_json(EVENTS[0])) + 1
    ends = {1: [], first: ["a"], first + 1: ["a"], len(text) - 1: ["a", "b"], len(text): ["a", "b"]}
    for length in range(1, len(text) + 1):
        if length in ends:
            assert names_in(text[:length]) == ends[length]
        else:
            fault_of(text[:length])

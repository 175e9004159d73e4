"""Trace events as typed structs: only what the analyses use is decoded, the rest of the text is skipped."""

from __future__ import annotations

import re
from array import array
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

import msgspec
import numpy as np

from rankscope.model.categories import CATEGORY_OF_TEXT
from rankscope.model.intervals import Int64
from rankscope.model.table import NO_ID

Number = int | float | str | None


class EventArguments(msgspec.Struct, gc=False):
    """The arguments that rankscope reads; every spelling of FACTS is taken."""

    external_id: int | float | str | None = msgspec.field(default=NO_ID, name="External id")
    old_external_id: int | float | str | None = msgspec.field(default=NO_ID, name="external id")
    correlation: int | float | str | None = NO_ID
    device: int | float | str | None = None
    stream: int | float | str | None = None
    collective: str | None = msgspec.field(default=None, name="Collective name")
    dtype: str | None = None
    in_elements: int | float | str | None = msgspec.field(default=NO_ID, name="In msg nelems")
    out_elements: int | float | str | None = msgspec.field(default=NO_ID, name="Out msg nelems")
    old_in_elements: int | float | str | None = msgspec.field(default=NO_ID, name="In msg size")
    old_out_elements: int | float | str | None = msgspec.field(default=NO_ID, name="Out msg size")
    group_size: int | float | str | None = msgspec.field(default=NO_ID, name="Group size")
    group_name: str | int | None = msgspec.field(default=None, name="Process Group Name")
    group_description: str | int | None = msgspec.field(default=None, name="Process Group Description")
    group_ranks: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Process Group Ranks")
    sequence: int | float | str | None = msgspec.field(default=NO_ID, name="Seq")
    source: int | float | str | None = msgspec.field(default=NO_ID, name="Src Rank")
    destination: int | float | str | None = msgspec.field(default=NO_ID, name="Dst Rank")
    input_dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Dims")
    input_types: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input type")
    inputs: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Concrete Inputs")


NO_ARGUMENTS = EventArguments()


class _EventFields(msgspec.Struct, gc=False):
    ph: str = ""
    name: str | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    args: EventArguments | None = None


class Event(_EventFields, gc=False):
    """One event; `ts` and `dur` are microseconds as the text has them: int, float or text."""

    cat: str | None = None


SKIPPED_CATEGORIES = ("python_function", "trace", "ac2g", "fwdbwd")
"""Rows of Python's stack, the profiler's own, and arrows: no analysis uses them."""

_READ_CATEGORIES = (
    *CATEGORY_OF_TEXT,
    *("Kernel", "Memcpy", "Memset", "Operator", "Runtime"),
    *("cpu_instant_event", "overhead", "cuda_event", "external_correlation", "collective_comm"),
    *("mtia_runtime", "mtia_ccp_events", "hpu_op", "glow_runtime", "xpu_sync", "gpu_pm_counter"),
)


def _decoder_by_category() -> msgspec.json.Decoder[list[Event]]:
    """A decoder that looks at `cat` first, so that nothing of a skipped event becomes an object.

    It knows the categories that Kineto writes, and raises a ValidationError on any other.
    """
    read = [
        msgspec.defstruct(
            f"Event{i}",
            [],
            bases=(_EventFields,),
            namespace={"cat": text},
            tag_field="cat",
            tag=text,
            gc=False,
        )
        for i, text in enumerate(_READ_CATEGORIES)
    ]
    skipped = [
        msgspec.defstruct(
            f"Skipped{i}", [], namespace={"cat": text, "ph": ""}, tag_field="cat", tag=text, gc=False
        )
        for i, text in enumerate((*SKIPPED_CATEGORIES, "Trace"))
    ]
    return msgspec.json.Decoder(list[reduce(or_, read + skipped)])  # type: ignore[misc]


class _EventTimes(msgspec.Struct, gc=False):
    """The times of an event as text, for those whose digits a double cannot hold."""

    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")


_EVENTS_BY_CATEGORY = _decoder_by_category()
_EVENTS = msgspec.json.Decoder(list[Event])
_EVENT = msgspec.json.Decoder(Event)
_RAW_EVENTS = msgspec.json.Decoder(list[msgspec.Raw])
_TIMES = msgspec.json.Decoder(list[_EventTimes])
_TIMES_OF_ONE = msgspec.json.Decoder(_EventTimes)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SCALAR = msgspec.json.Decoder(int | float | str | None)
_TEXT = msgspec.json.Decoder(str | None)
_FIELD_NAMES = {field.encode_name: field.name for field in msgspec.structs.fields(EventArguments)}
_RAW_FIELDS = frozenset({"group_ranks", "input_dims", "input_types", "inputs"})
_TEXT_FIELDS, _SCALAR_FIELDS = ("ph", "cat", "name"), ("pid", "tid", "ts", "dur")
_BYTE_IN_MESSAGE = re.compile(r"\(byte (\d+)\)")

MAX_EXACT_FLOAT_US = float(1 << 43)
"""Below this a double's rounding error is under half a nanosecond, so the third decimal is exact."""

_MAX_INT = (1 << 63) - 1
_MAX_DIGITS = 20


class BlockSyntaxError(Exception):
    """A block is not JSON; `index` is the place in the block, None if the decoder does not say."""

    def __init__(self, message: str, index: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.index = index


def decode_events(block: bytes) -> list[Event]:
    """The events of a block, which is the text of a JSON array of objects.

    An event whose fields have impossible types comes back with those fields None; of an event of a skipped
    category perhaps nothing but that.

    Raises:
        BlockSyntaxError: the block is not a JSON array.
    """
    try:
        return _EVENTS_BY_CATEGORY.decode(block)
    except (msgspec.DecodeError, RecursionError):  # metadata rows have no category, for one
        pass
    try:
        return _EVENTS.decode(block)
    except msgspec.ValidationError:
        return [_decode_loosely(raw) for raw in _raw_events(block)]
    except (msgspec.DecodeError, RecursionError) as error:
        raise syntax_error(error, len(block)) from error


def exact_times(block: bytes) -> list[tuple[Number, Number]]:
    """(ts, dur) of every event of a block in exact decimal text or int, where doubles cannot hold them."""
    try:
        times = _TIMES.decode(block)
    except msgspec.ValidationError:  # something in the list is no object
        times = [_decode_or_none(_TIMES_OF_ONE, raw) or _EventTimes() for raw in _raw_events(block)]
    return [(_number_text(event.ts), _number_text(event.dur)) for event in times]


def to_nanoseconds(microseconds: Number) -> int | None:
    """Nanoseconds of a time in microseconds, exact for text and int; None if it is not a number.

    >>> to_nanoseconds("1767225600000000.130")
    1767225600000000130
    >>> to_nanoseconds("soon") is None
    True
    """
    if isinstance(microseconds, int):
        return microseconds * 1000
    if microseconds is None:
        return None
    try:
        scaled = Decimal(str(microseconds)) * 1000
    except ArithmeticError:  # not a number, or beyond what a Decimal holds
        return None
    return int(scaled.to_integral_value()) if scaled.is_finite() and scaled.adjusted() < _MAX_DIGITS else None


def whole_number(value: object) -> int | None:
    """The value, in any spelling, if it is a whole number from 0 that fits 64 bits; else None.

    >>> whole_number(7), whole_number(" 7 "), whole_number(7.0), whole_number(7.5), whole_number(-7)
    (7, 7, 7, None, None)
    """
    if isinstance(value, str):
        digits = value.strip()
        value = int(digits) if len(digits) <= _MAX_DIGITS and digits.isdecimal() else None
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None
    return value if isinstance(value, int) and 0 <= value <= _MAX_INT else None


def whole_numbers(values: list[Any]) -> Int64:
    """int64[n]: values that are whole numbers from 0, in any spelling; NO_ID for what is absent or anything else."""
    try:
        numbers = np.frombuffer(array("q", values), np.int64)
    except (TypeError, OverflowError):
        numbers = np.array([NO_ID if (n := whole_number(v)) is None else n for v in values], np.int64)
    return numbers if numbers.min(initial=0) >= NO_ID else np.maximum(numbers, NO_ID)


def numbers_of(arguments: list[EventArguments], key: str) -> Int64:
    """int64[n]: as `whole_numbers`, an argument by its new or its old spelling (the field `old_<key>`)."""
    numbers = whole_numbers([getattr(args, key) for args in arguments])
    if numbers.min(initial=0) == NO_ID:
        old = whole_numbers([getattr(args, f"old_{key}") for args in arguments])
        numbers = np.where(numbers == NO_ID, old, numbers)
    return numbers


def syntax_error(error: Exception, length: int) -> BlockSyntaxError:
    """The decoder's error on a text of `length` bytes, with the place of the fault in it."""
    text = str(error)
    place = _BYTE_IN_MESSAGE.search(text)
    if place is not None:
        return BlockSyntaxError(text[: place.start()].strip(), int(place.group(1)))
    if "truncated" in text:
        return BlockSyntaxError(text, length)
    return BlockSyntaxError("nested too deeply" if isinstance(error, RecursionError) else text, None)


def _raw_events(block: bytes) -> list[msgspec.Raw]:
    try:
        return _RAW_EVENTS.decode(block)
    except msgspec.ValidationError as error:
        raise BlockSyntaxError(str(error), None) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise syntax_error(error, len(block)) from error


def _decode_loosely(raw: msgspec.Raw) -> Event:
    """The event of one object, field by field, without those that have an impossible type."""
    try:
        return _EVENT.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        pass
    fields = _decode_or_none(_OBJECT, raw)
    if fields is None:
        return Event(ph="X")  # a complete event without times: counted as a bad one
    texts = {key: _decode_or_none(_TEXT, fields[key]) for key in _TEXT_FIELDS if key in fields}
    scalars = {key: _decode_or_none(_SCALAR, fields[key]) for key in _SCALAR_FIELDS if key in fields}
    arguments = _decode_or_none(_OBJECT, fields["args"]) if "args" in fields else None
    return Event(
        ph=texts.pop("ph", None) or "",
        **texts,
        **scalars,
        args=None if arguments is None else _arguments_loosely(arguments),
    )


def _arguments_loosely(fields: dict[str, msgspec.Raw]) -> EventArguments:
    arguments = EventArguments()
    for key, raw in fields.items():
        name = _FIELD_NAMES.get(key)
        if name in _RAW_FIELDS:
            setattr(arguments, name, raw)
        elif name is not None:
            decoder = _TEXT if name in ("collective", "dtype") else _SCALAR
            setattr(arguments, name, _decode_or_none(decoder, raw))
    return arguments


def _decode_or_none(decoder: msgspec.json.Decoder[Any], raw: msgspec.Raw) -> Any:
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _number_text(raw: msgspec.Raw) -> Number:
    text = bytes(raw).decode("utf-8", errors="replace").strip()
    return text.strip('"').strip() if text and text != "null" else None

"""Trace events as typed structs: only what the analyses use is decoded, the rest of the text is skipped."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

Number = int | float | str | None


class EventArguments(msgspec.Struct, gc=False):
    """The arguments that rankscope reads; every spelling of FACTS is taken."""

    external_id: int | float | str | None = msgspec.field(default=None, name="External id")
    old_external_id: int | float | str | None = msgspec.field(default=None, name="external id")
    correlation: int | float | str | None = None
    device: int | float | str | None = None
    stream: int | float | str | None = None
    collective: str | None = msgspec.field(default=None, name="Collective name")
    dtype: str | None = None
    in_elements: int | float | str | None = msgspec.field(default=None, name="In msg nelems")
    out_elements: int | float | str | None = msgspec.field(default=None, name="Out msg nelems")
    old_in_elements: int | float | str | None = msgspec.field(default=None, name="In msg size")
    old_out_elements: int | float | str | None = msgspec.field(default=None, name="Out msg size")
    group_size: int | float | str | None = msgspec.field(default=None, name="Group size")
    group_name: str | int | None = msgspec.field(default=None, name="Process Group Name")
    group_description: str | int | None = msgspec.field(default=None, name="Process Group Description")
    group_ranks: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Process Group Ranks")
    sequence: int | float | str | None = msgspec.field(default=None, name="Seq")
    source: int | float | str | None = msgspec.field(default=None, name="Src Rank")
    destination: int | float | str | None = msgspec.field(default=None, name="Dst Rank")
    input_dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Dims")
    input_types: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input type")
    inputs: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Concrete Inputs")


NO_ARGUMENTS = EventArguments()


class Event(msgspec.Struct, gc=False):
    """One event; `ts` and `dur` are microseconds as the text has them: int, float or text."""

    ph: str = ""
    cat: str | None = None
    name: str | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    args: EventArguments | None = None


class _EventTimes(msgspec.Struct, gc=False):
    """The times of an event as text, for those whose digits a double cannot hold."""

    ph: str = ""
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")


_EVENTS = msgspec.json.Decoder(list[Event])
_EVENT = msgspec.json.Decoder(Event)
_RAW_EVENTS = msgspec.json.Decoder(list[msgspec.Raw])
_TIMES = msgspec.json.Decoder(list[_EventTimes])
_ANY_OBJECT = msgspec.json.Decoder(dict[str, Any])
_FIELD_NAMES = {field.encode_name: field.name for field in msgspec.structs.fields(EventArguments)}
_RAW_FIELDS = frozenset({"group_ranks", "input_dims", "input_types", "inputs"})
_BYTE_IN_MESSAGE = re.compile(r"\(byte (\d+)\)")

MAX_EXACT_FLOAT_US = float(1 << 43)
"""Below this a double's rounding error is under half a nanosecond, so the third decimal is exact."""


class BlockSyntaxError(Exception):
    """A block is not JSON; `index` is the place in the block, None if the decoder does not say."""

    def __init__(self, message: str, index: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.index = index


def decode_events(block: bytes) -> list[Event]:
    """The events of a block, which is the text of a JSON array of objects.

    An event whose fields have impossible types comes back with those fields None.

    Raises:
        BlockSyntaxError: the block is not a JSON array.
    """
    try:
        return _EVENTS.decode(block)
    except msgspec.ValidationError:
        return [_decode_loosely(raw) for raw in _decode(_RAW_EVENTS, block)]
    except (msgspec.DecodeError, RecursionError) as error:
        raise _syntax_error(error, len(block)) from error


def exact_times(block: bytes) -> list[tuple[Number, Number]]:
    """(ts, dur) of every event of a block in exact decimal text or int, where doubles cannot hold them."""
    times = _decode(_TIMES, block)
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
        return int(scaled.to_integral_value()) if scaled.is_finite() else None
    except InvalidOperation:
        return None


def _decode(decoder: msgspec.json.Decoder[Any], block: bytes) -> Any:
    try:
        return decoder.decode(block)
    except msgspec.ValidationError:
        return []
    except (msgspec.DecodeError, RecursionError) as error:
        raise _syntax_error(error, len(block)) from error


def _syntax_error(error: Exception, length: int) -> BlockSyntaxError:
    text = str(error)
    place = _BYTE_IN_MESSAGE.search(text)
    if place is not None:
        return BlockSyntaxError(text[: place.start()].strip(), int(place.group(1)))
    if "truncated" in text:
        return BlockSyntaxError(text, length)
    return BlockSyntaxError("nested too deeply" if isinstance(error, RecursionError) else text, None)


def _decode_loosely(raw: msgspec.Raw) -> Event:
    """The event of one object, field by field, without those that have an impossible type."""
    try:
        return _EVENT.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        fields = _ANY_OBJECT.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return Event(ph="X")  # a complete event without times: counted as a bad one
    arguments = fields.get("args")
    return Event(
        ph=fields["ph"] if isinstance(fields.get("ph"), str) else "",
        cat=fields["cat"] if isinstance(fields.get("cat"), str) else None,
        name=fields["name"] if isinstance(fields.get("name"), str) else None,
        pid=_scalar(fields.get("pid")),
        tid=_scalar(fields.get("tid")),
        ts=_scalar(fields.get("ts")),
        dur=_scalar(fields.get("dur")),
        args=_arguments_loosely(arguments) if isinstance(arguments, dict) else None,
    )


def _arguments_loosely(fields: dict[str, Any]) -> EventArguments:
    arguments = EventArguments()
    for key, value in fields.items():
        name = _FIELD_NAMES.get(key)
        if name is None:
            continue
        if name in _RAW_FIELDS:
            setattr(arguments, name, msgspec.Raw(msgspec.json.encode(value)))
        elif name in ("collective", "dtype"):
            setattr(arguments, name, value if isinstance(value, str) else None)
        else:
            setattr(arguments, name, _scalar(value))
    return arguments


def _scalar(value: object) -> int | float | str | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return value


def _number_text(raw: msgspec.Raw) -> Number:
    text = bytes(raw).decode("utf-8", errors="replace").strip()
    return text.strip('"').strip() if text and text != "null" else None

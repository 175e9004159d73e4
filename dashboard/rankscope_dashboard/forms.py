"""multipart/form-data as a stream: fields of a run, and its files straight onto the disk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from rankscope_dashboard.limits import Limits
from rankscope_dashboard.receive import SpoolFile, body_blocks, check_length, too_large
from rankscope_dashboard.refusal import RefusalError
from rankscope_dashboard.uploads import Uploads, parse_tags

_LONGEST_FIELD = 4096
_MOST_FIELDS = 200


@dataclass(slots=True)
class _Part:
    """One part of the form while it is read: its headers, then pieces of its content."""

    headers: dict[bytes, bytes] = field(default_factory=dict)

    def options(self) -> dict[bytes, bytes]:
        """The parameters of Content-Disposition."""
        return parse_options_header(self.headers.get(b"content-disposition", b""))[1]


async def receive_form(request: Request, uploads: Uploads, limits: Limits, run_id: str) -> None:
    """Fill an upload from a form: every file in it, and the fields name, tag (repeated) and keep_traces.

    Raises:
        RefusalError: it is no such form, or passes a limit.
        ClientDisconnect: the client went away.
    """
    fields: list[tuple[str, str]] = []
    check_length(request, limits.upload_bytes)
    with uploads.counted():
        async with AsyncExitStack() as stack:
            sink: SpoolFile | bytearray = bytearray()
            name = ""
            async for event, value in _events(request, limits):
                if event == "begin":
                    options = value.options()
                    name = options.get(b"name", b"").decode("utf-8", "replace")
                    sink = bytearray()
                    if b"filename" in options:
                        number = uploads.add_file(
                            run_id, options[b"filename"].decode("utf-8", "replace") or name
                        )
                        sink = await stack.enter_async_context(SpoolFile(uploads.path_of(run_id, number)))
                elif event == "data":
                    await _add(sink, value, limits)
                elif isinstance(sink, SpoolFile):
                    await stack.aclose()
                else:
                    fields.append((name, sink.decode("utf-8", "replace")))
                    if len(fields) > _MOST_FIELDS:
                        raise RefusalError(400, "bad-form", f"more than {_MOST_FIELDS} fields")
    values = dict(fields)
    uploads.describe(
        run_id,
        values.get("name", ""),
        parse_tags([value for key, value in fields if key == "tag" and value]),
        keep_traces=values.get("keep_traces", "true").lower() not in ("false", "0", "no"),
    )


async def _add(sink: SpoolFile | bytearray, block: bytes, limits: Limits) -> None:
    if isinstance(sink, SpoolFile):
        if sink.size_bytes + len(block) > limits.file_bytes:
            raise too_large(sink.size_bytes + len(block), limits.file_bytes)
        await sink.write(block)
    else:
        sink += block
        if len(sink) > _LONGEST_FIELD:
            raise RefusalError(400, "bad-form", f"a field longer than {_LONGEST_FIELD} bytes")


async def _events(request: Request, limits: Limits) -> AsyncIterator[tuple[str, Any]]:
    """("begin", part), ("data", bytes) and ("end", None) of each part in order."""
    _, options = parse_options_header(request.headers.get("content-type", ""))
    if not options.get(b"boundary"):
        raise RefusalError(400, "bad-form", "the form has no boundary")
    collected: list[tuple[str, Any]] = []
    parser = MultipartParser(options[b"boundary"], _Collector(collected).callbacks())
    try:
        async for block in body_blocks(request, limits, limits.upload_bytes):
            parser.write(block)
            for event in collected:
                yield event
            collected.clear()
        parser.finalize()
    except FormParserError as error:
        raise RefusalError(400, "bad-form", f"the form is malformed: {error}") from error


class _Collector:
    """Turns the parser's callbacks into a list of events."""

    def __init__(self, events: list[tuple[str, Any]]) -> None:
        self._events = events
        self._part = _Part()
        self._field = self._value = b""

    def callbacks(self) -> Any:  # noqa: ANN401 - the parser's own mapping of names to functions
        """The parser's callbacks."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._on_field,
            "on_header_value": self._on_value,
            "on_header_end": self._end_header,
            "on_headers_finished": lambda: self._events.append(("begin", self._part)),
            "on_part_data": lambda data, start, end: self._events.append(("data", data[start:end])),
            "on_part_end": lambda: self._events.append(("end", None)),
        }

    def _begin(self) -> None:
        self._part = _Part()
        self._field = self._value = b""

    def _on_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        self._part.headers[self._field.lower()] = self._value
        self._field = self._value = b""

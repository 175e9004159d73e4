"""The OpenAPI 3.1 description of the upload interface."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from rankscope import __version__
from rankscope.store import RunRecord, RunStatus
from rankscope_dashboard.limits import Limits

_REFERENCE = "#/components/schemas/{name}"
_PATH_PARAMETERS = {
    name: {"name": name, "in": "path", "required": True, "schema": schema}
    for name, schema in (
        ("run_id", {"type": "string"}),
        ("number", {"type": "integer", "minimum": 0}),
        ("name", {"type": "string"}),
    )
}


def describe_api(limits: Limits) -> dict[str, Any]:
    """The description, with this server's limits."""
    schemas, components = msgspec.json.schema_components([RunRecord, RunStatus], ref_template=_REFERENCE)
    record, status = schemas
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rankscope dashboard",
            "version": __version__,
            "description": _describe_limits(limits),
        },
        "security": [{"token": []}],
        "paths": _paths(record, status),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {**components, "Refusal": _REFUSAL, "File": _FILE, "NewUpload": _NEW_UPLOAD},
        },
    }


def _describe_limits(limits: Limits) -> str:
    return (
        "Upload traces, list runs, fetch reports. Limits: "
        f"{limits.files} files, {limits.file_bytes} bytes per file, {limits.upload_bytes} bytes per run, "
        f"{limits.unpacked_file_bytes} bytes per unpacked file."
    )


_REFUSAL = {
    "type": "object",
    "required": ["error", "message"],
    "properties": {"error": {"type": "string"}, "message": {"type": "string"}},
}
_FILE = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "name": {"type": "string"},
        "size_bytes": {"type": ["integer", "null"]},
        "received_bytes": {"type": "integer"},
    },
}
_NEW_UPLOAD = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "keep_traces": {"type": "boolean", "default": True},
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "size_bytes"],
                "properties": {"name": {"type": "string"}, "size_bytes": {"type": "integer"}},
            },
        },
    },
}


_FILES = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": {"$ref": _REFERENCE.format(name="File")}}},
}
_BINARY = {"type": "string", "format": "binary"}


def _paths(record: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    """Path -> verb -> operation."""
    paths: dict[str, Any] = {}
    for request, operation in (*_whole_runs(record, status), *_parts_of_runs(status)):
        verb, path = request.split(" ")
        named = [_PATH_PARAMETERS[name] for name in re.findall(r"{(\w+)}", path)]
        operation["parameters"] = [*named, *operation["parameters"]]
        paths.setdefault(f"/api/v1{path}", {})[verb] = operation
    return paths


def _whole_runs(record: dict[str, Any], status: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    listed = {"type": "object", "properties": {"runs": _list(record), "pending": _list(status)}}
    shown = {"allOf": [status, {"type": "object", "properties": {"record": record}}]}
    tag = _query("tag", repeated=True)
    yield "get /health", {**_operation("Whether the server lives", _json(200, {})), "security": []}
    yield (
        "get /runs",
        _operation(
            "Runs, newest first, and those on their way",
            _json(200, listed),
            _query("query"),
            tag,
            _query("limit"),
        ),
    )
    yield (
        "post /runs",
        _operation(
            "Begin a resumable upload (JSON), or send a whole run at once",
            _json(201, _FILES) | _json(202, status),
            _query("name"),
            tag,
            _query("file"),
            body={
                "application/json": _schema("NewUpload"),
                "multipart/form-data": {"type": "object"},
                "application/octet-stream": _BINARY,
            },
        ),
    )
    yield "get /runs/{run_id}", _operation("How far a run has come, and its record", _json(200, shown))
    yield "delete /runs/{run_id}", _operation("Remove a run", {"204": {"description": "removed"}})


def _parts_of_runs(status: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "get /runs/{run_id}/files", _operation("How much of each file has arrived", _json(200, _FILES))
    yield (
        "put /runs/{run_id}/files/{number}",
        _operation(
            "Append to a file, from the offset in Upload-Offset",
            _json(200, _schema("File")),
            _header("Upload-Offset"),
            body={"application/octet-stream": _BINARY},
        ),
    )
    yield "post /runs/{run_id}/complete", _operation("Queue the analysis", _json(202, status))
    yield (
        "get /runs/{run_id}/report",
        _operation(
            "The report: format is json, markdown or html", _json(200, {"type": "object"}), _query("format")
        ),
    )
    parquet = _content(200, "application/vnd.apache.parquet", _BINARY)
    yield "get /runs/{run_id}/tables/{name}", _operation("A table as Parquet", parquet)
    trace = _content(200, "application/gzip", _BINARY)
    yield "get /runs/{run_id}/trace", _operation("All ranks as one Chrome trace", trace)


def _operation(
    summary: str,
    answers: dict[str, Any],
    *parameters: dict[str, Any],
    body: dict[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """An operation; `body` maps the media types that it takes to their schemas."""
    refused = _content("default", "application/json", _schema("Refusal"))
    operation = {"summary": summary, "parameters": parameters, "responses": {**answers, **refused}}
    if body is not None:
        content = {media_type: {"schema": schema} for media_type, schema in body.items()}
        operation["requestBody"] = {"content": content}
    return operation


def _json(status: int, schema: dict[str, Any]) -> dict[str, Any]:
    return _content(status, "application/json", schema)


def _content(status: int | str, media_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    description = "refused" if status == "default" else "done"
    return {str(status): {"description": description, "content": {media_type: {"schema": schema}}}}


def _schema(name: str) -> dict[str, Any]:
    return {"$ref": _REFERENCE.format(name=name)}


def _list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def _query(name: str, *, repeated: bool = False) -> dict[str, Any]:
    schema = _list({"type": "string"}) if repeated else {"type": "string"}
    return {"name": name, "in": "query", "schema": schema}


def _header(name: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "schema": {"type": "integer", "minimum": 0}}

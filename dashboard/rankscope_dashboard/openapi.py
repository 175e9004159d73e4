"""The OpenAPI 3.1 description of the upload interface."""

from __future__ import annotations

from typing import Any

import msgspec

from rankscope import __version__
from rankscope.store import RunRecord, RunStatus
from rankscope_dashboard.limits import Limits

_REFERENCE = "#/components/schemas/{name}"
_RUN_ID = {"name": "run_id", "in": "path", "required": True, "schema": {"type": "string"}}
_NUMBER = {"name": "number", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}}
_TABLE = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}


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


def _paths(record: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    run = "/api/v1/runs/{run_id}"
    files = {"type": "object", "properties": {"files": _list(_schema("File"))}}
    listed = {"type": "object", "properties": {"runs": _list(record), "pending": _list(status)}}
    shown = {"allOf": [status, {"type": "object", "properties": {"record": record}}]}
    binary = {"type": "string", "format": "binary"}
    return {
        "/api/v1/health": {"get": {**_operation("Whether the server lives", _json(200, {})), "security": []}},
        "/api/v1/runs": {
            "get": _operation(
                "Runs, newest first, and those on their way",
                _json(200, listed),
                parameters=[_query("query"), _query("tag", repeated=True), _query("limit")],
            ),
            "post": {
                **_operation(
                    "Begin a resumable upload (JSON), or send a whole run at once",
                    {**_json(201, files), **_json(202, status)},
                    parameters=[_query("name"), _query("tag", repeated=True), _query("file")],
                ),
                "requestBody": {
                    "content": {
                        "application/json": {"schema": _schema("NewUpload")},
                        "multipart/form-data": {"schema": {"type": "object"}},
                        "application/octet-stream": {"schema": binary},
                    }
                },
            },
        },
        run: {
            "get": _operation(
                "How far a run has come, and its record", _json(200, shown), parameters=[_RUN_ID]
            ),
            "delete": _operation("Remove a run", {"204": {"description": "removed"}}, parameters=[_RUN_ID]),
        },
        f"{run}/files": {
            "get": _operation("How much of each file has arrived", _json(200, files), parameters=[_RUN_ID])
        },
        f"{run}/files/{{number}}": {
            "put": {
                **_operation(
                    "Append to a file, from the offset in Upload-Offset",
                    _json(200, _schema("File")),
                    parameters=[_RUN_ID, _NUMBER, _header("Upload-Offset")],
                ),
                "requestBody": {"content": {"application/octet-stream": {"schema": binary}}},
            }
        },
        f"{run}/complete": {
            "post": _operation("Queue the analysis", _json(202, status), parameters=[_RUN_ID])
        },
        f"{run}/report": {
            "get": _operation(
                "The report: format is json, markdown or html",
                _json(200, {"type": "object"}),
                parameters=[_RUN_ID, _query("format")],
            )
        },
        f"{run}/tables/{{name}}": {
            "get": _operation(
                "A table as Parquet",
                _content(200, "application/vnd.apache.parquet", binary),
                parameters=[_RUN_ID, _TABLE],
            )
        },
        f"{run}/trace": {
            "get": _operation(
                "All ranks as one Chrome trace",
                _content(200, "application/gzip", binary),
                parameters=[_RUN_ID],
            )
        },
    }


def _operation(
    summary: str, answers: dict[str, Any], *, parameters: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    refused = _content("default", "application/json", _schema("Refusal"))
    return {"summary": summary, "parameters": parameters or [], "responses": {**answers, **refused}}


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

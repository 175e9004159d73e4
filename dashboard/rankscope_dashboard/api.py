"""The routes under /api/v1: upload, list, report, tables, merged trace, delete."""

from __future__ import annotations

import errno
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import msgspec
from anyio import to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from rankscope import __version__
from rankscope.errors import InputError, RunNotFoundError
from rankscope.renderers.to_markdown import render_markdown
from rankscope.store import JobFile, RunStatus, Store
from rankscope_dashboard.forms import receive_form
from rankscope_dashboard.limits import Limits
from rankscope_dashboard.merged import MergedTraces
from rankscope_dashboard.openapi import describe_api
from rankscope_dashboard.pages import render_page
from rankscope_dashboard.receive import check_length
from rankscope_dashboard.refusal import RefusalError
from rankscope_dashboard.uploads import Uploads, parse_tags

_LOGGER = logging.getLogger(__name__)

PREFIX = "/api/v1"
_MOST_JSON_BYTES = 8 << 20
_MOST_LISTED = 10_000

Handler = Callable[[Request], Awaitable[Response]]


class _FileWanted(msgspec.Struct):
    name: str
    size_bytes: int


class _RunWanted(msgspec.Struct):
    """Body of a POST that begins a resumable upload."""

    name: str = ""
    tags: dict[str, str] = {}
    keep_traces: bool = True
    files: list[_FileWanted] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """What the routes work with.

    Attributes:
        store: the runs.
        uploads: runs on their way.
        limits: what is taken from a client.
        merged: merged traces, made when asked for.
    """

    store: Store
    uploads: Uploads
    limits: Limits
    merged: MergedTraces

    def routes(self) -> list[Route]:
        """All routes."""
        run, file = PREFIX + "/runs/{run_id}", PREFIX + "/runs/{run_id}/files"
        return [
            Route(f"{PREFIX}/health", _guarded(self.health), methods=["GET"]),
            Route(f"{PREFIX}/openapi.json", _guarded(self.openapi), methods=["GET"]),
            Route(f"{PREFIX}/runs", _guarded(self.list_runs), methods=["GET"]),
            Route(f"{PREFIX}/runs", _guarded(self.post_run), methods=["POST"]),
            Route(run, _guarded(self.show_run), methods=["GET"]),
            Route(run, _guarded(self.delete_run), methods=["DELETE"]),
            Route(file, _guarded(self.list_files), methods=["GET"]),
            Route(file + "/{number:int}", _guarded(self.put_file), methods=["PUT"]),
            Route(f"{run}/complete", _guarded(self.complete), methods=["POST"]),
            Route(f"{run}/report", _guarded(self.report), methods=["GET"]),
            Route(f"{run}/tables/{{name}}", _guarded(self.table), methods=["GET"]),
            Route(f"{run}/trace", _guarded(self.trace), methods=["GET"]),
        ]

    async def health(self, _request: Request) -> Response:
        """That the server lives, and its version."""
        return _json({"status": "ok", "version": __version__})

    async def openapi(self, _request: Request) -> Response:
        """The description of this interface."""
        return _json(describe_api(self.limits))

    async def list_runs(self, request: Request) -> Response:
        """Runs in the store, newest first, and those on their way."""
        query = request.query_params.get("query", "")
        tags = parse_tags(request.query_params.getlist("tag"))
        limit = _number(request.query_params.get("limit", "1000"), "limit", _MOST_LISTED)
        records = await to_thread.run_sync(lambda: self.store.list_runs(query, tags=tags, limit=limit))
        pending = await to_thread.run_sync(self.store.pending)
        return _json({"runs": records, "pending": pending})

    async def post_run(self, request: Request) -> Response:
        """Begin a resumable upload (JSON), or take a whole run at once (form, archive or one trace)."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json" and "file" not in request.query_params:
            return await self._begin(request)
        job = await to_thread.run_sync(lambda: self.uploads.begin("", {}, []))
        try:
            if kind == "multipart/form-data":
                await receive_form(request, self.uploads, self.limits, job.run_id)
            else:
                await self._receive_body(request, job.run_id)
            return _accepted(await to_thread.run_sync(self.uploads.complete, job.run_id))
        except (RefusalError, ClientDisconnect, OSError):
            self.uploads.drop(job.run_id)
            raise

    async def _begin(self, request: Request) -> Response:
        try:
            wanted = msgspec.json.decode(await _small_body(request), type=_RunWanted)
        except msgspec.MsgspecError as error:
            raise RefusalError(400, "bad-request", f"the body is not what is expected: {error}") from error
        files = [JobFile(name=file.name, size_bytes=file.size_bytes) for file in wanted.files]
        job = await to_thread.run_sync(
            lambda: self.uploads.begin(wanted.name, wanted.tags, files, keep_traces=wanted.keep_traces)
        )
        body = {"run_id": job.run_id, "state": job.state, "files": self.uploads.files(job.run_id)}
        return _json(body, 201, {"location": f"{PREFIX}/runs/{job.run_id}"})

    async def _receive_body(self, request: Request, run_id: str) -> None:
        given = request.query_params
        self.uploads.describe(
            run_id,
            given.get("name", ""),
            parse_tags(given.getlist("tag")),
            keep_traces=given.get("keep_traces", "true") != "false",
        )
        number = self.uploads.add_file(run_id, given.get("file", "upload"))
        await self.uploads.receive(request, run_id, number, 0)

    async def list_files(self, request: Request) -> Response:
        """How much of each file of an upload has arrived."""
        return _json({"files": self.uploads.files(_run_id(request))})

    async def put_file(self, request: Request) -> Response:
        """Append to a file of an upload, from the offset in the header Upload-Offset."""
        offset = _number(request.headers.get("upload-offset", "0"), "Upload-Offset", 1 << 62)
        number: int = request.path_params["number"]
        received = await self.uploads.receive(request, _run_id(request), number, offset)
        return _json({"number": number, "received_bytes": received})

    async def complete(self, request: Request) -> Response:
        """Queue an upload whose files have all arrived."""
        return _accepted(await to_thread.run_sync(self.uploads.complete, _run_id(request)))

    async def show_run(self, request: Request) -> Response:
        """How far a run has come, and its record once it is ready."""
        run_id = _run_id(request)
        status = await to_thread.run_sync(self.store.status, run_id)
        record = await to_thread.run_sync(self.store.record, run_id) if status.state == "ready" else None
        return _json({**msgspec.to_builtins(status), "record": record})

    async def delete_run(self, request: Request) -> Response:
        """Remove a run, or an upload on its way."""
        run_id = _run_id(request)
        if not await to_thread.run_sync(self.store.delete, run_id):
            raise RunNotFoundError(f"there is no run {run_id}")
        return Response(status_code=204)

    async def report(self, request: Request) -> Response:
        """The report as JSON, Markdown or HTML."""
        run_id, wanted = _run_id(request), request.query_params.get("format", "json")
        if wanted == "json":
            text = await to_thread.run_sync(self.store.report_text, run_id)
            return Response(text, media_type="application/json")
        if wanted == "markdown":
            markdown = await to_thread.run_sync(lambda: render_markdown(self.store.report(run_id)))
            return _download(markdown.encode(), "text/markdown", f"{run_id}.md")
        if wanted == "html":
            page = await to_thread.run_sync(render_page, self.store, run_id)
            return _download(page.encode(), "text/html", f"{run_id}.html")
        raise RefusalError(400, "bad-format", "format is json, markdown or html")

    async def table(self, request: Request) -> Response:
        """A table as Parquet."""
        run_id, name = _run_id(request), request.path_params["name"]
        content = await to_thread.run_sync(self.store.table_bytes, run_id, name)
        return _download(content, "application/vnd.apache.parquet", f"{run_id}-{name}.parquet")

    async def trace(self, request: Request) -> Response:
        """All ranks as one Chrome trace, gzipped, for Perfetto."""
        run_id = _run_id(request)
        path = await self.merged.get(run_id)
        return FileResponse(path, media_type="application/gzip", filename=f"{run_id}.trace.json.gz")


def _guarded(handler: Handler) -> Handler:
    """The handler, with refusals and missing runs turned into answers."""

    @wraps(handler)
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except RefusalError as refusal:
            return _refusal(refusal)
        except RunNotFoundError as error:
            return _refusal(RefusalError(404, error.slug, str(error)))
        except InputError as error:
            return _refusal(RefusalError(422, error.slug, str(error)))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except OSError as error:
            return _refusal(_storage_refusal(error))

    return answer


def _storage_refusal(error: OSError) -> RefusalError:
    if isinstance(error, FileNotFoundError):
        return RefusalError(404, "run-not-found", "the run was deleted meanwhile")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RefusalError(507, "disk-full", "the server's disk is full; what arrived is kept")
    _LOGGER.warning("the server's storage cannot be used: %s", error)
    return RefusalError(503, "storage", f"the server's storage cannot be used: {error.strerror or error}")


def _refusal(refusal: RefusalError) -> Response:
    # What the client still sends is not read, so the connection cannot be used again.
    headers = {"connection": "close"} if refusal.status in (408, 413, 503, 507) else {}
    if refusal.status == 503:
        headers["retry-after"] = "5"
    return _json(refusal.as_json(), refusal.status, headers)


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:  # noqa: ANN401
    return Response(msgspec.json.encode(value), status, headers, "application/json")


def _accepted(status: RunStatus) -> Response:
    return _json(status, 202, {"location": f"{PREFIX}/runs/{status.run_id}"})


def _download(content: bytes, media_type: str, name: str) -> Response:
    return Response(
        content, media_type=media_type, headers={"content-disposition": f'attachment; filename="{name}"'}
    )


def _run_id(request: Request) -> str:
    return str(request.path_params["run_id"])


def _number(text: str, name: str, largest: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise RefusalError(400, "bad-request", f"{name} is {text[:40]!r} and should be a whole number")
    return min(int(text), largest)


async def _small_body(request: Request) -> bytes:
    check_length(request, _MOST_JSON_BYTES)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_JSON_BYTES:
            raise RefusalError(413, "too-large", f"a JSON body of more than {_MOST_JSON_BYTES} bytes")
    return bytes(body)

"""Runs sent to a dashboard: file by file, resumed where the connection broke. Standard library only.

`rankscope push` and `rankscope.Collector(push=...)` both use it, the latter inside training.
"""

from __future__ import annotations

import http.client
import json
import random
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rankscope.errors import InputError, UsageError

OnSent = Callable[[int], None]
"""Called with the bytes that have arrived since the last call."""

_PIECE_BYTES = 8 << 20
_ANSWER_BYTES = 64 << 20
_CONNECT_SECONDS = 60.0
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 15.0
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A dashboard.

    Attributes:
        url: its address, such as https://dashboard.example:8501.
        token: its token; None where it needs none.
        patience_seconds: how long to try again without any progress.
    """

    url: str
    token: str | None = None
    patience_seconds: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedRun:
    """A run that a dashboard has taken: its id, and the link to it."""

    run_id: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status and JSON body of an answer."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)


def push_run(
    files: Sequence[Path],
    to: Destination,
    *,
    name: str = "",
    tags: Mapping[str, str] | None = None,
    keep_traces: bool = True,
    on_sent: OnSent | None = None,
) -> PushedRun:
    """Send the files of a run; it is in the dashboard's queue when this returns.

    Args:
        files: its trace files.
        to: where.
        name, tags: what it is called there.
        keep_traces: whether the dashboard keeps the files.
        on_sent: told of progress.

    Raises:
        UsageError: the address is none.
        InputError: the dashboard refuses the run, or could not be reached for too long.
        OSError: a file cannot be read.
    """
    sizes = [{"name": path.name, "size_bytes": path.stat().st_size} for path in files]
    wanted = {"name": name, "tags": dict(tags or {}), "keep_traces": keep_traces, "files": sizes}
    with closing(Dashboard(to)) as dashboard:
        content_type = {"content-type": "application/json"}
        begun = dashboard.ask("POST", "/runs", json.dumps(wanted).encode(), content_type)
        run_id = str(begun.get("run_id"))
        for number, path in enumerate(files):
            _send_file(dashboard, run_id, number, path, on_sent or (lambda _bytes: None))
        dashboard.ask("POST", f"/runs/{run_id}/complete")
    return PushedRun(run_id=run_id, link=f"{to.url.rstrip('/')}/?run={run_id}&view=overview")


def wait_for_run(run: PushedRun, to: Destination, on_state: Callable[[dict[str, Any]], None]) -> None:
    """Return when the dashboard has analysed a run.

    Args:
        run: the run.
        to: the dashboard.
        on_state: called with what the dashboard says of it (`state`, `progress`, `stage`), again and again.

    Raises:
        InputError: the analysis failed; the message says why.
    """
    with closing(Dashboard(to)) as dashboard:
        while True:
            status = dashboard.ask("GET", f"/runs/{run.run_id}")
            on_state(status)
            if status.get("state") == "ready":
                return
            if status.get("state") == "failed":
                raise InputError(f"the dashboard could not analyse the run: {status.get('message')}")
            time.sleep(_POLL_SECONDS)


def _send_file(dashboard: Dashboard, run_id: str, number: int, path: Path, on_sent: OnSent) -> None:
    target, size_bytes = f"/runs/{run_id}/files/{number}", path.stat().st_size
    received = 0
    with path.open("rb") as file:
        while received < size_bytes:
            file.seek(received)
            piece = file.read(min(_PIECE_BYTES, size_bytes - received))
            if not piece:
                raise InputError(f"{path} became shorter while it was sent; push again once it is complete")
            answer = dashboard.ask("PUT", target, piece, {"upload-offset": str(received)}, may_conflict=True)
            arrived = int(answer["received_bytes"])
            on_sent(arrived - received)
            received = arrived


class Dashboard:
    """The upload interface of a dashboard, over one connection that is made again when it breaks."""

    def __init__(self, to: Destination) -> None:
        parts = urlsplit(to.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"{to.url!r} is no address of a dashboard; expected one such as http://host:8501"
            )
        self._to = to
        self._is_tls = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/") + "/api/v1"
        self._connection: http.client.HTTPConnection | None = None

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        may_conflict: bool = False,
    ) -> dict[str, Any]:
        """The body of the answer to a request, tried again where that may help.

        Args:
            method, path: of the request, the path below /api/v1.
            body: what to send.
            headers: more headers.
            may_conflict: whether "that is not where the file ends" (409 with `received_bytes`) is an answer too.

        Raises:
            InputError: the dashboard refuses, or cannot be reached for too long.
        """
        ends_at = time.monotonic() + self._to.patience_seconds
        pause, reason = _FIRST_PAUSE_SECONDS, ""
        while True:
            try:
                answer = self._ask_once(method, path, body, dict(headers or {}))
            except ssl.SSLCertVerificationError as error:
                raise InputError(f"the certificate of {self._to.url} cannot be trusted: {error}") from error
            except (OSError, http.client.HTTPException) as error:
                self.close()
                reason = str(error) or type(error).__name__
            else:
                is_busy = answer.status == 409 and answer.body.get("error") == "busy"
                if answer.status < 300 or (may_conflict and "received_bytes" in answer.body):
                    return answer.body
                if answer.status not in _TRY_AGAIN and not is_busy:
                    raise self._refused(answer)
                reason = str(answer.body.get("message") or f"status {answer.status}")
            if time.monotonic() + pause > ends_at:
                raise InputError(
                    f"{self._to.url} could not be reached for {self._to.patience_seconds:.0f} s: {reason}. Is the "
                    "dashboard running there, and is the address right?"
                )
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _ask_once(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        if self._connection is None:
            self._connection = self._connect()
        if self._to.token is not None:
            headers["authorization"] = f"Bearer {self._to.token}"
        self._connection.request(method, self._prefix + path, body, headers)
        response = self._connection.getresponse()
        content = response.read(_ANSWER_BYTES)
        if response.will_close:
            self.close()
        try:
            decoded = json.loads(content) if content else {}
        except ValueError:
            decoded = {}
        return Answer(status=response.status, body=decoded if isinstance(decoded, dict) else {})

    def _connect(self) -> http.client.HTTPConnection:
        if self._is_tls:
            return http.client.HTTPSConnection(self._host, self._port, timeout=_CONNECT_SECONDS)
        return http.client.HTTPConnection(self._host, self._port, timeout=_CONNECT_SECONDS)

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _refused(self, answer: Answer) -> InputError:
        message = answer.body.get("message") or f"status {answer.status}; is that the address of a dashboard?"
        hint = ""
        if answer.status == 401:
            hint = ". Put the dashboard's token into RANKSCOPE_TOKEN or a file given with --token-file"
        return InputError(f"{self._to.url} refuses: {message}{hint}")

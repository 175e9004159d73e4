"""The real dashboard server in a process of its own, which tests may kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec

_TESTS = Path(__file__).resolve().parents[1]
_PATIENCE_SECONDS = 90.0


@dataclass(slots=True)
class DashboardServer:
    """A running server."""

    process: subprocess.Popen[bytes]
    url: str
    store: str

    def client(self, token: str | None = None) -> httpx.Client:
        """A client of its interface."""
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=60.0)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End it as Ctrl-C would."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=_PATIENCE_SECONDS)


def start_server(store: Path, *, limits: dict[str, Any] | None = None, **options: Any) -> DashboardServer:
    """A server that answers; `limits` and `options` as in `Limits` and `ServerOptions`."""
    given = {"store": str(store), "port": 0, **options, "limits": limits or {}}
    port_file = store.parent / f"port-{time.monotonic_ns()}"
    process = subprocess.Popen(
        [sys.executable, "-m", "support.dashboard_server", json.dumps(given), str(port_file)],
        cwd=_TESTS,
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
    )
    server = DashboardServer(process, "", str(store))
    wait_until(lambda: port_file.exists() or process.poll() is not None, "the server starts")
    assert process.poll() is None, "the server ended at once"
    server.url = f"http://127.0.0.1:{port_file.read_text()}"
    wait_until(lambda: _is_healthy(server) or process.poll() is not None, "the server answers")
    assert process.poll() is None, "the server ended at once"
    return server


@contextmanager
def running_server(store: Path, **options: Any) -> Iterator[DashboardServer]:
    """A server for the time of the block."""
    server = start_server(store, **options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


def wait_until(is_so: Any, what: str, *, patience: float = _PATIENCE_SECONDS) -> None:
    """Return as soon as `is_so()` holds, fail when it does not come true."""
    ends = time.monotonic() + patience
    while not is_so():
        assert time.monotonic() < ends, f"waited in vain until {what}"
        time.sleep(0.05)


def wait_for_state(client: httpx.Client, run_id: str, state: str) -> dict[str, Any]:
    """What the server says of a run, once it is ready or failed; it must be `state`."""
    found: dict[str, Any] = {}

    def is_over() -> bool:
        nonlocal found
        found = client.get(f"/runs/{run_id}").json()
        return found.get("state") in ("ready", "failed")

    wait_until(is_over, f"run {run_id} is over")
    assert found["state"] == state, found
    return found


def _is_healthy(server: DashboardServer) -> bool:
    try:
        return httpx.get(f"{server.url}/api/v1/health").status_code == 200
    except httpx.TransportError:
        return False


def _serve(options: str, port_file: Path) -> None:
    from rankscope_dashboard.server import ServerOptions, listen, serve

    given = msgspec.json.decode(options, type=ServerOptions)
    listener = listen(given.host, given.port)
    part = port_file.with_suffix(".part")
    part.write_text(str(listener.getsockname()[1]))
    part.replace(port_file)
    serve(given, listener)


if __name__ == "__main__":
    _serve(sys.argv[1], Path(sys.argv[2]))

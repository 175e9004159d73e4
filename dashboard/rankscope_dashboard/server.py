"""One ASGI application: the pages of Streamlit, the upload interface, and who may see them."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn
from anyio import to_thread
from starlette.middleware import Middleware
from starlette.routing import Route

from rankscope.errors import UsageError
from rankscope.store import Store, open_store
from rankscope_dashboard.api import Api
from rankscope_dashboard.auth import LOGIN_PATH, SHORTEST_TOKEN, Access, Login
from rankscope_dashboard.limits import Limits, Retention
from rankscope_dashboard.merged import MergedTraces
from rankscope_dashboard.supervisor import Supervisor
from rankscope_dashboard.theme import THEME
from rankscope_dashboard.uploads import Uploads

STORE_VARIABLE = "RANKSCOPE_STORE"
SPOOL_VARIABLE = "RANKSCOPE_SPOOL"
"""How the pages, which Streamlit runs as a script, find the store."""

_SCRIPT = Path(__file__).with_name("app.py")
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_GRACE_SECONDS = 5

# Streamlit's own settings: nothing goes to its makers, no file is watched, and its uploader, which would hold
# files in memory, takes next to nothing.
_STREAMLIT = {
    "browser.gatherUsageStats": False,
    "client.showErrorDetails": "type",
    "client.toolbarMode": "viewer",
    "global.developmentMode": False,
    "runner.magicEnabled": False,
    "server.fileWatcherType": "none",
    "server.headless": True,
    "server.maxUploadSize": 1,
    "server.runOnSave": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How the server runs.

    Attributes:
        store: folder or URL of the store.
        spool: folder for uploads on their way; the store's default unless given.
        host, port: where it listens; port 0 takes a free one.
        token: what clients must know; None lets everybody on this machine in.
        limits: what is taken from clients.
        retention: which runs are deleted after a while.
    """

    store: str
    spool: str | None = None
    host: str = "127.0.0.1"
    port: int = 8501
    token: str | None = None
    limits: Limits = field(default_factory=Limits)
    retention: Retention = field(default_factory=Retention)


def check_options(options: ServerOptions) -> None:
    """Refuse options that would open the runs to everybody.

    Raises:
        UsageError: no token though others can reach the server, or one that can be guessed.
    """
    if options.token is None and not is_loopback(options.host):
        raise UsageError(
            f"--host {options.host} can be reached from other machines, so a token is required: put a secret of at "
            f"least {SHORTEST_TOKEN} characters into RANKSCOPE_TOKEN or into a file given with --token-file"
        )
    if options.token is not None and len(options.token) < SHORTEST_TOKEN:
        raise UsageError(
            f"the token has {len(options.token)} characters, and can be guessed; take at least {SHORTEST_TOKEN}, from "
            "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` for one"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there.

    >>> is_loopback("localhost"), is_loopback("127.8.8.8"), is_loopback("0.0.0.0"), is_loopback("")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def build_app(options: ServerOptions, *, store: Store | None = None) -> Any:  # noqa: ANN401 - streamlit's App
    """The ASGI application.

    Raises:
        UsageError: the options are unsafe, or another server uses the spool folder.
        InputError: the store cannot be opened.
    """
    from streamlit import config
    from streamlit.starlette import App

    check_options(options)
    store = store or open_store(options.store, spool=options.spool)
    os.environ[STORE_VARIABLE], os.environ[SPOOL_VARIABLE] = store.url, str(store.spool)
    for name, value in (_STREAMLIT | THEME).items():
        config.set_option(name, value)
    supervisor = Supervisor(store, options.limits, options.retention)
    uploads = Uploads(store, options.limits, supervisor.notify)
    api = Api(
        store=store,
        uploads=uploads,
        limits=options.limits,
        merged=MergedTraces(store, options.limits),
    )
    login = Login(options.token)
    routes = [
        *api.routes(),
        Route(LOGIN_PATH, login.show, methods=["GET"]),
        Route(LOGIN_PATH, login.accept, methods=["POST"]),
    ]
    access = Middleware(Access, token=options.token, hosts=_LOOPBACK_NAMES | {options.host.lower()})

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:  # noqa: ANN401
        await to_thread.run_sync(supervisor.start)
        try:
            yield
        finally:
            await to_thread.run_sync(supervisor.stop)

    return App(_SCRIPT, routes=routes, middleware=[access], lifespan=lifespan)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there.

    Raises:
        UsageError: the address is taken or does not exist.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; give another --host or --port"
        ) from error
    return listener


def serve(options: ServerOptions, listener: socket.socket) -> None:
    """Serve until interrupted."""
    config = uvicorn.Config(
        build_app(options),
        log_level="warning",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        server_header=False,
        ws_max_size=16 << 20,
    )
    uvicorn.Server(config).run(sockets=[listener])

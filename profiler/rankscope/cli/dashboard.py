"""`rankscope dashboard`: the dashboard and its upload interface on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from rankscope.cli.output import say
from rankscope.errors import UsageError

TOKEN_VARIABLE = "RANKSCOPE_TOKEN"  # noqa: S105 - the name of a variable
DEFAULT_STORE = "rankscope-runs"
_GIB = 1 << 30
_DAY_SECONDS = 24 * 3600


_Store = Annotated[
    str, typer.Option(help="Folder or fsspec URL (s3://bucket/prefix) of the runs; made if absent.")
]
_Host = Annotated[str, typer.Option(help="Address to listen on; any but this machine's own needs a token.")]
_Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")]
_TokenFile = Annotated[
    Path | None,
    typer.Option(show_default=f"the variable {TOKEN_VARIABLE}", help="File that holds the token."),
]
_Spool = Annotated[
    Path | None,
    typer.Option(show_default="in the store, or the user's cache", help="Folder for uploads on their way."),
]
_MaxUpload = Annotated[float, typer.Option(min=0.001, help="Most GiB of one run as it is sent.")]
_MaxFile = Annotated[float, typer.Option(min=0.001, help="Most GiB of one file as it is sent.")]
_MaxUnpacked = Annotated[float, typer.Option(min=0.001, help="Most GiB of one file once unpacked.")]
_AnalysisSeconds = Annotated[float, typer.Option(min=1, help="Most time for one analysis.")]
_KeepRuns = Annotated[int | None, typer.Option(min=1, help="Delete the oldest runs above this number.")]
_KeepDays = Annotated[float | None, typer.Option(min=0, help="Delete runs that are older.")]
_RebuildIndex = Annotated[bool, typer.Option("--rebuild-index", help="Make the store's index anew first.")]


def dashboard(
    store: _Store = DEFAULT_STORE,
    host: _Host = "127.0.0.1",
    port: _Port = 8501,
    token_file: _TokenFile = None,
    spool: _Spool = None,
    max_upload: _MaxUpload = 16.0,
    max_file: _MaxFile = 4.0,
    max_unpacked: _MaxUnpacked = 16.0,
    analysis_seconds: _AnalysisSeconds = 1800.0,
    keep_runs: _KeepRuns = None,
    keep_days: _KeepDays = None,
    rebuild_index: _RebuildIndex = False,
) -> None:
    """Upload runs, look at them and share links, in the browser."""
    try:
        from rankscope_dashboard.limits import Limits, Retention
        from rankscope_dashboard.server import ServerOptions, check_options, listen, serve
    except ImportError as error:
        raise UsageError(
            f"the dashboard is not installed ({error}); install it with `pip install 'rankscope[dashboard]'`"
        ) from error
    from rankscope.store import open_store

    options = ServerOptions(
        store=store,
        spool=None if spool is None else str(spool),
        host=host,
        port=port,
        token=read_token(token_file),
        limits=Limits(
            upload_bytes=int(max_upload * _GIB),
            file_bytes=int(max_file * _GIB),
            unpacked_file_bytes=int(max_unpacked * _GIB),
            analysis_seconds=analysis_seconds,
        ),
        retention=Retention(
            max_runs=keep_runs, max_age_seconds=None if keep_days is None else keep_days * _DAY_SECONDS
        ),
    )
    check_options(options)
    opened = open_store(store, spool=spool)
    if rebuild_index:
        say(f"the index holds {opened.rebuild_index()} runs")
    listener = listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    say(
        f"rankscope dashboard on http://{shown}:{listener.getsockname()[1]}/ (Ctrl-C ends it), runs in {opened.url}"
    )
    serve(options, listener)


def read_token(path: Path | None) -> str | None:
    """The token from a file, else from the environment; None if there is none.

    Raises:
        UsageError: the file cannot be read or is empty.
    """
    if path is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip() or None
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot read the token from {path}: {error}") from error
    if not token:
        raise UsageError(f"the token file {path} is empty")
    return token

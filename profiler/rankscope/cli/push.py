"""`rankscope push`: a run to a dashboard."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer

from rankscope.cli.dashboard import TOKEN_VARIABLE, read_token
from rankscope.cli.options import parse_labels
from rankscope.cli.output import say
from rankscope.errors import InputError, UsageError

if TYPE_CHECKING:
    from rich.progress import Progress

    from rankscope.upload import Destination, PushedRun

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def push(
    run: Path = typer.Argument(..., help="A trace file or a directory of them."),
    to: str = typer.Option(..., "--to", help="Address of the dashboard, such as https://dashboard:8501."),
    name: str = typer.Option(
        "", "--name", show_default="the directory's name", help="What the run is called there."
    ),
    tag: list[str] = typer.Option([], "--tag", help="key=value to find the run by; may be repeated."),
    token_file: Path | None = typer.Option(
        None, "--token-file", show_default=f"the variable {TOKEN_VARIABLE}", help="File that holds the token."
    ),
    keep_traces: bool = typer.Option(True, help="Whether the dashboard keeps the trace files too."),
    wait: bool = typer.Option(True, help="Whether to wait until the dashboard has analysed the run."),
    patience: float = typer.Option(
        300.0, min=0, help="Seconds to try again when the dashboard cannot be reached."
    ),
) -> None:
    """Send a run to a dashboard and print the link to it; an interrupted transfer goes on where it broke."""
    from rankscope.readers.discovery import find_traces
    from rankscope.upload import Destination, push_run

    if "://" in str(run):
        raise UsageError(f"{run} is a URL; copy the run to this machine first")
    files = [Path(source.location) for source in find_traces(run)]
    tags = parse_labels(tag, "--tag")
    destination = Destination(url=to, token=read_token(token_file), patience_seconds=patience)
    parts = urlsplit(to)
    if destination.token is not None and parts.scheme == "http" and parts.hostname not in _LOOPBACK_NAMES:
        say(f"rankscope: the token goes to {to} unencrypted; prefer an https address")
    try:
        total = sum(path.stat().st_size for path in files)
        with _progress() as progress:
            task = progress.add_task("sending", total=total)
            pushed = push_run(
                files,
                destination,
                name=name or run.resolve().name,
                tags=tags,
                keep_traces=keep_traces,
                on_sent=lambda size_bytes: progress.advance(task, size_bytes),
            )
            if wait:
                _follow(pushed, destination, progress)
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror or error}") from error
    sys.stdout.write(f"{pushed.link}\n")


def _follow(pushed: PushedRun, destination: Destination, progress: Progress) -> None:
    from rankscope.upload import wait_for_run

    task = progress.add_task("analysing", total=1.0)

    def show(status: dict[str, Any]) -> None:
        stage = status.get("stage") or status.get("state")
        progress.update(task, completed=status.get("progress") or 0.0, description=str(stage)[:40])

    wait_for_run(pushed, destination, show)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A progress bar on stderr, drawn where a person watches."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        yield progress

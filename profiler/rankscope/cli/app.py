"""All commands of `rankscope` under one name."""

from __future__ import annotations

import typer

from rankscope import __version__
from rankscope.cli.advise import advise
from rankscope.cli.analyze import analyze
from rankscope.cli.baseline import baseline_app
from rankscope.cli.check import check
from rankscope.cli.compare import compare
from rankscope.cli.dashboard import dashboard
from rankscope.cli.demo import demo
from rankscope.cli.inspect import inspect
from rankscope.cli.push import push

app = typer.Typer(
    name="rankscope",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Where communication stops hiding behind compute in distributed PyTorch training, which rank everybody "
    "waits for, and what to change.",
)
app.command()(analyze)
app.command()(advise)
app.command()(inspect)
app.command()(demo)
app.command()(check)
app.command()(compare)
app.add_typer(baseline_app, name="baseline")
app.command()(dashboard)
app.command()(push)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rankscope {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Options before the command."""

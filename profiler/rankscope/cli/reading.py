"""Reading a run for a command, with a progress bar where a person watches."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankscope.model.run import Run
    from rankscope.readers.run_reader import ReadOptions


def read_with_progress(run: str, options: ReadOptions, *, use_cache: bool = True) -> Run:
    """The run; a progress bar on stderr if that is a terminal.

    Args:
        run: a trace file, a directory of them, or an fsspec URL of either.
        options: how to read.
        use_cache: whether tables of large files are kept for the next command (see `RANKSCOPE_CACHE`).

    Raises:
        InputError, UsageError: as `rankscope.read_run`.
    """
    from rankscope.pipeline import read_run
    from rankscope.readers.cache_folder import default_cache_directory

    if use_cache:
        options = replace(options, cache=default_cache_directory())
    if not sys.stderr.isatty():
        return read_run(run, options)
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)

        def on_found(size_bytes: int) -> None:
            progress.update(task, total=size_bytes or None)

        def on_file_done(name: str, size_bytes: int) -> None:
            progress.update(task, advance=size_bytes, description=name[-40:])

        return read_run(run, options, on_found=on_found, on_file_done=on_file_done)

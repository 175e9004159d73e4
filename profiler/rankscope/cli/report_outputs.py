"""Where a report or an advice goes: into files, each in its format, or to stdout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rankscope.cli.output import print_report, say, write_file
from rankscope.errors import UsageError


class ReportFormat(str, Enum):
    """Formats of a report."""

    CONSOLE = "console"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


_FORMAT_OF_SUFFIX = {
    ".json": ReportFormat.JSON,
    ".md": ReportFormat.MARKDOWN,
    ".markdown": ReportFormat.MARKDOWN,
    ".html": ReportFormat.HTML,
    ".htm": ReportFormat.HTML,
    ".txt": ReportFormat.CONSOLE,
}

FormatOfReport = Annotated[
    ReportFormat | None,
    typer.Option(
        "--format", show_default="by the output's suffix, else console", help="Format of the output."
    ),
]
OutputFiles = Annotated[
    list[Path],
    typer.Option(
        "--output",
        "-o",
        default_factory=list,
        show_default=False,
        help="Write here instead of to stdout; may be given several times.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOutputs:
    """What to write where.

    Attributes:
        files: each file and its format; stdout takes all if there are none.
        stdout: the format of stdout.
    """

    files: tuple[tuple[Path, ReportFormat], ...]
    stdout: ReportFormat

    @property
    def formats(self) -> tuple[ReportFormat, ...]:
        """The formats that are needed."""
        return tuple(form for _, form in self.files) or (self.stdout,)

    def write(self, text_in: Callable[[ReportFormat], str], *, force: bool) -> None:
        """Write everything.

        Args:
            text_in: gives the text in a format.
            force: whether to replace files.
        """
        for path, form in self.files:
            write_file(path, text_in(form), force=force)
            say(f"wrote {path}")
        if not self.files:
            print_report(text_in(self.stdout), is_for_people=self.stdout is ReportFormat.CONSOLE)


def choose_outputs(paths: list[Path], given: ReportFormat | None) -> ReportOutputs:
    """The outputs: in the format given, else in the one of each file's suffix.

    Raises:
        UsageError: a file's suffix is that of no format.
    """
    return ReportOutputs(
        files=tuple((path, given or _format_of(path)) for path in paths), stdout=given or ReportFormat.CONSOLE
    )


def _format_of(path: Path) -> ReportFormat:
    found = _FORMAT_OF_SUFFIX.get(path.suffix.lower())
    if found is None:
        known = ", ".join(_FORMAT_OF_SUFFIX)
        raise UsageError(f"cannot tell the format of {path} by its suffix (known: {known}); give --format")
    return found

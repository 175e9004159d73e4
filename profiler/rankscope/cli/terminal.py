"""The terminal that text is laid out for."""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def terminal_width() -> int:
    """Columns of the terminal; 100 where there is none."""
    return shutil.get_terminal_size((100, 24)).columns


def table_text(table: Table) -> str:
    """A rich table as text as wide as the terminal, without a trailing newline."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=terminal_width(), no_color=True, force_terminal=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().rstrip("\n").split("\n"))

"""Options that several commands share, and the texts of those that are more than a word: steps and labels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from rankscope.errors import UsageError

RunToRead = Annotated[
    str, typer.Argument(help="A trace file, a directory of them, or an fsspec URL of either.")
]
CommPatterns = Annotated[
    list[str],
    typer.Option(
        "--comm-pattern",
        default_factory=list,
        show_default=False,
        help="Regular expression of more kernel names that communicate; may be repeated.",
    ),
]
Processes = Annotated[
    int,
    typer.Option(min=0, show_default="one per core", help="Processes that read files side by side."),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Read every file anew, and keep nothing.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
AllowUndefined = Annotated[
    bool, typer.Option("--allow-undefined", help="A figure without a value breaks no limit.")
]
JunitFile = Annotated[Path | None, typer.Option(help="Write JUnit XML of the limits here.")]
GitlabFile = Annotated[Path | None, typer.Option(help="Write GitLab code quality JSON of the limits here.")]
MarkdownFile = Annotated[Path | None, typer.Option(help="Write Markdown for a comment here.")]
JsonFile = Annotated[Path | None, typer.Option(help="Write JSON here.")]

_STEP_RANGE = re.compile(r"\s*([0-9]{1,18})(?:-([0-9]{1,18}))?\s*$")
_MAX_STEPS = 100_000
"""Most steps in one range: no trace holds more, and a slip of the finger must not fill the memory."""


def parse_steps(text: str) -> frozenset[int] | None:
    """Step numbers of a text such as "4-6,9"; None for "" (all).

    Raises:
        UsageError: naming every part that is neither a number nor a range.

    >>> sorted(parse_steps("4-6,9"))
    [4, 5, 6, 9]
    """
    if not text.strip():
        return None
    steps: set[int] = set()
    bad = []
    for part in text.split(","):
        match = _STEP_RANGE.match(part)
        first, last = (int(match.group(1)), int(match.group(2) or match.group(1))) if match else (0, -1)
        if 0 <= last - first < _MAX_STEPS:
            steps.update(range(first, last + 1))
        else:
            bad.append(part.strip()[:40])
    if bad:
        raise UsageError(
            f"--steps: {', '.join(map(repr, bad))} is no step nor range; expected something like 4-6,9"
        )
    return frozenset(steps)


def parse_labels(texts: list[str], option: str = "--label") -> dict[str, str]:
    """Labels of texts such as "branch=main".

    Raises:
        UsageError: naming every text without a key and a `=`.
    """
    bad = [text for text in texts if not text.partition("=")[0] or "=" not in text]
    if bad:
        raise UsageError(f"{option}: {', '.join(map(repr, bad))}; expected key=value")
    return {key: value for key, _, value in (text.partition("=") for text in texts)}

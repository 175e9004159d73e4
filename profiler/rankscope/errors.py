"""The kinds of error that rankscope raises, each with a slug that docs/errors.md explains."""

from __future__ import annotations


class RankscopeError(Exception):
    """The root of every error that rankscope raises on purpose.

    The message says what happened, where, what was expected and what to do next; `slug` names the
    paragraph of docs/errors.md that explains cause and cure.
    """

    slug = "error"


class InputError(RankscopeError):
    """A trace, a report or a run directory that cannot be used."""

    slug = "input"


class TraceSyntaxError(InputError):
    """A trace file whose text is not what a trace holds; carries the place.

    Attributes:
        offset: byte offset of the fault, counted from 0 in the uncompressed text; None if unknown.
    """

    slug = "syntax"

    def __init__(self, message: str, *, offset: int | None = None, slug: str | None = None) -> None:
        super().__init__(message)
        self.offset = offset
        if slug is not None:
            self.slug = slug


class UsageError(RankscopeError):
    """An option or a combination of options that has no meaning."""

    slug = "usage"


class FormatVersionError(InputError):
    """A report or manifest written in another major version of its format."""

    slug = "format-version"


class RunNotFoundError(InputError):
    """A run that a store does not hold, or no longer."""

    slug = "run-not-found"

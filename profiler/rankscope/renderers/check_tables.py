"""The outcomes of limits as a table and sentences, the same for every format."""

from __future__ import annotations

from rankscope.model.verdict import Outcome, Verdict
from rankscope.renderers.escape import MESSAGE_LIMIT
from rankscope.renderers.tables import NOT_AVAILABLE, Cell, Column, Table, finish_table, text_cell

_MARKS = {
    "passed": "passed",
    "broken": "BROKEN",
    "not measured": "NOT MEASURED",
    "not measured, allowed": "n/a, allowed",
}

_COLUMNS = (
    Column(label="Status", numeric=False),
    Column(label="Limit", numeric=False),
    Column(label="Wanted", numeric=False),
    Column(label="Measured", numeric=False),
    Column(label="Where", numeric=False, wide=True),
)


def build_outcome_table(verdict: Verdict) -> Table:
    """One row per limit, those that close the gate first."""
    ordered = sorted(verdict.outcomes, key=lambda outcome: not outcome.fails)
    return finish_table("Limits", _COLUMNS, [_outcome_cells(outcome) for outcome in ordered])


def _outcome_cells(outcome: Outcome) -> list[Cell]:
    worst = outcome.worst
    where = "" if worst is None else worst.place
    if len(outcome.broken) > 1:
        where += f" and {len(outcome.broken) - 1:,} more"
    return [
        Cell(text=_MARKS[outcome.status]),
        text_cell(outcome.name),
        text_cell(outcome.limit),
        text_cell(NOT_AVAILABLE if worst is None else worst.text),
        text_cell(where, MESSAGE_LIMIT),
    ]


def say_verdict(verdict: Verdict) -> str:
    """The verdict in a sentence."""
    number, failed = len(verdict.outcomes), len(verdict.failed)
    limits = "1 limit" if number == 1 else f"{number:,} limits"
    if not number:
        return "No limit was set."
    if not failed:
        return "The limit is kept." if number == 1 else f"All {limits} are kept."
    unmeasured = sum(outcome.status == "not measured" for outcome in verdict.failed)
    parts = [
        f"{count} {word}"
        for count, word in ((failed - unmeasured, "broken"), (unmeasured, "not measured"))
        if count
    ]
    return f"{' and '.join(parts)} of {limits}."

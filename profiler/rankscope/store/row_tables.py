"""The report's lists of rows as Arrow tables, with nested records flattened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from rankscope.model.report import CollectiveRow, Report
from rankscope.store.parquet import rows_to_table

ARRIVALS = "arrivals"
"""One row per collective and rank: index, rank, arrival_ns (relative to the origin), wait_ns; both may be null."""


_PER_RANK = frozenset({"arrivals_ns", "waits_ns"})


def report_tables(report: Report) -> Iterator[tuple[str, Any]]:
    """Name and Arrow table of every list of rows in the report that is not empty, and of arrivals.

    A nested record's fields become columns (`wait_ns` -> `wait_ns_p50`, `wait_ns_max`); `device` is text, since it
    is a number or "cpu"; what is given per rank is in the table of arrivals.
    """
    for section in fields(report):
        rows = getattr(report, section.name)
        if isinstance(rows, list) and rows and is_dataclass(rows[0]):
            yield section.name, rows_to_table(_flatten(rows))
    arrivals = [row for collective in report.collectives for row in _arrivals_of(collective)]
    if arrivals:
        yield ARRIVALS, rows_to_table(arrivals)


def _flatten(rows: Sequence[Any]) -> list[dict[str, Any]]:
    plain: list[dict[str, Any]] = [msgspec.to_builtins(row, enc_hook=_unwrap_scalar) for row in rows]
    inner = {
        name: list(value) for row in plain for name, value in row.items() if isinstance(value, dict) and value
    }
    return [_flatten_row(row, inner) for row in plain]


def _flatten_row(row: dict[str, Any], inner: dict[str, list[str]]) -> dict[str, Any]:
    """One row as values by column; `inner` holds the keys of its nested records."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name in _PER_RANK:
            continue
        if name in inner:
            flat |= {f"{name}_{key}": (value or {}).get(key) for key in inner[name]}
        else:
            flat[name] = str(value) if name == "device" and value is not None else value
    return flat


def _arrivals_of(collective: CollectiveRow) -> list[dict[str, Any]]:
    arrivals, waits = collective.arrivals_ns or {}, collective.waits_ns or {}
    return [
        {
            "index": collective.index,
            "rank": rank,
            "arrival_ns": arrivals.get(rank),
            "wait_ns": waits.get(rank),
        }
        for rank in sorted(arrivals.keys() | waits.keys())
    ]


def _unwrap_scalar(value: Any) -> Any:  # noqa: ANN401 - whatever msgspec does not know
    if hasattr(value, "item"):
        return value.item()
    raise NotImplementedError(f"{type(value).__name__} has no place in a table")

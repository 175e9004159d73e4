"""The report's rows as Parquet files."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pandas as pd

from rankscope.errors import UsageError
from rankscope.model.report import Report

TABLES = (
    "ranks",
    "windows",
    "steps",
    "groups",
    "collectives",
    "communications",
    "p2p",
    "buckets",
    "caused_waits",
    "quantiles",
    "findings",
    "problems",
)


def write_tables(report: Report, directory: Path) -> None:
    """Write `<table>.parquet` for every list of the report that has rows.

    Raises:
        UsageError: the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for table in TABLES:
            rows = getattr(report, table)
            target = directory / f"{table}.parquet"
            if rows:
                temporary = directory / f".{table}.parquet.part"
                try:
                    pd.DataFrame([_flat(row) for row in rows]).to_parquet(temporary, index=False)
                    temporary.replace(target)
                finally:
                    temporary.unlink(missing_ok=True)
            else:
                target.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write tables into {directory}: {error.strerror or error}") from error


def _flat(row: Any) -> dict[str, Any]:  # noqa: ANN401 - any row of the report
    """A row with nested records flattened; `device` is text, since it is a number or "cpu"."""
    flat: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if field.name == "device":
            flat["device"] = None if value is None else str(value)
        elif isinstance(value, dict):  # by rank: Parquet wants texts as keys
            flat[field.name] = [{"rank": rank, "ns": ns} for rank, ns in value.items()]
        elif hasattr(value, "__dataclass_fields__"):
            flat |= {f"{field.name}_{key}": inner for key, inner in asdict(value).items()}
        else:
            flat[field.name] = value
    return flat

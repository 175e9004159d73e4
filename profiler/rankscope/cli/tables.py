"""The report's rows as Parquet files."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pyarrow.parquet as pq

from rankscope.errors import UsageError
from rankscope.model.report import Report
from rankscope.store.row_tables import ARRIVALS, report_tables


def write_tables(report: Report, directory: Path) -> None:
    """Write `<list>.parquet` for every list of the report that has rows, and `arrivals.parquet`.

    A file of an earlier report whose list has no rows now is removed.

    Raises:
        UsageError: the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        written = set()
        for name, table in report_tables(report):
            temporary = directory / f".{name}.parquet.part"
            try:
                pq.write_table(table, temporary)
                temporary.replace(directory / f"{name}.parquet")
            finally:
                temporary.unlink(missing_ok=True)
            written.add(name)
        for name in {field.name for field in fields(report)} | {ARRIVALS}:
            if name not in written:
                (directory / f"{name}.parquet").unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write tables into {directory}: {error.strerror or error}") from error

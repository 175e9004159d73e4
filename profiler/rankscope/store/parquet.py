"""Arrow tables as compressed Parquet bytes, and back."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Times grow steadily and ids nearly so: their differences pack into few bits.
_INCREASING = frozenset({"start_ns", "correlation", "external_id", "row", "started_ns", "arrival_ns"})


def to_parquet(table: Any) -> bytes:  # noqa: ANN401 - pyarrow ships no types
    """A table as Parquet bytes."""
    increasing = [
        field.name for field in table.schema if field.name in _INCREASING and pa.types.is_integer(field.type)
    ]
    others = [name for name in table.column_names if name not in increasing]
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        use_dictionary=others,
        column_encoding=dict.fromkeys(increasing, "DELTA_BINARY_PACKED"),
    )
    return sink.getvalue()


def from_parquet(content: bytes, columns: Sequence[str] | None = None) -> Any:  # noqa: ANN401
    """The table in Parquet bytes, or some of its columns."""
    return pq.read_table(io.BytesIO(content), columns=None if columns is None else list(columns))


def rows_to_table(rows: Sequence[dict[str, Any]]) -> Any:  # noqa: ANN401
    """A table of rows that all have the same keys."""
    return pa.Table.from_pylist(list(rows))

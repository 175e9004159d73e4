"""Which collectives the others waited longest in."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.model.report import CollectiveRow

LATE_COLLECTIVES = 12
"""So many are shown one by one, and carry their arrivals in a summary too."""


def pick_late(rows: Sequence[CollectiveRow], limit: int = LATE_COLLECTIVES) -> tuple[CollectiveRow, ...]:
    """The countable collectives of greatest lateness, the latest first.

    Args:
        rows: collectives.
        limit: greatest number of them.
    """
    late = [row for row in rows if row.countable and row.lateness_ns]
    return tuple(sorted(late, key=lambda row: (-(row.lateness_ns or 0), row.index))[:limit])

"""What a view is given: the run that it shows."""

from __future__ import annotations

from dataclasses import dataclass

from rankscope.model.report import Report
from rankscope_dashboard.load import StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A visitor's look at one run: the run as it is kept, and its report."""

    run: StoredRun
    report: Report

"""Stores for the tests of the dashboard's views."""

from __future__ import annotations

import pytest

from support.dashboard_runs import ViewRuns, keep_view_runs


@pytest.fixture(scope="session")
def view_runs(tmp_path_factory: pytest.TempPathFactory) -> ViewRuns:
    """A store with runs of every kind."""
    return keep_view_runs(tmp_path_factory.mktemp("views"))

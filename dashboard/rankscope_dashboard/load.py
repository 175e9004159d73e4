"""Runs from the store, and what was read of them.

What is read is kept in bounded caches under the digest of a run's content, so that nothing outlives a change of its
run. All visitors share the store and the caches; a session holds nothing but its own choices and uploads.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import streamlit as st

from rankscope.errors import RunNotFoundError
from rankscope.model.report import Report
from rankscope.model.timeline import Timeline
from rankscope.model.timeline_view import split_tracks
from rankscope.store import RunRecord, RunStatus, Store, open_store
from rankscope_dashboard.server import SPOOL_VARIABLE, STORE_VARIABLE

_REPORTS, _TIMELINES, _TABLES = 24, 4, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run of the store: the store, and what its list says of the run."""

    store: Store
    record: RunRecord

    @property
    def id(self) -> str:
        """The run's id, as in links."""
        return self.record.run_id


def open_shared_store() -> Store:
    """The store that all visitors share."""
    return _open_store(os.environ[STORE_VARIABLE], os.environ.get(SPOOL_VARIABLE))


@st.cache_resource(max_entries=4, show_spinner=False)
def _open_store(url: str, spool: str | None) -> Store:
    return open_store(url, spool=spool)


def find_run(run_id: str) -> StoredRun | RunStatus:
    """The run, or how far it has come if it is not ready.

    Raises:
        RunNotFoundError: there is no such run.
    """
    store = open_shared_store()
    status = store.status(run_id)
    return StoredRun(store=store, record=store.record(run_id)) if status.state == "ready" else status


def load_report(run: StoredRun) -> Report:
    """The report of a run."""
    return _load_report(run.store, run.id, run.record.content)


def load_timeline(run: StoredRun) -> Timeline:
    """All events of a run, in lanes without overlapping events; empty if it keeps none."""
    return _load_timeline(run.store, run.id, run.record.content)


def load_table(run: StoredRun, name: str) -> Any | None:  # noqa: ANN401 - pyarrow ships no types
    """A table of a run (see `Store.table`), None if it has no rows."""
    return _load_table(run.store, run.id, run.record.content, name)


@st.cache_resource(max_entries=_REPORTS, show_spinner="Reading the report ...")
def _load_report(_store: Store, run_id: str, content: str) -> Report:
    return _store.report(run_id)


@st.cache_resource(max_entries=_TIMELINES, show_spinner="Reading the events ...")
def _load_timeline(_store: Store, run_id: str, content: str) -> Timeline:
    return split_tracks(_store.timeline(run_id))


@st.cache_resource(max_entries=_TABLES, show_spinner="Reading a table ...")
def _load_table(_store: Store, run_id: str, content: str, name: str) -> Any | None:  # noqa: ANN401
    try:
        return _store.table(run_id, name)
    except RunNotFoundError:
        return None

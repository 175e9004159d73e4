"""Runs from the store, and from the visitor's own private one.

A private upload lies in a temporary store that only the session of its visitor knows, and that goes with it. What
is read is kept in bounded caches under the digest of a run's content, so that it never outlives its run's change.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any

import streamlit as st

from rankscope.errors import RunNotFoundError
from rankscope.model.report import Report
from rankscope.model.timeline import Timeline
from rankscope.model.timeline_view import split_tracks
from rankscope.store import RunRecord, RunStatus, Store, open_store

STORE_VARIABLE = "RANKSCOPE_STORE"
"""Environment variable with the URL of the store, set by `rankscope dashboard`."""

DEFAULT_STORE = "rankscope-runs"
_PRIVATE = "private-store"
_REPORTS, _TIMELINES, _TABLES = 24, 4, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run that the visitor may see.

    Attributes:
        store: where it is kept.
        record: what the store's list says of it.
        is_private: whether only this visitor sees it.
    """

    store: Store
    record: RunRecord
    is_private: bool

    @property
    def id(self) -> str:
        """The run's id, as in links."""
        return self.record.run_id


def shared_store() -> Store:
    """The store that all visitors share."""
    return _open_store(os.environ.get(STORE_VARIABLE, DEFAULT_STORE))


@st.cache_resource(max_entries=4, show_spinner=False)
def _open_store(url: str) -> Store:
    return open_store(url)


@dataclass(frozen=True, slots=True)
class _PrivateStore:
    """A store in a folder that is removed with the last reference to it, which the visitor's session holds."""

    store: Store
    folder: tempfile.TemporaryDirectory[str]


def private_store() -> Store:
    """The store that only this visitor sees; it is made by the first call and goes with the session."""
    if _PRIVATE not in st.session_state:
        folder = tempfile.TemporaryDirectory(prefix="rankscope-private-", ignore_cleanup_errors=True)
        st.session_state[_PRIVATE] = _PrivateStore(open_store(folder.name), folder)
    kept: _PrivateStore = st.session_state[_PRIVATE]
    return kept.store


def list_private_runs() -> list[RunRecord]:
    """The visitor's private runs, newest first."""
    return private_store().list_runs() if _PRIVATE in st.session_state else []


def find_run(run_id: str) -> StoredRun | RunStatus:
    """The run, or how far it has come if it is not ready.

    Raises:
        RunNotFoundError: this visitor can see no such run.
    """
    if _PRIVATE in st.session_state:
        try:
            store = private_store()
            return StoredRun(store=store, record=store.record(run_id), is_private=True)
        except RunNotFoundError:
            pass
    store = shared_store()
    status = store.status(run_id)
    if status.state != "ready":
        return status
    return StoredRun(store=store, record=store.record(run_id), is_private=False)


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

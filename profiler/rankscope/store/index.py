"""One small index of all runs, safe with several writers and without a lock.

The folder `index/` holds immutable files only: `add-<run>` with a record, `delete-<run>`, and `base-<random>`
with many of both. The list is all records that were added and not deleted, over all files. Folding writes a new
base first and removes what it holds afterwards, so that two writers who fold at once leave two bases that say
the same. The index can be rebuilt from the manifests at any time.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from rankscope.errors import InputError
from rankscope.store.blobs import Blobs
from rankscope.store.record import RunRecord

FOLDER = "index"
_FOLD_ABOVE = 64
"""Loose files above which the next writer folds them into one."""
_MOST_TOMBSTONES = 10_000
_MOST_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entries:
    """What a file of the index says."""

    records: list[RunRecord] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)


class RunIndex:
    """The index under a store's `index/` folder."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._known: dict[str, _Entries] = {}
        self._lock = threading.Lock()

    def records(self) -> list[RunRecord]:
        """All runs, newest first."""
        _, entries = self._load()
        return sorted(entries.records, key=lambda record: record.run_id, reverse=True)

    def add(self, record: RunRecord) -> None:
        """Show a run; the same run may be added again."""
        self._write(f"add-{record.run_id}", _Entries(records=[record]))
        self._fold_if_many()

    def remove(self, run_id: str) -> None:
        """Hide a run for ever."""
        self._write(f"delete-{run_id}", _Entries(deleted=[run_id]))
        self._fold_if_many()

    def replace(self, read_records: Iterable[RunRecord]) -> None:
        """Write the index anew; `read_records` is consumed after the present files have been listed."""
        # What a writer adds from here on is not among `old`, and so stays.
        old, deleted = self._blobs.names(FOLDER), self.deleted_if_readable()
        self._write(f"base-{secrets.token_hex(8)}", _Entries(records=list(read_records), deleted=deleted))
        self._drop(old)

    def deleted_if_readable(self) -> list[str]:
        """Runs that were removed; of very many only the latest, and none where the index is damaged."""
        try:
            return self._load()[1].deleted
        except InputError:  # a damaged index is why one is written anew
            return []

    def _fold_if_many(self) -> None:
        names = self._blobs.names(FOLDER)
        if sum(not name.startswith("base-") for name in names) > _FOLD_ABOVE:
            folded, entries = self._load()
            self._write(f"base-{secrets.token_hex(8)}", entries)
            self._drop(folded)

    def _drop(self, names: Iterable[str]) -> None:
        for name in names:
            self._blobs.delete(f"{FOLDER}/{name}")

    def _write(self, name: str, entries: _Entries) -> None:
        self._blobs.write(f"{FOLDER}/{name}", msgspec.json.encode(entries))

    def _load(self) -> tuple[list[str], _Entries]:
        """Names of the files, and what they say together."""
        with self._lock:
            for _ in range(_MOST_TRIES):
                names = self._blobs.names(FOLDER)
                unknown = {f"{FOLDER}/{name}": name for name in names if name not in self._known}
                contents = self._blobs.read_many(unknown)
                known = self._known | {unknown[key]: _decode(key, text) for key, text in contents.items()}
                if len(contents) == len(unknown):
                    self._known = {name: known[name] for name in names}
                    return names, _merge(list(self._known.values()))
                # Another writer folded some of them meanwhile; their content is in a newer base.
        raise InputError("the store's index changes faster than it can be read; try again")


def _decode(key: str, content: bytes) -> _Entries:
    try:
        return msgspec.json.decode(content, type=_Entries)
    except msgspec.MsgspecError as error:
        raise InputError(
            f"the file {key} of the store is damaged ({error}); `rankscope dashboard --rebuild-index` makes the index "
            "anew from the runs"
        ) from error


def _merge(parts: list[_Entries]) -> _Entries:
    deleted = dict.fromkeys(run_id for part in parts for run_id in part.deleted)
    records = {record.run_id: record for part in parts for record in part.records}
    return _Entries(
        records=[record for run_id, record in records.items() if run_id not in deleted],
        deleted=list(deleted)[-_MOST_TOMBSTONES:],
    )

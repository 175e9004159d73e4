"""Reports of runs that were analysed before: the same files and options give the same report at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rankscope.errors import RankscopeError
from rankscope.readers.cache_folder import (
    SMALLEST_STORED_BYTES,
    CacheFolder,
    code_hash,
    default_cache_directory,
    entry_key,
)
from rankscope.readers.content_hash import content_hash, file_state
from rankscope.readers.discovery import TraceSource, find_traces

if TYPE_CHECKING:
    from rankscope.model.report import Report

_THREADS = 2
_RunState = tuple[tuple[str, int, int, int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReport:
    """The place of one report in the cache; `state` is what its files looked like when they were hashed."""

    folder: CacheFolder
    name: str
    run: str
    state: _RunState

    def load(self) -> Report | None:
        """The report, if it is there and whole."""
        from rankscope.renderers.to_json import read_json

        content = self.folder.read(self.name)
        if content is None:
            return None
        try:
            return read_json(bytes(content))
        except RankscopeError:
            return None

    def store(self, report: Report) -> None:
        """Keep the report, unless a file changed since it was hashed."""
        from rankscope.renderers.to_json import render_json

        if _state(find_traces(self.run)) == self.state:
            self.folder.write(self.name, render_json(report, detail="full", indent=False).encode())


def find_kept(run: str, options: object) -> KeptReport | None:
    """The place of a run's report; None where keeping one does not pay, or the cache is turned off.

    Args:
        run: a trace file, a directory of them, or a URL.
        options: everything else that decides the report, with a `repr` that says it.

    Raises:
        InputError: there is nothing to read.
    """
    directory = default_cache_directory()
    sources = find_traces(run)
    if directory is None or any(source.is_remote for source in sources):
        return None
    if sum(source.size_bytes for source in sources) < SMALLEST_STORED_BYTES:
        return None
    folder = CacheFolder(directory)
    try:
        state = _state(sources)
        with ThreadPoolExecutor(_THREADS) as pool:
            hashes = list(pool.map(partial(_hash, folder=folder), sources))
    except OSError:  # what is wrong with the file is for the reader to say
        return None
    names = repr([source.name for source in sources])
    key = entry_key(code_hash(""), run, names, b"".join(hashes), repr(options))
    return KeptReport(folder=folder, name=f"{key}.report", run=run, state=state)


def _hash(source: TraceSource, folder: CacheFolder) -> bytes:
    with source.open() as file:
        return content_hash(file, folder)


def _state(sources: tuple[TraceSource, ...]) -> _RunState:
    states = []
    for source in sources:
        with source.open() as file:
            states.append((source.name, *file_state(file)))
    return tuple(states)

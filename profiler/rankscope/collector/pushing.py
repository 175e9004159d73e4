"""The run to a dashboard, once all ranks have written their traces; on a thread beside the training."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rankscope.collector.membership import Membership
from rankscope.collector.options import RankSelection
from rankscope.collector.warning import warn

if TYPE_CHECKING:
    from rankscope.upload import PushedRun

TOKEN_VARIABLE = "RANKSCOPE_TOKEN"  # noqa: S105 - the name of a variable

_TRACE_NAME = re.compile(r"rank_([0-9]+)\.([0-9]+)\..*pt\.trace\.json\.gz", re.ASCII)
_POLL_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Push:
    """Sends a run directory to a dashboard: `Collector(directory, push=Push(to="http://dashboard:8501"))`.

    Attributes:
        to: address of the dashboard.
        name: what the run is called there; the directory's name unless given.
        tags: key -> value, to find and compare runs by.
        token: the dashboard's token; that in the variable RANKSCOPE_TOKEN unless given.
        keep_traces: whether the dashboard keeps the trace files.
        wait_seconds: how long to wait for traces of other ranks.
        patience_seconds: how long to try again when the dashboard cannot be reached.
    """

    to: str
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    token: str | None = None
    keep_traces: bool = True
    wait_seconds: float = 120.0
    patience_seconds: float = 300.0

    def send(self, directory: Path, ranks: Collection[int]) -> PushedRun:
        """Wait for the traces of `ranks`, all that record, then send every trace.

        Raises:
            RankscopeError: the dashboard refuses the run or cannot be reached.
        """
        from rankscope.upload import Destination, push_run

        missing = _wait_for(directory, set(ranks), self.wait_seconds)
        if missing:
            who = "rank" if len(missing) == 1 else "ranks"
            shown = ", ".join(map(str, sorted(missing)[:8]))
            warn(f"The run is pushed without {who} {shown}: no trace after {self.wait_seconds:.0f} s.")
        return push_run(
            sorted(_traces(directory)),
            Destination(
                url=self.to,
                token=self.token or os.environ.get(TOKEN_VARIABLE) or None,
                patience_seconds=self.patience_seconds,
            ),
            name=self.name or directory.resolve().name,
            tags=self.tags,
            keep_traces=self.keep_traces,
        )


def join_actions(
    when_done: Callable[[Path], object] | None,
    push: Push | str | None,
    selection: RankSelection,
    membership: Membership,
) -> Callable[[Path], object] | None:
    """What to do after the last window: the user's own action, then the push; None for neither."""
    if push is None:
        return when_done
    wanted = Push(to=push) if isinstance(push, str) else push

    def act(directory: Path) -> None:
        if when_done is not None:
            when_done(directory)
        # Not asked of torch: by now the process group may be gone
        world_size = membership.identity.world_size
        wanted.send(directory, [rank for rank in range(world_size) if selection.includes(rank)])

    return act


def _traces(directory: Path) -> dict[Path, tuple[int, int]]:
    """Traces of a run directory -> their rank and window."""
    found = {path: _TRACE_NAME.fullmatch(path.name) for path in directory.iterdir()}
    return {path: (int(m.group(1)), int(m.group(2))) for path, m in found.items() if m is not None}


def _wait_for(directory: Path, wanted: set[int], seconds: float) -> set[int]:
    """Ranks without a trace of the last window after at most so many seconds."""
    ends_at = time.monotonic() + seconds
    while True:
        places = _traces(directory).values()
        last = max((window for _, window in places), default=0)
        missing = wanted - {rank for rank, window in places if window == last}
        if not missing or time.monotonic() > ends_at:
            return missing
        time.sleep(_POLL_SECONDS)

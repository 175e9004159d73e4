"""From a finished window to its file and to what must be said about it; the same for both ways to record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rankscope.collector.facts import WindowFacts, build_manifest, is_cuda_run
from rankscope.collector.membership import Membership
from rankscope.collector.options import OutputOptions
from rankscope.collector.trace_file import SavedTrace, save_trace
from rankscope.collector.warning import warn
from rankscope.collector.watching import WatchedModules
from rankscope.model.manifest import Manifest


class TraceSaver:
    """Saves the windows of one process and says each thing about them once.

    Attributes:
        paths: the files written, in order.
    """

    def __init__(self, options: OutputOptions, watched: WatchedModules, membership: Membership) -> None:
        self.paths: list[Path] = []
        self._options = options
        self._watched = watched
        self._membership = membership
        self._said: set[str] = set()

    def save(
        self, export: Callable[[str], None], describe: Callable[[], WindowFacts], *, is_urgent: bool = False
    ) -> None:
        """Write a window.

        Args:
            export: writes its Kineto JSON to a path.
            describe: the facts about it, asked for after `export`.
            is_urgent: leave out the wait that spreads the writing.
        """
        options = self._options
        identity = self._membership.refresh()
        delay_seconds = options.find_delay_seconds(identity.rank, identity.world_size)
        saved = save_trace(
            export,
            lambda: self._state(describe()),
            options,
            delay_seconds=0.0 if is_urgent else delay_seconds,
        )
        self.paths.append(saved.path)
        self._say_what_is_odd(saved)

    def _state(self, window: WindowFacts) -> Manifest:
        membership = self._membership
        return build_manifest(
            replace(window, notes=[*window.notes, *membership.notes]),
            identity=membership.identity,
            groups=membership.groups,
            watched=self._watched,
            labels=self._options.labels,
            scrub=self._options.scrub,
        )

    def _say_what_is_odd(self, saved: SavedTrace) -> None:
        if saved.is_namesake:
            self._say_once(
                "namesake",
                f"{saved.path.parent} already held a trace of this rank and window, which was left as it is; "
                f"this one is {saved.path.name}. Give each run its own directory.",
            )
        if not saved.has_kernels and is_cuda_run():
            self._say_once(
                "kernels",
                f"No GPU kernel was recorded in {saved.path}, though this process uses CUDA. Is another profiler "
                "holding CUPTI (Nsight, DCGM, a second torch.profiler), or did no training happen in the "
                "recorded steps?",
            )
        peers = max((len(group.ranks) for group in self._membership.groups), default=1)
        if not saved.has_collectives and (len(self._watched) or peers > 1):
            reason = (
                "a DDP module is watched" if len(self._watched) else f"{peers} ranks share a process group"
            )
            self._say_once(
                "collectives",
                f"No collective was recorded in {saved.path}, though {reason}. Were all recorded "
                "steps inside no_sync(), or is step() called outside the training loop?",
            )

    def _say_once(self, kind: str, message: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            warn(message)

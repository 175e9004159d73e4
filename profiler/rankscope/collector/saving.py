"""From a finished window to its file and to what must be said about it; the same for both ways to record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rankscope.collector.facts import WindowFacts, build_manifest
from rankscope.collector.identity import read_identity
from rankscope.collector.options import OutputOptions
from rankscope.collector.trace_file import SavedTrace, save_trace
from rankscope.collector.warning import warn
from rankscope.collector.watching import WatchedModules


class TraceSaver:
    """Saves the windows of one process and says each thing about them once.

    Attributes:
        paths: the files written, in order.
    """

    def __init__(self, options: OutputOptions, watched: WatchedModules) -> None:
        self.paths: list[Path] = []
        self._options = options
        self._watched = watched
        self._said: set[str] = set()

    def save(self, export: Callable[[str], None], window: WindowFacts, *, is_urgent: bool = False) -> None:
        """Write the window that `export` exports; `is_urgent` leaves out the wait that spreads the writing."""
        options = self._options
        identity = read_identity()
        manifest = build_manifest(
            window, identity=identity, watched=self._watched, labels=options.labels, scrub=options.scrub
        )
        delay_seconds = options.find_delay_seconds(identity.rank, identity.world_size)
        saved = save_trace(export, manifest, options, delay_seconds=0.0 if is_urgent else delay_seconds)
        self.paths.append(saved.path)
        self._say_what_is_odd(saved)

    def _say_what_is_odd(self, saved: SavedTrace) -> None:
        if saved.is_namesake:
            self._say_once(
                f"{saved.path.parent} already held a trace of this rank and window, which was left as it is; "
                f"this one is {saved.path.name}. Give each run its own directory."
            )
        if not saved.has_kernels and is_cuda_run():
            self._say_once(
                f"No GPU kernel was recorded in {saved.path}, though this process uses CUDA. Is another profiler "
                "holding CUPTI (Nsight, DCGM, a second torch.profiler), or did no training happen in the "
                "recorded steps?"
            )
        if not saved.has_collectives and len(self._watched):
            self._say_once(
                f"No collective was recorded in {saved.path}, though a DDP module is watched. Were all recorded "
                "steps inside no_sync(), or is step() called outside the training loop?"
            )

    def _say_once(self, message: str) -> None:
        # One text per kind of remark: its first words, which hold no path
        kind = message[:20]
        if kind not in self._said:
            self._said.add(kind)
            warn(message)


def is_cuda_run() -> bool:
    """Whether the training itself has used CUDA in this process."""
    import torch

    return torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]

"""The DDP modules that the user asked to watch."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from rankscope.collector.ddp import INTERNALS_MOVED, read_ddp_facts
from rankscope.collector.warning import warn
from rankscope.model.manifest import DdpFacts

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel

_EVERY_ITERATION = 1
_DDP_DEFAULT_ITERATIONS = 100  # kDDPRuntimeLoggingSampleRate; DDP has no way to ask for the present rate


class WatchedModules:
    """DDP modules under watch, held weakly: watching must not keep a model's memory alive."""

    def __init__(self) -> None:
        self._models: list[weakref.ref[DistributedDataParallel]] = []
        self._sample_rate = _DDP_DEFAULT_ITERATIONS
        self._has_warned = False

    def __len__(self) -> int:
        return len(self._models)

    def add(self, model: object) -> None:
        """Watch `model`, a DDP module or a compiled one; warn once about anything else."""
        from torch.nn.parallel import DistributedDataParallel

        bare = getattr(model, "_orig_mod", model)  # torch.compile wraps the module it was given
        if not isinstance(bare, DistributedDataParallel):
            self._say_unwatchable(model)
        elif all(bare is not known for known in self._alive()):
            self._models.append(weakref.ref(bare))
            if self._sample_rate != _DDP_DEFAULT_ITERATIONS:
                _set_sample_rate(bare, self._sample_rate)

    def sample_every_iteration(self) -> None:
        """Let DDP measure itself in every iteration, while steps are recorded."""
        self._set_all(_EVERY_ITERATION)

    def sample_as_before(self) -> None:
        """Give DDP its own sampling back; does nothing if it was not changed."""
        if self._sample_rate != _DDP_DEFAULT_ITERATIONS:
            self._set_all(_DDP_DEFAULT_ITERATIONS)

    def read_facts(self, notes: list[str]) -> list[DdpFacts]:
        """The facts of every watched module that still exists; what is missing is said in `notes`."""
        alive = self._alive()
        if len(alive) < len(self._models):
            notes.append(
                f"{len(self._models) - len(alive)} watched modules no longer existed at the window's end"
            )
        return [read_ddp_facts(model, notes) for model in alive]

    def _alive(self) -> list[DistributedDataParallel]:
        return [model for reference in self._models if (model := reference()) is not None]

    def _set_all(self, rate: int) -> None:
        self._sample_rate = rate
        for model in self._alive():
            _set_sample_rate(model, rate)

    def _say_unwatchable(self, model: object) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        warn(
            f"watch() knows DistributedDataParallel, not {type(model).__name__}: the trace is recorded all the "
            "same, without bucket facts. Pass the module that DistributedDataParallel(...) returned."
        )


def _set_sample_rate(model: DistributedDataParallel, iterations: int) -> None:
    try:
        model._set_ddp_runtime_logging_sample_rate(iterations)  # type: ignore[no-untyped-call]
    except INTERNALS_MOVED:
        # Only DDP's own averages depend on it; the trace and the bucket layout do not.
        return

"""The DDP modules that the user asked to watch."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rankscope.collector.ddp import INTERNALS_MOVED, read_ddp_facts
from rankscope.collector.ddp_iterations import IterationLog
from rankscope.collector.warning import warn
from rankscope.model.manifest import DdpFacts, DdpIteration

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup
    from torch.nn.parallel import DistributedDataParallel

_EVERY_ITERATION = 1
_DDP_DEFAULT_ITERATIONS = 100  # kDDPRuntimeLoggingSampleRate; DDP has no way to ask for the present rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradients:
    """What DDP reduces for one module: the bytes of all gradients of the dtype that has most of them."""

    group: ProcessGroup
    size_bytes: int
    dtype: torch.dtype
    device: torch.device


class WatchedModules:
    """DDP modules under watch, held weakly: watching must not keep a model's memory alive."""

    def __init__(self) -> None:
        self._models: list[weakref.ref[DistributedDataParallel]] = []
        self._iterations: weakref.WeakKeyDictionary[DistributedDataParallel, IterationLog]
        self._iterations = weakref.WeakKeyDictionary()
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
        self._iterations.clear()
        self.note_iterations(None)

    def note_iterations(self, ended: int | None) -> None:
        """Keep what DDP measured, at the end of the recorded step `ended`; None before the first of them."""
        for model in self._alive():
            self._iterations.setdefault(model, IterationLog()).note(model, ended)

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
        return [
            replace(read_ddp_facts(model, notes), iterations=self._list_iterations(model)) for model in alive
        ]

    def _list_iterations(self, model: DistributedDataParallel) -> list[DdpIteration]:
        log = self._iterations.get(model)
        return [] if log is None else list(log.iterations)

    def find_gradients(self) -> Gradients | None:
        """What the first watched module reduces; None without one."""
        for model in self._alive():
            sizes: Counter[tuple[torch.dtype, torch.device]] = Counter()
            for parameter in model.module.parameters():
                if parameter.requires_grad:
                    sizes[parameter.dtype, parameter.device] += parameter.nbytes
            if sizes:
                ((dtype, device), size_bytes), *_ = sizes.most_common(1)
                return Gradients(group=model.process_group, size_bytes=size_bytes, dtype=dtype, device=device)
        return None

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

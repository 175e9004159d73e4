"""DDP's own times of single iterations, read at the end of each recorded step.

`Logger::set_runtime_stats_and_log` (c10d/logger.cpp) publishes an iteration when the next one's forward begins, so
what is read at the end of a step is the iteration before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rankscope.collector.ddp import INTERNALS_MOVED
from rankscope.model.manifest import DdpIteration

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel


_TIMES = (
    "forward_compute_time",
    "backward_compute_time",
    "backward_comm_time",
    "backward_compute_comm_overlap_time",
)


class IterationLog:
    """Iterations of one module over the recorded steps.

    Attributes:
        iterations: those whose step and times are known, in order.
    """

    def __init__(self) -> None:
        self.iterations: list[DdpIteration] = []
        self._published: int | None = None
        self._steps: dict[int, int] = {}  # iteration -> step in which its forward began

    def note(self, model: DistributedDataParallel, ended: int | None) -> None:
        """Read DDP's times at the end of step `ended`; None just before the first recorded step."""
        try:
            logged: Mapping[str, object] = model._get_ddp_logging_data()  # type: ignore[no-untyped-call]
        except INTERNALS_MOVED:
            return  # read_ddp_facts meets the same fault and says so
        self.note_published(logged, ended)

    def note_published(self, logged: Mapping[str, object], ended: int | None) -> None:
        """Keep the iteration that `logged` publishes; see `note`."""
        published = logged.get("iteration", 0)
        before = self._published
        if not isinstance(published, int) or (ended is not None and published == before):
            return
        self._published = published
        if ended is None or before is None:
            return
        if self._steps:
            self._steps |= dict.fromkeys(range(before + 2, published + 1), ended)
        self._steps[published + 1] = ended
        step = self._steps.pop(published, None)
        times = [time for key in _TIMES if isinstance(time := logged.get(key), int) and time > 0]
        if step is not None and len(times) == len(_TIMES):
            self.iterations.append(DdpIteration(step, published, *times))

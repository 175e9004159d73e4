"""The guard between the collector and the training: no fault of the one reaches the other."""

from __future__ import annotations

from collections.abc import Callable

from rankscope.collector.warning import warn


class Guard:
    """Runs the collector's own work; the first fault becomes one warning, and nothing runs after it.

    Attributes:
        consequence: what a fault ends, in words.
        fault: the fault that ended it, or None.
    """

    def __init__(
        self,
        clean_up: Callable[[], None],
        consequence: str = "rankscope stopped collecting in this process, training goes on",
    ) -> None:
        self.consequence = consequence
        self.fault: Exception | None = None
        self._clean_up = clean_up

    @property
    def broken(self) -> bool:
        """Whether a fault has happened."""
        return self.fault is not None

    def run(self, action: Callable[[], None]) -> None:
        """Run `action`, unless an earlier one failed. KeyboardInterrupt and SystemExit pass through."""
        fault = None if self.broken else self._attempt(action)
        if fault is None:
            return
        self.fault = fault
        # The clean-up after a fault may fail for the same reason; that adds nothing to the warning below.
        self._attempt(self._clean_up)
        warn(
            f"{self.consequence}: {type(fault).__name__}: {fault}. "
            "docs/collect.md, 'Troubleshooting', lists causes and cures."
        )

    @staticmethod
    def _attempt(action: Callable[[], None]) -> Exception | None:
        try:
            action()
        except Exception as fault:  # noqa: BLE001 - the one broad except: training must never break
            return fault
        return None

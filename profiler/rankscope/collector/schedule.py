"""Which steps are recorded: the same counting as `torch.profiler.schedule`, known ahead of time.

Knowing the next interesting step is what makes the other steps free: until then nothing is asked of torch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One stretch of steps that becomes one trace per rank.

    Attributes:
        index: number of the window, from 0.
        first: first step of the warm-up (equal to `active_from` without warm-up).
        active_from: first recorded step.
        end: first step after the window.
    """

    index: int
    first: int
    active_from: int
    end: int

    @property
    def active(self) -> int:
        """Number of recorded steps."""
        return self.end - self.active_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """`skip_first` steps once, then `repeat` times (0 = for ever) `wait`, `warmup` and `active` steps."""

    wait: int = 1
    warmup: int = 1
    active: int = 3
    repeat: int = 1
    skip_first: int = 0

    @property
    def cycle(self) -> int:
        """Number of steps from the start of one wait to the start of the next."""
        return self.wait + self.warmup + self.active

    def list_faults(self) -> list[str]:
        """What is wrong with these numbers, one text each; empty if they make a schedule."""
        faults = []
        for name, least in (("wait", 0), ("warmup", 0), ("active", 1), ("repeat", 0), ("skip_first", 0)):
            value: object = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                faults.append(f"{name} must be a whole number of steps, at least {least}, not {value!r}")
        return faults

    def window(self, index: int) -> Window:
        """The window with number `index`, whether or not `repeat` allows it.

        >>> Schedule(wait=1, warmup=1, active=3, skip_first=10).window(0)
        Window(index=0, first=11, active_from=12, end=15)
        """
        first = self.skip_first + index * self.cycle + self.wait
        active_from = first + self.warmup
        return Window(index=index, first=first, active_from=active_from, end=active_from + self.active)

    def find_window(self, step: int) -> Window | None:
        """The first window that starts at `step` or later; None when all are over.

        >>> Schedule(wait=1, warmup=1, active=3, repeat=2).find_window(2)
        Window(index=1, first=6, active_from=7, end=10)
        >>> Schedule(wait=1, warmup=1, active=3, repeat=1).find_window(2) is None
        True
        """
        passed = step - self.skip_first - self.wait
        index = 0 if passed <= 0 else -(-passed // self.cycle)
        return None if self.repeat and index >= self.repeat else self.window(index)

    def explain_nothing_recorded(self, steps: int) -> str:
        """Why a training of `steps` steps left no trace, and what to do."""
        first = self.window(0)
        if steps == 0:
            return (
                "Nothing was recorded: collector.step() was never called. Call it at the end of each training "
                f"step; {first.end} steps are needed."
            )
        return (
            f"Nothing was recorded: training ended after {steps} steps; recording begins with step "
            f"{first.active_from} (counted from 0: skip_first + wait + warmup) and a whole window needs {first.end} "
            "steps. Train longer or lower wait, warmup or skip_first."
        )

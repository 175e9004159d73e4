"""Clocks of one rank that are off: shifted or drifting."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from rankscope.testing.run_copy import edit_rank
from rankscope.testing.trace_file import RawJson, TraceDocument, microseconds

_NS_PER_US = 1_000
_PPB = 1_000_000_000
_PPB_PER_PPM = 1_000
BASE_KEY = "baseTimeNanoseconds"


def shift_clock(
    source: Path, destination: Path, *, rank: int, shift_ns: int, only_base: bool = False
) -> None:
    """Let the clock of one rank show `shift_ns` more.

    Args:
        source, destination: directories of the run and of the damaged copy.
        rank: whose clock.
        shift_ns: added to every time.
        only_base: change `baseTimeNanoseconds` and leave every ts; else the other way round.
    """

    def edit(document: TraceDocument) -> None:
        if only_base:
            document.replace_value(BASE_KEY, int(document.key_value(BASE_KEY)) + shift_ns)
            return
        for event in document.events:
            if "ts" in event:
                event["ts"] = _like(event["ts"], time_ns(event["ts"]) + shift_ns)

    edit_rank(source, destination, rank, edit)


def drift_clock(source: Path, destination: Path, *, rank: int, ppm: float) -> None:
    """Let the clock of one rank run `ppm` parts per million faster from its first event on.

    Starts and ends move; durations follow, so that rows that touch still touch.
    """

    def edit(document: TraceDocument) -> None:
        times = [time_ns(event["ts"]) for event in document.events if "ts" in event]
        first_ns, drift_ppb = min(times, default=0), round(ppm * _PPB_PER_PPM)

        def faster(ns: int) -> int:
            return ns + (ns - first_ns) * drift_ppb // _PPB

        for event in document.events:
            if "ts" not in event:
                continue
            start_ns = time_ns(event["ts"])
            if "dur" in event:
                end_ns = start_ns + time_ns(event["dur"])
                event["dur"] = _like(event["dur"], faster(end_ns) - faster(start_ns))
            event["ts"] = _like(event["ts"], faster(start_ns))

    edit_rank(source, destination, rank, edit)


def time_ns(us: int | Decimal) -> int:
    """Nanoseconds of a ts or dur as it was read, exactly.

    >>> time_ns(Decimal("5256887000100.001")), time_ns(3)
    (5256887000100001, 3000)
    """
    return int(us * _NS_PER_US)


def _like(old: int | Decimal, ns: int) -> RawJson:
    """A time as whole microseconds if it was and still can be, else with decimals."""
    return microseconds(ns, whole=isinstance(old, int) and ns % _NS_PER_US == 0)

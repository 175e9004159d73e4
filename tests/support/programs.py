"""Made-up work of a rank, for laws that hold for any: streams of kernels and copies, launches and steps.

Times are whole nanoseconds here, so that a law can count them; `rows_of` writes them as a trace does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hypothesis import strategies as st

from support.trace_text import Bare, Row, collective, kernel, launch, memcpy, nccl, step

Kind = Literal["compute", "communication", "memory"]
KINDS: tuple[Kind, ...] = ("compute", "communication", "memory")
STEP_NS = 100
FIRST_STEP = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvent:
    """A row of a stream; `launched_ns` is None if the trace holds no launch of it."""

    kind: Kind
    stream: int
    start_ns: int
    duration_ns: int
    correlation: int
    launched_ns: int | None

    @property
    def units(self) -> set[int]:
        """Its nanoseconds, one by one."""
        return set(range(self.start_ns, self.start_ns + self.duration_ns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What one rank does: `steps` steps of STEP_NS each from 0 on, numbered from FIRST_STEP."""

    events: tuple[DeviceEvent, ...]
    steps: int

    def step_of(self, event: DeviceEvent) -> int | None:
        """Number of the step in which an event was launched."""
        if event.launched_ns is None or not 0 <= event.launched_ns < self.steps * STEP_NS:
            return None
        return FIRST_STEP + event.launched_ns // STEP_NS


_slots = st.tuples(
    st.integers(0, 25),  # gap before it
    st.integers(0, 40),  # duration
    st.sampled_from(KINDS),
    st.one_of(st.none(), st.integers(-30, 330)),  # launched at
)


@st.composite
def programs(draw: st.DrawFn, *, streams: int = 3, longest: int = 5) -> Program:
    """Any work on up to `streams` streams with up to `longest` events each."""
    events: list[DeviceEvent] = []
    for stream in range(draw(st.integers(1, streams))):
        now = draw(st.integers(-50, 100))
        for gap, duration, kind, launched in draw(st.lists(_slots, max_size=longest)):
            now += gap
            events.append(
                DeviceEvent(
                    kind=kind,
                    stream=stream,
                    start_ns=now,
                    duration_ns=duration,
                    correlation=len(events) + 1,
                    launched_ns=launched,
                )
            )
            now += duration
    return Program(events=tuple(events), steps=draw(st.integers(0, 3)))


def rows_of(program: Program, *, shift_ns: int = 0, scale: int = 1) -> list[Row]:
    """The rows of a program, `scale` times as slow and `shift_ns` later."""

    def at(ns: int) -> Bare:
        return microseconds(ns * scale + shift_ns)

    rows = [
        step(FIRST_STEP + n, at(n * STEP_NS), microseconds(STEP_NS * scale)) for n in range(program.steps)
    ]
    for event in program.events:
        start, duration = at(event.start_ns), microseconds(event.duration_ns * scale)
        stream, correlation = event.stream, event.correlation
        if event.kind == "compute":
            rows.append(kernel("gemm", start, duration, stream=stream, correlation=correlation))
        elif event.kind == "communication":
            args = collective("allreduce", 8, 8)
            rows.append(nccl(start, duration, stream=stream, correlation=correlation, args=args))
        else:
            rows.append(memcpy(start, duration, stream=stream, correlation=correlation))
    launched = {e.correlation: e.launched_ns for e in program.events if e.launched_ns is not None}
    return rows + [launch(correlation, at(ns), microseconds(scale)) for correlation, ns in launched.items()]


def split(event: DeviceEvent, after_ns: int) -> tuple[DeviceEvent, DeviceEvent]:
    """Two events that touch, in place of one."""
    return (
        replace(event, duration_ns=after_ns),
        replace(event, start_ns=event.start_ns + after_ns, duration_ns=event.duration_ns - after_ns),
    )


def microseconds(ns: int) -> Bare:
    """A time as torch >= 2.4 writes it."""
    return Bare(f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}")

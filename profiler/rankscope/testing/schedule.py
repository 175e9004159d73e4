"""Lays out what all ranks of a synthetic run do in time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rankscope.errors import UsageError
from rankscope.testing.device import DeviceEngine, Task
from rankscope.testing.host import CpuHost, DeviceHost
from rankscope.testing.program import Backend, Group, Program
from rankscope.testing.timeline import DeviceSpan, RankTimeline, Timeline


def lay_out(programs: Mapping[int, Program], groups: Iterable[Group], backend: Backend = "nccl") -> Timeline:
    """The rows of every rank in true nanoseconds, from 0 where all host threads start.

    Args:
        programs: rank -> what it does.
        groups: the process groups that the programs name.
        backend: "gloo" runs compute on the host thread, the others on a device.

    Returns:
        The timeline.

    Raises:
        UsageError: ranks call different collectives, or wait for a collective that others never call.
    """
    by_name = {group.name: group for group in groups}
    engine = DeviceEngine(by_name.values())
    make = CpuHost if backend == "gloo" else DeviceHost
    hosts = [make(rank, program, engine, by_name) for rank, program in programs.items()]
    for host in hosts:
        host.run()
    engine.settle()
    _require_end(hosts, engine)
    return Timeline(backend=backend, ranks={host.rank: _rank_timeline(host) for host in hosts})


def _require_end(hosts: list[DeviceHost], engine: DeviceEngine) -> None:
    stuck = [h.rank for h in hosts if not h.finished or any(t.end_ns is None for t in h.tasks)]
    if stuck:
        raise UsageError(
            f"ranks {stuck} wait for ever; collectives that not all of their ranks call:\n  "
            + "\n  ".join(engine.open_meetings())
        )


def _rank_timeline(host: DeviceHost) -> RankTimeline:
    return RankTimeline(host=tuple(host.spans), device=tuple(_device_span(task) for task in host.tasks))


def _device_span(task: Task) -> DeviceSpan:
    if task.item is None or task.start_ns is None or task.end_ns is None:
        raise UsageError(f"work {task.launch} of rank {task.rank} never ran")
    return DeviceSpan(
        item=task.item,
        stream=task.stream,
        start_ns=task.start_ns,
        end_ns=task.end_ns,
        launch=task.launch,
        sequence=task.sequence,
        step=task.step,
    )

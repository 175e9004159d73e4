"""What a run knows of its ranks."""

from __future__ import annotations

from rankscope.model.run import Run
from support.reading import run_of
from support.trace_text import annotation, cpu_op, kernel, launch


def test_run_without_windows() -> None:
    run = Run(name="r", source="r", windows=())
    assert run.ranks == ()
    assert run.world_size is None
    assert run.missing_ranks == ()
    assert run.is_cpu_only


def test_ranks_and_those_that_are_missing() -> None:
    run = run_of({3: [kernel("a", 0, 1)], 1: [kernel("a", 0, 1)]}, world_size=5)
    assert run.ranks == (1, 3)
    assert run.world_size == 5
    assert run.missing_ranks == (0, 2, 4)


def test_nothing_is_missing_where_the_world_size_is_not_said() -> None:
    run = run_of({3: [kernel("a", 0, 1)]}, metadata={"distributedInfo": {"rank": 3}})
    assert run.world_size is None
    assert run.missing_ranks == ()


def test_cpu_only_is_a_run_without_device_events_and_launches() -> None:
    host = [cpu_op("aten::mm", 0, 1), annotation("mark", 0, 1)]
    assert run_of({0: host, 1: host}).is_cpu_only
    assert not run_of({0: host, 1: [*host, kernel("a", 0, 1)]}).is_cpu_only
    assert not run_of({0: host, 1: [*host, launch(1, 0)]}).is_cpu_only

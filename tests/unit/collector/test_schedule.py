"""Which steps a schedule records; `torch.profiler.schedule` is the model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.collector.schedule import Schedule, Window


def test_first_window_follows_skip_wait_and_warmup() -> None:
    schedule = Schedule(skip_first=10, wait=5, warmup=2, active=3)
    assert schedule.find_window(0) == Window(index=0, first=15, active_from=17, end=20)


def test_second_window_comes_one_cycle_later() -> None:
    schedule = Schedule(skip_first=10, wait=5, warmup=2, active=3, repeat=2)
    assert schedule.find_window(16) == Window(index=1, first=25, active_from=27, end=30)


def test_windows_may_touch() -> None:
    schedule = Schedule(wait=0, warmup=0, active=2, repeat=3)
    assert schedule.find_window(2) == Window(index=1, first=2, active_from=2, end=4)


def test_no_window_after_the_last() -> None:
    assert Schedule(wait=1, warmup=1, active=3, repeat=1).find_window(5) is None


def test_repeat_zero_never_ends() -> None:
    window = Schedule(wait=1, warmup=1, active=3, repeat=0).find_window(5_001)
    assert window == Window(index=1000, first=5_001, active_from=5_002, end=5_005)


def test_all_faults_are_named_at_once() -> None:
    faults = Schedule(wait=-1, warmup=0, active=0, repeat=True, skip_first=0).list_faults()
    assert [fault.split()[0] for fault in faults] == ["wait", "active", "repeat"]


@settings(deadline=None)  # the first example imports torch
@given(
    skip_first=st.integers(0, 7),
    wait=st.integers(0, 4),
    warmup=st.integers(1, 3),
    active=st.integers(1, 4),
    repeat=st.integers(0, 3),
)
def test_every_step_is_as_torch_would_have_it(
    skip_first: int, wait: int, warmup: int, active: int, repeat: int
) -> None:
    profiler = pytest.importorskip("torch.profiler", reason="torch.profiler.schedule is the model")
    theirs = profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first)
    ours = Schedule(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first)
    for step in range(40):
        window = ours.find_window(max(0, step - warmup - active + 1))
        if window is None or step < window.first:
            expected = "NONE"
        elif step < window.active_from:
            expected = "WARMUP"
        else:
            expected = "RECORD_AND_SAVE" if step == window.end - 1 else "RECORD"
        assert theirs(step).name == expected, step

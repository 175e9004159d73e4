"""How the collector speaks, and that no fault of its own gets through."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from rankscope.collector import RankscopeWarning
from rankscope.collector.guard import Guard
from rankscope.collector.warning import warn


def test_warning_points_at_the_line_of_the_user() -> None:
    with pytest.warns(RankscopeWarning, match="hello") as caught:
        warn("hello")
    assert caught[0].filename == __file__


def test_warnings_as_errors_do_not_break_training(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn("hello")
    assert capsys.readouterr().err == "RankscopeWarning: hello\n"


def test_first_fault_is_one_warning_and_the_last_action(said: Callable[[], list[str]]) -> None:
    done: list[str] = []
    guard = Guard(clean_up=lambda: done.append("clean"))

    def fail() -> None:
        raise OSError("disk on fire")

    guard.run(lambda: done.append("before"))
    guard.run(fail)
    guard.run(fail)
    guard.run(lambda: done.append("after"))
    assert done == ["before", "clean"]
    assert guard.broken
    assert len(said()) == 1
    assert "OSError: disk on fire" in said()[0]


def test_a_fault_in_the_clean_up_adds_no_second_warning() -> None:
    def fail() -> None:
        raise RuntimeError("fault")

    with pytest.warns(RankscopeWarning) as caught:
        Guard(clean_up=fail).run(fail)
    assert len(caught) == 1


def test_ctrl_c_passes_through() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    guard = Guard(clean_up=lambda: None)
    with pytest.raises(KeyboardInterrupt):
        guard.run(interrupt)
    assert not guard.broken

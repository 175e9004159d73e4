"""Texts of options that are more than a word: steps and labels."""

from __future__ import annotations

import pytest

from rankscope.cli.options import parse_labels, parse_steps
from rankscope.errors import UsageError


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("4", {4}),
        ("4-6,9", {4, 5, 6, 9}),
        (" 4 , 5-5 ", {4, 5}),
        ("0", {0}),
        ("3,3,2-4", {2, 3, 4}),
    ],
)
def test_steps(text: str, steps: set[int]) -> None:
    assert parse_steps(text) == frozenset(steps)


@pytest.mark.parametrize("text", ["", "  "])
def test_no_steps_are_all_steps(text: str) -> None:
    assert parse_steps(text) is None


@pytest.mark.parametrize("text", ["x", "4-", "-4", "6-4", "4,,5", "4 5", "1.5", "²"])
def test_what_is_no_step(text: str) -> None:
    with pytest.raises(UsageError, match="--steps"):
        parse_steps(text)


def test_all_bad_steps_are_named_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        parse_steps("1,x,5-3")
    assert "'x', '5-3'" in str(caught.value)


@pytest.mark.parametrize("text", ["0-99999999999", "9" * 5000, "0-" + "9" * 30])
def test_a_range_that_no_run_can_hold_is_refused_at_once(text: str) -> None:
    with pytest.raises(UsageError, match="--steps"):
        parse_steps(text)


def test_labels() -> None:
    assert parse_labels([]) == {}
    assert parse_labels(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}


def test_all_bad_labels_are_named_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        parse_labels(["ok=1", "plain", "=value"])
    assert "'plain', '=value'" in str(caught.value)

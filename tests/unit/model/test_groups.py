"""Labels and identities of process groups."""

from __future__ import annotations

import pytest

from rankscope.model.groups import GroupKey, compact_ranks, group_label


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([], ""),
        ([5], "5"),
        ([0, 1], "0-1"),
        ([3, 1, 2, 2], "1-3"),
        ([7, 0, 1, 2, 5], "0-2,5,7"),
        ([0, 2, 4], "0,2,4"),
    ],
)
def test_runs_of_ranks_are_shortened(ranks: list[int], text: str) -> None:
    assert compact_ranks(ranks) == text


def test_label_says_purpose_ranks_and_number() -> None:
    assert group_label([0, 1, 2, 3], "default_pg", 0) == "default_pg [0-3]"
    assert group_label([0, 1], "tp", 2) == "tp [0-1] #3"
    assert group_label([0, 4], "undefined", 0) == "[0,4]"
    assert group_label([0, 4], "", 1) == "[0,4] #2"


def test_groups_are_the_same_whatever_they_are_called() -> None:
    """DESIGN: group = (rank set, ordinal); the name is a check only."""
    a, b = GroupKey((0, 1), 0, "default_pg [0-1]"), GroupKey((0, 1), 0, "mine")
    assert a.identity == b.identity
    assert a.identity != GroupKey((0, 1), 1, "default_pg [0-1]").identity

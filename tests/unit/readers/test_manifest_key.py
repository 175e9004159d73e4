"""The collector's facts under the key `rankscope`: used, or left out with a note, never half believed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rankscope.model.manifest import MANIFEST_VERSION
from rankscope.model.run import Problem, TraceWindow
from rankscope.readers.identity import identify
from support.reading import read_text
from support.trace_text import job, kernel, trace_text

FACTS: dict[str, Any] = {
    "format": {"name": "rankscope-manifest", "version": "1.0"},
    "rank": 3,
    "world_size": 4,
    "window": 0,
    "host": "node1",
    "backend": "gloo",
    "versions": {"torch": "2.13.0"},
    "groups": [{"name": "0", "description": "default_pg", "backend": "gloo", "ranks": [0, 1, 2, 3]}],
    "labels": {"branch": "main"},
}


def window_of(facts: Any, **metadata: Any) -> tuple[TraceWindow, list[Problem]]:
    text = trace_text([kernel("a", 0, 1)], {"rankscope": facts, **metadata})
    windows, problems = identify([read_text(text, name="rank9.json")])
    return windows[0], [p for p in problems if p.kind == "manifest"]


@pytest.mark.parametrize("facts", [FACTS, json.dumps(FACTS)], ids=["object", "text"])
def test_facts_as_object_or_as_text(facts: Any) -> None:
    """`add_metadata_json` writes a value, `add_metadata` its text."""
    window, problems = window_of(facts)
    assert problems == []
    assert (window.rank, window.rank_source) == (3, "manifest")
    assert (window.world_size, window.host, window.backend) == (4, "node1", "gloo")
    assert window.versions == {"torch": "2.13.0"}
    assert [(g.name, g.ranks) for g in window.groups] == [("0", (0, 1, 2, 3))]
    assert window.manifest is not None
    assert window.manifest.labels == {"branch": "main"}


def test_distributed_info_goes_before_the_facts() -> None:
    config = [{"pg_name": "7", "ranks": [0, 1]}]
    window, _ = window_of(FACTS, **job(1, 2, pg_config=config))
    assert (window.rank, window.rank_source, window.world_size, window.backend) == (
        1,
        "distributedInfo",
        2,
        "nccl",
    )
    assert [g.name for g in window.groups] == ["7"]


def test_unknown_keys_and_minor_versions_are_read() -> None:
    later = {**FACTS, "format": {"name": "rankscope-manifest", "version": "1.7", "since": 2027}, "new": [1]}
    window, problems = window_of(later)
    assert problems == []
    assert window.rank == 3


def test_another_major_version_is_left_out_with_both_numbers() -> None:
    """Whatever else changed in it, the version is the reason that is given."""
    facts = {**FACTS, "format": {"name": "rankscope-manifest", "version": "2.3"}, "rank": {"global": 3}}
    window, problems = window_of(facts)
    assert window.manifest is None
    assert window.rank_source == "file name"
    (problem,) = problems
    assert problem.severity == "note"
    assert "2.3" in problem.message
    assert MANIFEST_VERSION in problem.message


@pytest.mark.parametrize(
    "facts",
    [
        {}, [], [1], 5, True, "", "text", "{oops", "[" * 5000, "{\"a\":" * 5000, "null",
        {"rank": 3}, {"format": None}, {"format": {"name": "rankscope-report", "version": "1.0"}, "rank": 3},
        {**FACTS, "rank": "three"}, {**FACTS, "groups": 5}, {**FACTS, "format": {"name": "rankscope-manifest"}},
    ],
    ids=lambda facts: str(facts)[:20],
)  # fmt: skip
def test_what_is_no_manifest_is_left_out_and_said(facts: Any) -> None:
    window, problems = window_of(facts)
    assert window.manifest is None
    assert (window.rank, window.rank_source) == (9, "file name")
    assert [p.severity for p in problems] == ["note"]


def test_no_facts_at_all_is_nothing_to_say() -> None:
    assert window_of(None)[1] == []


@pytest.mark.parametrize("rank", [-1, 10**30])
def test_a_rank_of_the_facts_that_cannot_be(rank: int) -> None:
    window, _ = window_of({**FACTS, "rank": rank})
    assert (window.rank, window.rank_source) == (9, "file name")


def test_a_scrubbed_host_stays_scrubbed() -> None:
    assert window_of({**FACTS, "host": ""}, host_name="secret")[0].host is None

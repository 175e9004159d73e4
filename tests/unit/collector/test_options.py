"""What the collector's options mean, and how a wrong one is told."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from rankscope.collector import Collector, on_trace_ready
from rankscope.collector.options import (
    OutputOptions,
    parse_calibrate,
    parse_output,
    parse_ranks,
)
from rankscope.errors import RankscopeError, UsageError


def _options(max_trace_mb: float | None = None, stagger_seconds: float | None = None) -> OutputOptions:
    return parse_output(
        "runs/a", [], labels=None, scrub=False, max_trace_mb=max_trace_mb, stagger_seconds=stagger_seconds
    )


def test_none_means_all_ranks() -> None:
    selection = parse_ranks(None, [])
    assert selection.is_everyone
    assert selection.includes(4711)


def test_a_number_means_every_nth_rank() -> None:
    selection = parse_ranks(8, [])
    assert not selection.is_everyone
    assert [rank for rank in range(20) if selection.includes(rank)] == [0, 8, 16]


def test_a_list_names_the_ranks() -> None:
    selection = parse_ranks([0, 7], [])
    assert not selection.is_everyone
    assert [rank for rank in range(20) if selection.includes(rank)] == [0, 7]


@pytest.mark.parametrize("ranks", [0, -2, [], [-1], ["0"]])
def test_ranks_that_mean_nothing_are_refused(ranks: int | list[int]) -> None:
    faults: list[str] = []
    assert parse_ranks(ranks, faults).is_everyone
    assert len(faults) == 1
    assert faults[0].startswith("ranks")


def test_every_wrong_option_is_named_in_one_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Collector(tmp_path, active=0, ranks=[], max_trace_mb=-1, stagger_seconds=math.nan)
    for name in ("active", "ranks", "max_trace_mb", "stagger_seconds"):
        assert name in str(caught.value)


def test_a_url_is_refused_with_the_way_to_go() -> None:
    with pytest.raises(UsageError, match="rankscope push"):
        on_trace_ready("s3://bucket/runs/a")


def test_limit_is_in_mebibytes() -> None:
    assert _options(max_trace_mb=1.5).max_trace_bytes == 1_572_864


@pytest.mark.parametrize(
    ("rank", "world_size", "seconds"),
    [(63, 64, 0.0), (0, 65, 0.0), (50, 100, 0.5), (512, 1024, 5.12), (9_000, 10_000, 27.0)],
)
def test_writing_is_spread_only_over_many_ranks(rank: int, world_size: int, seconds: float) -> None:
    assert _options().find_delay_seconds(rank, world_size) == pytest.approx(seconds)


def test_stagger_is_the_time_over_which_ranks_spread() -> None:
    assert _options(stagger_seconds=8).find_delay_seconds(1, 4) == 2.0
    assert _options(stagger_seconds=0).find_delay_seconds(9_000, 10_000) == 0.0


def test_without_torch_the_error_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RankscopeError, match=r"needs torch.*pip install torch"):
        Collector(tmp_path)
    with pytest.raises(RankscopeError, match="needs torch"):
        on_trace_ready(tmp_path)


def test_a_disabled_collector_needs_no_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with Collector(tmp_path / "run", enabled=False) as collector:
        model = object()
        assert collector.watch(model) is model
        collector.step()
    assert not (tmp_path / "run").exists()


def test_calibration_may_be_given_its_time() -> None:
    assert [parse_calibrate(value, []) for value in (False, True, 10, 0.5)] == [0.0, 3.0, 10.0, 0.5]


@pytest.mark.parametrize("calibrate", [0, -1, 301, math.nan, math.inf])
def test_times_that_mean_nothing_are_refused(calibrate: float, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="calibrate"):
        Collector(tmp_path, calibrate=calibrate)

"""Real runs, all ranks together: whom they wait for, what it costs, and what may not be said (../shared/traces)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankscope.model.report import CollectiveRow, Straggler
from rankscope.pipeline.analyze import Analysis, AnalyzeOptions, analyze_fully
from rankscope.pipeline.together import measure_lateness
from rankscope.readers.run_reader import read_run

SETS = (
    "amd_resnet_ddp_4rank",
    "param_dlrm_8rank",
    "torchrec_straggler_4rank",
    "torchrec_resnet18_2rank",
    "megatron_tp2_2rank",
    "nanogpt_h100_8rank",
)
US = 1_000
MS = 1_000_000


@cache
def analysis_of(folder: Path) -> Analysis:
    return analyze_fully(read_run(folder), AnalyzeOptions(detail="full"))


@pytest.fixture(scope="module")
def amd(shared_traces: Path) -> Analysis:
    return analysis_of(shared_traces / "amd_resnet_ddp_4rank")


@pytest.fixture(scope="module")
def nanogpt(shared_traces: Path) -> Analysis:
    return analysis_of(shared_traces / "nanogpt_h100_8rank")


def expected_of(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return loaded


def straggler_of(analysis: Analysis) -> Straggler:
    assert analysis.report.straggler is not None
    return analysis.report.straggler


def all_reduces(analysis: Analysis) -> list[CollectiveRow]:
    return [row for row in analysis.report.collectives if row.op == "all_reduce"]


@pytest.mark.parametrize("name", SETS)
def test_the_straggler_of_the_set_is_named(shared_traces: Path, name: str) -> None:
    straggler = straggler_of(analysis_of(shared_traces / name))
    assert (straggler.verdict, straggler.scope) == ("found", "rank")
    assert straggler.rank == expected_of(shared_traces / name)["straggler"]["rank"]


@pytest.mark.parametrize("name", SETS)
def test_lateness_per_step_with_the_exclusions_off(shared_traces: Path, name: str) -> None:
    together = analysis_of(shared_traces / name).together
    measured = measure_lateness(
        together.comms,
        together.times,
        together.clocks,
        together.graph,
        together.collective_step,
        None,
        exclude=False,
    ).per_step
    expected = {
        (int(step), int(rank)): ms
        for step, by_rank in expected_of(shared_traces / name)["lateness_ms_per_step"].items()
        for rank, ms in by_rank.items()
    }
    assert {key: measured[key] / MS for key in expected} == pytest.approx(expected, abs=0.1)
    # Nobody else made the others wait for as long as the least of those whom the set names.
    others = [ns for (step, rank), ns in measured.items() if step >= 0 and (step, rank) not in expected]
    assert max(others, default=0) <= 0.4 * MS


@pytest.mark.parametrize("name", SETS)
def test_the_replay_with_nothing_changed_gives_the_measured_steps(shared_traces: Path, name: str) -> None:
    error = analysis_of(shared_traces / name).together.straggler.steps.replay_error
    assert error is not None
    assert error <= 0.02


def test_rank_3_is_last_in_15_of_15(amd: Analysis) -> None:
    assert [row.last_rank for row in all_reduces(amd)] == [3] * 15
    assert {row.matched_by for row in all_reduces(amd)} == {"inputs"}  # the one set with sequence numbers


def test_transfers_and_skews_of_the_buckets(amd: Analysis, shared_traces: Path) -> None:
    """The set's figures: transfer to 0.1 us, start skew to 1 us and by the ranks' own clocks."""
    offsets = amd.report.run.clock.offsets_ns
    buckets = expected_of(shared_traces / "amd_resnet_ddp_4rank")["per_bucket"]
    for elements, figures in buckets.items():
        mine = [row for row in all_reduces(amd) if row.size_bytes == 4 * int(elements)]
        assert len(mine) == 3
        transfer = np.mean([row.transfer_ns or 0 for row in mine]) / US
        assert transfer == pytest.approx(figures["transfer_us_mean"], abs=0.1)
        starts = [
            [ns + offsets[rank] for rank, ns in row.arrivals_ns.items()] for row in mine if row.arrivals_ns
        ]
        skew = np.mean([max(ns) - min(ns) for ns in starts]) / US
        assert skew == pytest.approx(figures["start_skew_us_mean"], abs=0.5 + 0.1)


def test_bus_bandwidth_of_the_buckets_in_decimal_gigabytes(amd: Analysis) -> None:
    """A ring all-reduce on 4 ranks moves 2 x 3/4 of the size over each link."""
    for row in all_reduces(amd):
        assert row.size_bytes is not None
        assert row.transfer_ns is not None
        assert row.algorithm_bandwidth_gbps == pytest.approx(row.size_bytes / row.transfer_ns)
        assert row.bus_bandwidth_gbps == pytest.approx(1.5 * row.size_bytes / row.transfer_ns)
    by_size = {row.size_bytes: row.bus_bandwidth_gbps or 0.0 for row in all_reduces(amd)}
    # 1,257,572 floats in 83.2 us on average: 1.5 x 5,030,288 B / 83.2 us = 90.7 GB/s.
    assert by_size[4 * 1_257_572] == pytest.approx(90.7, rel=0.04)


def test_most_of_rank_0s_all_reduce_time_is_waiting(amd: Analysis) -> None:
    """INDEX.md: 94.5 %."""
    rows = all_reduces(amd)
    waits = sum((row.waits_ns or {})[0] for row in rows)
    total = waits + sum(row.transfer_ns or 0 for row in rows)
    assert waits / total == pytest.approx(0.945, abs=0.0005)


def test_last_rank_per_position_of_the_dlrm(shared_traces: Path) -> None:
    folder = shared_traces / "param_dlrm_8rank"
    last = [row.last_rank for row in analysis_of(folder).report.collectives]
    assert last == expected_of(folder)["last_rank_by_position"] == [7, 7, 7, 7, 7, 5, 5, 4]


def test_one_second_on_the_host_and_the_annotation_that_holds_it(shared_traces: Path) -> None:
    analysis = analysis_of(shared_traces / "torchrec_straggler_4rank")
    straggler = straggler_of(analysis)
    assert straggler.cause == "host"
    assert straggler.cause_name is not None
    assert "sparse arch" in straggler.cause_name
    # The set says about 1.005 s a step at one all-to-all; what the step would be shorter is a little less.
    worst = sorted((row.lateness_ns or 0) / MS for row in analysis.report.collectives)[-3:]
    assert worst == pytest.approx([992.4, 1002.6, 1004.5], abs=0.2)
    assert straggler.cost_ns_per_step == pytest.approx(1_000 * MS, rel=0.05)


def test_the_first_collective_of_the_window_does_not_count(shared_traces: Path) -> None:
    analysis = analysis_of(shared_traces / "megatron_tp2_2rank")
    rows = all_reduces(analysis)
    assert len(rows) == 13
    assert rows[0].lateness_ns == pytest.approx(21.56 * MS, abs=0.1 * MS)
    lateness = analysis.together.lateness
    assert 0 not in lateness.collectives
    assert sum(lateness.per_step.values()) < (48.2 - 21.5) * MS
    assert {rank for _, rank in lateness.per_step} == {0}


def test_rank_1_of_the_h100_run_in_steps_11_to_13(nanogpt: Analysis) -> None:
    sums = nanogpt.together.lateness.per_step
    for step in (11, 12, 13):
        assert max((r for s, r in sums if s == step), key=lambda r: sums[step, r]) == 1


def test_every_collective_with_metadata_is_matched_on_all_ranks(nanogpt: Analysis) -> None:
    comms, matching = nanogpt.together.comms, nanogpt.together.matching
    named = np.array([token.size_bytes is not None for token in comms.tokens], bool)[comms.token]
    assert named.sum() == 56 * 8  # INDEX.md: 76 kernels on rank 0, of which 20 have no name
    assert (matching.collective[named] >= 0).all()
    complete = matching.is_complete[matching.collective[named]]
    assert complete.all()
    assert set(np.bincount(matching.collective[named]).tolist()) <= {0, 8}


def test_matched_ends_agree_within_200_us_and_bounds_within_25_us(nanogpt: Analysis) -> None:
    clock = nanogpt.report.run.clock
    assert clock.residual_ns.max is not None
    assert clock.residual_ns.max <= 200 * US
    assert len(clock.uncertainty_ns) == 8
    assert all(ns is not None and ns <= 25 * US for ns in clock.uncertainty_ns.values())
    bounds = [(c.low_ns, c.high_ns) for c in nanogpt.together.clocks.of_rank.values()]
    assert all(low is not None and high is not None and low <= high for low, high in bounds)


def test_nothing_is_paired_by_its_index(nanogpt: Analysis) -> None:
    """Kernel counts differ (76/76/76/76/81/84/84/84): the n-th of rank 0 is not the n-th of rank 7."""
    comms, matching = nanogpt.together.comms, nanogpt.together.matching
    counts = [int((comms.rank == rank).sum()) for rank in range(8)]
    assert counts == [76, 76, 76, 76, 81, 84, 84, 84]
    place = np.concatenate([np.arange(n) for n in counts])
    first, last = (
        dict(
            zip(
                matching.collective[comms.rank == rank].tolist(),
                place[comms.rank == rank].tolist(),
                strict=True,
            )
        )
        for rank in (0, 7)
    )
    shared = (set(first) & set(last)) - {-1}
    assert len(shared) >= 56
    assert {last[k] - first[k] for k in shared} == {8}


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("nccl_ddp_buckets_1of2", [1]),
        ("mi300_resnet_1of8", [1, 2, 3, 4, 5, 6, 7]),
        ("nanogpt_before_after/before", [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_one_rank_alone_decides_nothing(shared_traces: Path, name: str, missing: list[int]) -> None:
    analysis = analysis_of(shared_traces / name)
    straggler = straggler_of(analysis)
    assert (straggler.verdict, straggler.ranks) == ("inconclusive", [])
    assert analysis.report.run.missing_ranks == missing
    assert str(missing[0]) in straggler.reason
    assert all(row.last_rank is None and row.lateness_ns is None for row in analysis.report.collectives)

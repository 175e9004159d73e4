"""Ranks whose groups chain: who is slow, and who is only late because somebody else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankscope.model.report import Straggler
from rankscope.pipeline.analyze import Analysis, analyze_fully
from rankscope.readers.run_reader import read_run
from rankscope.testing.synth import (
    Scenario,
    TraceStyle,
    ddp_run,
    host_slow,
    pipeline_data_parallel,
    tensor_data_parallel,
    write_run,
)

MS = 1_000_000
US = 1_000


def analysis_of(scenario: Scenario, folder: Path, style: TraceStyle | None = None) -> Analysis:
    write_run(scenario, folder, style=style)
    return analyze_fully(read_run(folder))


def straggler_of(analysis: Analysis) -> Straggler:
    assert analysis.report.straggler is not None
    return analysis.report.straggler


def costs(straggler: Straggler) -> dict[int, int]:
    """Rank -> what it alone costs, without those that cost nothing."""
    return {row.rank: row.cost_ns_per_step for row in straggler.by_rank if row.cost_ns_per_step}


@pytest.mark.parametrize("torch", ["2.4", "2.12"])  # matched by order, and by sequence number
def test_a_slow_rank_is_named_and_not_the_neighbour_that_it_makes_late(tmp_path: Path, torch: str) -> None:
    """TP2 x DP2, tensor groups [0,1] and [2,3], data groups [0,2] and [1,3].

    Rank 0 needs 10 ms more before its tensor all-reduce, so rank 1 waits 10 ms for it; both are then 10 ms late at
    their data all-reduces, where ranks 2 and 3 wait. Last - second last arrival: rank 0 10 ms in its tensor group
    and 10 ms in its data group, 20 in all; rank 1 10 ms in its data group. Without rank 0's extra time every step
    is 10 ms shorter; without anything of rank 1's it is as long as before.
    """
    style = TraceStyle(torch=torch)  # type: ignore[arg-type]
    analysis = analysis_of(tensor_data_parallel(slow={0: 10 * MS}, steps=6), tmp_path, style)
    straggler = straggler_of(analysis)
    assert (straggler.verdict, straggler.scope, straggler.ranks) == ("found", "rank", [0])
    assert (straggler.cause, straggler.cost_ns_per_step) == ("compute", 10 * MS)
    assert costs(straggler) == {0: 10 * MS}
    # Step = load 0.1 + launch 0.005 + layer 4 + 10 + tensor 0.3 + tail 2 + data 2 + optimizer 0.5 = 18.905 ms.
    assert straggler.slowdown == pytest.approx(18.905 / 8.905)
    lateness = analysis.together.lateness.per_step
    assert lateness[3, 0] == 20 * MS
    assert lateness[3, 1] == 10 * MS
    assert set(lateness) <= {(step, rank) for step in range(6) for rank in (0, 1)}


def test_two_slow_ranks_of_a_tensor_group_are_named_together(tmp_path: Path) -> None:
    """Ranks 0 and 1 need 10 and 8 ms more: without both a step is 10 ms shorter, without rank 0 alone only 2."""
    straggler = straggler_of(
        analysis_of(tensor_data_parallel(slow={0: 10 * MS, 1: 8 * MS}, steps=5), tmp_path)
    )
    assert (straggler.scope, straggler.ranks, straggler.cost_ns_per_step) == ("group", [0, 1], 10 * MS)
    assert costs(straggler) == {0: 2 * MS}


@pytest.mark.parametrize("stage", [1, 2])
def test_a_slow_stage_is_named_and_no_other(tmp_path: Path, stage: int) -> None:
    """PP4 x DP2, stage i holds ranks 2i and 2i + 1; one of the inner stages needs 0.5 ms more per microbatch.

    Its four microbatches leave it one after another, 0.5 ms more apart: 4 x 0.5 = 2 ms a step. All replicas are
    late alike: no all-reduce has a rank that arrives alone, so plain lateness sees nothing. One rank of the stage
    alone costs nothing, as the other still holds up its pipeline.
    """
    slow = dict.fromkeys((2 * stage, 2 * stage + 1), 500 * US)
    analysis = analysis_of(pipeline_data_parallel(slow=slow, steps=5), tmp_path)
    straggler = straggler_of(analysis)
    assert (straggler.verdict, straggler.scope) == ("found", "stage")
    assert straggler.ranks == [2 * stage, 2 * stage + 1]
    assert (straggler.cause, straggler.cost_ns_per_step) == ("compute", 2 * MS)
    assert costs(straggler) == {}
    assert analysis.together.lateness.last_in == {}


@pytest.mark.parametrize("stage", [0, 3])
def test_a_slow_stage_at_an_end_of_the_pipeline_is_named(tmp_path: Path, stage: int) -> None:
    """First and last stage run programs of their own: only totals can be compared, so the cost is rough."""
    slow = dict.fromkeys((2 * stage, 2 * stage + 1), 500 * US)
    straggler = straggler_of(analysis_of(pipeline_data_parallel(slow=slow, steps=5), tmp_path))
    assert (straggler.verdict, straggler.scope) == ("found", "stage")
    assert straggler.ranks == [2 * stage, 2 * stage + 1]
    assert straggler.cost_ns_per_step is not None
    assert 1 * MS <= straggler.cost_ns_per_step <= 2 * MS


@pytest.mark.parametrize("rank", [0, 3, 6])
def test_a_slow_rank_of_a_pipeline_is_named_where_lateness_ties_four(tmp_path: Path, rank: int) -> None:
    """A rank of PP4 x DP2 is slow by 4 x 0.5 ms: all four of its replica come 2 ms late to their gradients."""
    analysis = analysis_of(pipeline_data_parallel(slow={rank: 500 * US}, steps=5), tmp_path)
    straggler = straggler_of(analysis)
    assert (straggler.scope, straggler.ranks, straggler.cost_ns_per_step) == ("rank", [rank], 2 * MS)
    assert costs(straggler) == {rank: 2 * MS}
    replica = range(rank % 2, 8, 2)
    assert {r: analysis.together.lateness.per_step[2, r] for r in replica} == dict.fromkeys(replica, 2 * MS)


@pytest.mark.parametrize("file_names", ["rankscope", "kineto"])
def test_a_host_with_two_equally_slow_ranks_is_named(tmp_path: Path, file_names: str) -> None:
    """16 ranks on 8 hosts; ranks 6 and 7 need 59.9 and 60 ms more in every step.

    Rank 7 arrives 0.1 ms after rank 6, and that is all that last - second last sees. Without rank 7's extra time
    rank 6 is the last, 0.1 ms earlier; without both the step is 60 ms shorter.
    """
    style = TraceStyle(file_names=file_names)  # type: ignore[arg-type]
    analysis = analysis_of(host_slow(steps=5), tmp_path, style)
    straggler = straggler_of(analysis)
    assert (straggler.verdict, straggler.scope, straggler.ranks) == ("found", "host", [6, 7])
    assert (straggler.cause, straggler.cost_ns_per_step) == ("compute", 60 * MS)
    assert costs(straggler) == {7: 100 * US}
    assert {rank for _, rank in analysis.together.lateness.per_step} == {7}
    assert max(analysis.together.lateness.per_step.values()) == 100 * US


@pytest.mark.parametrize("torch", ["2.1", "2.2"])
@pytest.mark.parametrize("slow", [0, 1])
def test_without_process_groups_in_the_traces_nobody_is_named(tmp_path: Path, torch: str, slow: int) -> None:
    """Old traces name no groups, so the all-reduces of both tensor groups look like those of one group of four.

    [0,1] ends its own 10 ms after [2,3]: no offset of the clocks makes both end together after all have arrived.
    """
    style = TraceStyle(torch=torch, file_names="kineto")  # type: ignore[arg-type]
    analysis = analysis_of(tensor_data_parallel(slow={slow: 10 * MS}, steps=6), tmp_path, style)
    straggler = straggler_of(analysis)
    assert (straggler.verdict, straggler.ranks) == ("inconclusive", [])
    assert "before all ranks have arrived" in straggler.reason


@pytest.mark.parametrize("biased", [0, 2])
def test_a_clock_bias_of_5_us_over_2000_collectives_names_nobody(tmp_path: Path, biased: int) -> None:
    """Collectives end 5 us later on one rank than on the others, so its clock is aligned 5 us wrong.

    It then seems to arrive 5 us before (the others, if it is the reference: after) everybody in all 2,000
    collectives: 10 ms in a run of half a second, and nobody ever waited.
    """
    buckets = (1_000,) * 20
    scenario = ddp_run(
        ranks=3,
        steps=100,
        buckets=buckets,
        backward_ns=(100 * US,) * 20,
        transfer_ns=(20 * US,) * 20,
        forward_ns=2 * MS,
        end_jitter_ns={biased: 5 * US},
    )
    style = TraceStyle(flows=False, pretty=False, compress=False, record_shapes=False)
    analysis = analysis_of(scenario, tmp_path, style)
    assert len(analysis.together.matching) == 2_000
    straggler = straggler_of(analysis)
    assert (straggler.verdict, straggler.ranks) == ("none", [])
    assert sum(analysis.together.lateness.per_step.values()) == 0

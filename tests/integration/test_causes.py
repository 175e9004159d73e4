"""Why a rank is late, for each cause, on written traces of small programs; times are worked by hand.

Four ranks reduce over all of them once per step. A rank's own work in a step is 5 ms and `SLOW` does 3 ms more, so
each step would be 3 ms shorter without that.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rankscope.model.report import Straggler
from rankscope.pipeline import analyze
from rankscope.testing.expected import Expected
from rankscope.testing.program import (
    COMMUNICATION,
    Collective,
    Compute,
    Copy,
    DeviceSync,
    Group,
    HostWork,
    Item,
    StreamWait,
    step,
)
from rankscope.testing.scenario import Scenario
from rankscope.testing.synth import write_run

MS = 1_000_000
SLOW = 2
RANKS = range(4)
WORLD = Group(name="0", ranks=tuple(RANKS), description="default_pg")
STEPS = range(3, 11)


def reduce_over(group: Group, transfer_ns: int = MS) -> tuple[Item, ...]:
    """A reduction that the compute after it waits for, as the optimizer does."""
    return (
        Collective(group=group.name, op="all_reduce", elements=1 << 20, transfer_ns=transfer_ns),
        StreamWait(stream="compute", on=COMMUNICATION),
    )


def gemm(duration_ns: int) -> Compute:
    return Compute(name="gemm", duration_ns=duration_ns)


def straggler_of(
    directory: Path,
    work: dict[int, tuple[Item, ...]],
    groups: tuple[Group, ...] = (WORLD,),
    ranks_per_host: int = 8,
) -> Straggler:
    """The verdict on a run in which every step of a rank is its items."""
    programs = {rank: tuple(step(n, *items, DeviceSync()) for n in STEPS) for rank, items in work.items()}
    scenario = Scenario(
        name="causes",
        backend="nccl",
        programs=programs,
        groups=groups,
        expected=Expected(name="causes", reasoning="in the test", world_size=len(work)),
        ranks_per_host=ranks_per_host,
    )
    write_run(scenario, directory)
    straggler = analyze(directory).straggler
    assert straggler is not None
    return straggler


COPY = Copy(kind="HtoD", duration_ns=MS, size_bytes=1 << 20)
LONG_COPY = Copy(kind="HtoD", duration_ns=4 * MS, size_bytes=1 << 20)
LOADING = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.mark.parametrize(
    ("usual", "slow", "cause", "name", "stage"),
    [
        pytest.param((gemm(5 * MS),), (gemm(8 * MS),), "compute", "gemm", None, id="the same kernel takes longer"),
        pytest.param((gemm(MS),) * 5, (gemm(MS),) * 8, "work", "gemm", None, id="more kernels"),
        pytest.param(
            (gemm(5 * MS),),
            (gemm(5 * MS), Compute(name="scale", duration_ns=3 * MS)),
            "work", "scale", None, id="a kernel that the others do not run",
        ),
        pytest.param((COPY, gemm(4 * MS)), (LONG_COPY, gemm(4 * MS)), "memory", "Memcpy HtoD", None, id="a copy"),
        pytest.param(
            (gemm(5 * MS),),
            (HostWork(duration_ns=3 * MS, name="augment"), gemm(5 * MS)),
            "host", "augment", "outside the training stages", id="an annotated piece of host work",
        ),
        pytest.param(
            (HostWork(duration_ns=MS, name=LOADING), gemm(4 * MS)),
            (HostWork(duration_ns=4 * MS, name=LOADING), gemm(4 * MS)),
            "input", LOADING, "data loading", id="the data loader",
        ),
    ],
)  # fmt: skip
def test_the_cause_of_a_late_rank(
    tmp_path: Path, usual: tuple[Item, ...], slow: tuple[Item, ...], cause: str, name: str, stage: str | None
) -> None:
    work = {rank: (*(slow if rank == SLOW else usual), *reduce_over(WORLD)) for rank in RANKS}
    found = straggler_of(tmp_path, work)
    assert (found.verdict, found.scope, found.rank) == ("found", "rank", SLOW)
    assert found.cause == cause
    assert found.cause_stage == stage
    assert found.cause_name is not None
    assert found.cause_name.startswith(name)
    # Launch rows of a few us come with every further kernel.
    assert found.cost_ns_per_step == pytest.approx(3 * MS, abs=30_000)
    assert found.cause_ns_per_step == pytest.approx(3 * MS, abs=30_000)
    assert found.saved_ns_per_step == pytest.approx(3 * MS, abs=30_000)


ROW_OF = {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)}
COLUMN_OF = {0: (0, 2), 1: (1, 3), 2: (0, 2), 3: (1, 3)}


def mesh(slow_links: set[tuple[int, ...]]) -> tuple[dict[int, tuple[Item, ...]], tuple[Group, ...]]:
    """Two by two ranks that compute 5 ms and reduce in their row, then the same in their column."""
    pairs = sorted({*ROW_OF.values(), *COLUMN_OF.values()})
    groups = {pair: Group(name=str(i + 1), ranks=pair) for i, pair in enumerate(pairs)}

    def half(pair: tuple[int, int]) -> tuple[Item, ...]:
        return (gemm(5 * MS), *reduce_over(groups[pair], 4 * MS if pair in slow_links else MS))

    work = {rank: (*half(ROW_OF[rank]), *half(COLUMN_OF[rank])) for rank in RANKS}
    return work, (WORLD, *groups.values())


def test_slow_transfers_on_all_links_of_one_rank_name_that_rank(tmp_path: Path) -> None:
    found = straggler_of(tmp_path, *mesh({(2, 3), (0, 2)}))
    assert (found.verdict, found.scope, found.rank, found.cause) == ("found", "rank", 2, "network")
    # All links fast: 5 + 1 + 5 + 1 = 12 ms a step. Slow: ranks 0 and 2 leave their column at T, 1 and 3 at T - 3.
    # Row [0,1] ends at T+6, row [2,3] at T+9; both columns are complete at T+14 (waiting for the row [2,3]), column
    # [0,2] ends at T+18: 18 ms a step. 6 ms are lost.
    assert found.cost_ns_per_step == pytest.approx(6 * MS, abs=60_000)
    assert "4.0 times" in found.reason


def test_one_slow_link_names_the_link_since_either_end_may_be_it(tmp_path: Path) -> None:
    found = straggler_of(tmp_path, *mesh({(2, 3)}))
    assert (found.verdict, found.scope, found.ranks, found.cause) == ("found", "group", [2, 3], "network")


def test_slow_transfers_without_a_common_end_name_nobody(tmp_path: Path) -> None:
    # Rows are slow and columns are not: no rank has fewer slow links than another.
    found = straggler_of(tmp_path, *mesh({(0, 1), (2, 3)}))
    assert (found.verdict, found.ranks, found.cause) == ("none", [], None)


def test_slow_transfers_that_compute_hides_cost_nothing_and_name_nobody(tmp_path: Path) -> None:
    """Each row reduces beside 6 ms of compute, in 4 ms or in 1: every step takes 6 ms either way."""
    groups = {pair: Group(name=str(pair[0]), ranks=pair) for pair in ((0, 1), (2, 3))}

    def work(pair: tuple[int, int]) -> tuple[Item, ...]:
        transfer_ns = 4 * MS if pair == (2, 3) else MS
        reduced = Collective(
            group=groups[pair].name, op="all_reduce", elements=1 << 20, transfer_ns=transfer_ns
        )
        return (reduced, gemm(6 * MS))

    found = straggler_of(tmp_path, {rank: work(ROW_OF[rank]) for rank in RANKS}, tuple(groups.values()))
    assert (found.verdict, found.ranks, found.cause) == ("none", [], None)


def test_links_between_hosts_are_not_compared_with_links_inside_one(tmp_path: Path) -> None:
    # With two ranks on a host the rows lie inside a host and the columns cross: slower by nature, on both alike.
    work, groups = mesh({(0, 2), (1, 3)})
    found = straggler_of(tmp_path, work, groups, ranks_per_host=2)
    assert (found.verdict, found.cause) == ("none", None)


def test_hosts_that_are_slow_behind_the_wait_limit_what_a_step_would_gain(tmp_path: Path) -> None:
    def work(first_ms: int) -> tuple[Item, ...]:
        return (
            gemm(first_ms * MS),
            *reduce_over(WORLD),
            HostWork(duration_ns=6 * MS),
            gemm(MS),
            *reduce_over(WORLD),
        )

    found = straggler_of(tmp_path, {rank: work(8 if rank == SLOW else 1) for rank in RANKS})
    assert (found.rank, found.cause) == (SLOW, "compute")
    # Measured: 8 ms, transfer to 9, the second kernel (launched at 6) to 10, transfer to 11.
    # Like its peers, by devices alone: 1 ms, transfer to 2, kernel to 3, transfer to 4: 7 ms less.
    assert found.cost_ns_per_step == pytest.approx(7 * MS, abs=60_000)
    # But every host launches the second kernel at 6 ms only: kernel to 7, transfer to 8: 3 ms less.
    assert found.saved_ns_per_step == pytest.approx(3 * MS, abs=60_000)
    assert found.slowdown == pytest.approx(11 / 8, rel=0.02)

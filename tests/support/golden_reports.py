"""Reports made by hand for the golden files of tests/golden."""

from __future__ import annotations

from rankscope.model.report import (
    Coverage,
    Finding,
    GroupRow,
    Measures,
    ProblemRow,
    RankRow,
    Report,
    RunFacts,
    StepRow,
    Straggler,
    Tool,
    Totals,
    WindowRow,
)

MS = 1_000_000
STEP_WINDOW = "a step has no window of its own"


def make_ordinary() -> Report:
    """Two ranks, four steps of which the first is not steady, everything known."""
    ranks = _make_ranks()
    return Report(
        tool=Tool(version="0.1.0"),
        run=_make_facts(),
        totals=_make_totals(),
        coverage=Coverage(sized=1.0, named=1.0, in_steps=0.95),
        ranks=ranks,
        windows=[
            WindowRow(rank=r.rank, device=0, window=0, file=f"rank{r.rank}.pt.trace.json.gz",
                      started_ns=1_000 * r.rank, window_ns=r.window_ns)
            for r in ranks
        ],
        steps=[*_make_steps(0), *_make_steps(1)],
        groups=_make_groups(),
        straggler=Straggler(
            verdict="none",
            scope=None,
            rank=None,
            ranks=[],
            cause=None,
            cost_ns_per_step=0,
            slowdown=1.0,
            confidence="high",
            reason="no cost of 2 % of the step",
            by_rank=[],
        ),
        findings=_make_findings(),
        undefined={
            "steps[*].window_ns": STEP_WINDOW,
            "steps[*].idle_ns": STEP_WINDOW,
            "groups[group=default_pg [0-1],op=broadcast].size_bytes": "the trace gives no size for some of these",
            "groups[*].bus_bandwidth_gbps": "broadcasts were not matched over the ranks",
        },
    )  # fmt: skip


def _make_facts() -> RunFacts:
    return RunFacts(
        name="resnet50",
        source="runs/resnet50",
        started_at="2026-11-30T12:00:00+00:00",
        origin_ns="1796040000000000000",
        backend="nccl",
        world_size=2,
        ranks=[0, 1],
        rank_source={0: "distributedInfo", 1: "distributedInfo"},
        host={0: "node0", 1: "node1"},
        devices={0: "NVIDIA H100 80GB HBM3", 1: "NVIDIA H100 80GB HBM3"},
        versions={"torch": "2.13.0"},
        steps=[5, 6, 7, 8],
        steady_steps=[6, 7, 8],
    )


def _make_ranks() -> list[RankRow]:
    """Rank 0: 60 + 10 + 5 + 25 = 100 ms; rank 1: 62 + 7 + 5 + 26 = 100 ms."""
    return [
        RankRow(rank=0, device=0, host="node0", window_ns=100 * MS, compute_ns=60 * MS, communication_ns=30 * MS,
                overlap_ns=20 * MS, exposed_communication_ns=10 * MS, memory_ns=6 * MS, exposed_memory_ns=5 * MS,
                idle_ns=25 * MS, overlap_ratio=2 / 3, compute_kernels=900, communication_kernels=12,
                memory_operations=30),
        RankRow(rank=1, device=0, host="node1", window_ns=100 * MS, compute_ns=62 * MS, communication_ns=28 * MS,
                overlap_ns=21 * MS, exposed_communication_ns=7 * MS, memory_ns=5 * MS, exposed_memory_ns=5 * MS,
                idle_ns=26 * MS, overlap_ratio=0.75, compute_kernels=901, communication_kernels=12,
                memory_operations=30),
    ]  # fmt: skip


def _make_totals() -> Totals:
    run = Measures(window_ns=200 * MS, compute_ns=122 * MS, communication_ns=58 * MS, overlap_ns=41 * MS,
                   exposed_communication_ns=17 * MS, memory_ns=11 * MS, exposed_memory_ns=10 * MS,
                   idle_ns=51 * MS, overlap_ratio=41 / 58)  # fmt: skip
    steady = Measures(compute_ns=90 * MS, communication_ns=42 * MS, overlap_ns=35 * MS,
                      exposed_communication_ns=7 * MS, memory_ns=9 * MS, exposed_memory_ns=8 * MS,
                      overlap_ratio=5 / 6)  # fmt: skip
    return Totals(run=run, steady=steady)


def _make_groups() -> list[GroupRow]:
    return [
        GroupRow(
            group="default_pg [0-1]",
            ranks=[0, 1],
            op="all_reduce",
            count=20,
            size_bytes=20 * 26_214_400,
            communication_ns=54 * MS,
            exposed_communication_ns=14 * MS,
            overlap_ratio=40 / 54,
            bus_bandwidth_gbps=212.46,
        ),
        GroupRow(
            group="default_pg [0-1]",
            ranks=[0, 1],
            op="broadcast",
            count=2,
            size_bytes=None,
            communication_ns=4 * MS,
            exposed_communication_ns=3 * MS,
            overlap_ratio=0.25,
        ),
    ]


def _make_findings() -> list[Finding]:
    return [
        Finding(
            rule="exposed-communication",
            severity="warning",
            rank=None,
            step=None,
            message="Communication that nothing hides takes 4.7 % of the steady steps.",
            hint="Most of it is all_reduce in default_pg [0-1].",
        ),
        Finding(
            rule="slow-step",
            severity="info",
            rank=1,
            step=5,
            message="Step 5 took twice as long.",
            hint="",
        ),
    ]


def _make_steps(rank: int) -> list[StepRow]:
    """Step 5 hides nothing, the steady ones 5/6 of their 7 ms."""
    first = StepRow(step=5, rank=rank, device=0, duration_ns=50 * MS, compute_ns=15 * MS, communication_ns=8 * MS,
                    exposed_communication_ns=8 * MS, overlap_ratio=0.0)  # fmt: skip
    steady = [
        StepRow(step=step, rank=rank, device=0, steady=True, duration_ns=25 * MS, compute_ns=15 * MS,
                communication_ns=7 * MS, overlap_ns=6 * MS - rank * 333_333,
                exposed_communication_ns=1 * MS + rank * 333_333,
                overlap_ratio=(6 * MS - rank * 333_333) / (7 * MS))
        for step in (6, 7, 8)
    ]  # fmt: skip
    return [first, *steady]


def make_empty() -> Report:
    """Nothing could be read."""
    return Report(
        tool=Tool(version="0.1.0"),
        run=RunFacts(name="broken", source="runs/broken"),
        totals=Totals(run=Measures(window_ns=0)),
        problems=[
            ProblemRow(
                file="rank0.json",
                offset=0,
                kind="empty",
                severity="error",
                message="the file is empty; its rank is left out",
            )
        ],
        undefined={
            "totals.run.overlap_ratio": "no file could be read",
            "totals.steady": "nothing was analysed",
        },
    )


def make_hostile() -> Report:
    """One rank of three, without step markers, with names that try to be more than names."""
    evil_group = "a|b`c`\n::error file=x::boom <img src=x onerror=alert(1)> [l](javascript:alert(1)) @team #7"
    return Report(
        tool=Tool(version="0.1.0"),
        run=RunFacts(
            name="# <b>run</b>\r\n- [x](http://example.invalid)",
            source="runs/\u202egnp.exe",
            backend="nccl",
            world_size=3,
            ranks=[1],
            missing_ranks=[0, 2],
            devices={1: "GPU\x1b[31m"},
        ),
        totals=Totals(run=Measures(window_ns=900, compute_ns=700, idle_ns=200)),
        ranks=[RankRow(rank=1, device=3, host="h", window_ns=900, compute_ns=700, idle_ns=200)],
        groups=[
            GroupRow(
                group=evil_group,
                ranks=[0, 1, 2],
                op="</script><script>alert(1)</script>",
                count=1,
                size_bytes=None,
                communication_ns=0,
                exposed_communication_ns=0,
                overlap_ratio=None,
            )
        ],
        findings=[
            Finding(
                rule="x",
                severity="critical",
                rank=1,
                step=None,
                message="kernel " + "k" * 1000,
                hint="::warning::hint **bold** __init__ $x$",
            )
        ],
        problems=[
            ProblemRow(
                file="../../etc/\u202epasswd",
                offset=1234567,
                kind="syntax",
                severity="error",
                message="a quote is missing after \ud800 in `name`",
            ),
            ProblemRow(
                file="",
                offset=None,
                kind="missing-ranks",
                severity="warning",
                message="ranks 0,2 of 3 have no readable file",
            ),
        ],
        undefined={
            "totals.run.overlap_ratio": "no communication kernels <script>",
            "ranks[rank=1,device=3].overlap_ratio": "no communication kernels",
        },
    )

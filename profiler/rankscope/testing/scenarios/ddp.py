"""Synthetic DDP runs: gradient buckets that are all-reduced beside the rest of backward.

In a step that starts at T, rank r loads data (`input_ns`), and its device then works without a gap:
copy, forward, backward pieces B_1.., and after the all-reduces the optimizer. With A = T + input + launch
delay (none on gloo) + copy and R_k = A + forward + B_1 + ... + B_k (on gloo + the AccumulateGrad rows):

    start_k,r = max(R_k,r, end of the bucket before on its stream)    end_k = max over r of start + X_k
    exposed_r = max(0, end_n - end of backward_r)                     overlap_r = communication_r - exposed_r
    next T_r  = max(end_n, end of backward_r) + optimizer

A rank that is `extra_ns` late everywhere delays every end by exactly that: it costs `extra_ns` a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rankscope.testing.expected import Expected, ExpectedMeasures, ExpectedStraggler
from rankscope.testing.program import Backend
from rankscope.testing.scenario import Scenario, host_name
from rankscope.testing.scenarios.ddp_answers import StepAnswer, answer_steps, cost_ns_per_step
from rankscope.testing.scenarios.ddp_plan import (
    DEFAULT_BUCKETS,
    DdpPlan,
    Extra,
    Overlap,
    Where,
    backward_for,
    parameters_of,
    usual_transfer_ns,
)
from rankscope.testing.scenarios.ddp_program import ddp_facts_of, program_of
from rankscope.testing.scenarios.parts import everyone

_REASONING = (
    "Bucket k is ready on rank r at R = first compute + forward + backward pieces up to its last gradient; it "
    "starts at max(R, end of the bucket before on its stream) and ends on all ranks at the last start + "
    "transfer. Exposed = last end - end of backward, if positive; overlap = communication - exposed. The "
    "optimizer waits for both, and the next step for the optimizer: idle is only data loading and launch delay."
)


def ddp_run(
    *,
    ranks: int = 2,
    steps: int = 3,
    first_step: int = 0,
    buckets: Sequence[int | Sequence[int]] = DEFAULT_BUCKETS,
    overlap: Overlap = "partial",
    backward_ns: Sequence[int] | None = None,
    transfer_ns: Sequence[int] | None = None,
    initial_transfer_ns: int | None = None,
    straggler: tuple[int, int, Where] | None = None,
    end_jitter_ns: Mapping[int, int] | None = None,
    backend: Backend = "nccl",
    input_ns: int = 100_000,
    copy_ns: int = 0,
    forward_ns: int = 2_000_000,
    optimizer_ns: int = 500_000,
    workers: int = 1,
    ranks_per_host: int = 8,
    name: str = "ddp",
) -> Scenario:
    """A DDP run whose answers follow from its parameters, by the recurrences in the module's docstring.

    Args:
        ranks, steps and others that are not named here: see `DdpPlan`.
        buckets: each a number of elements, or the elements of its parameters in gradient-ready order.
        overlap: chooses `backward_ns` where that is not given: see `backward_for`.
        transfer_ns: of each bucket; see `usual_transfer_ns` for where it is not given.
        straggler: (rank, extra_ns per step, where); see `Extra`.
        ranks_per_host: ranks on one host.

    Returns:
        The scenario, with `expected`.

    Raises:
        UsageError: parameters without meaning, or a device that would wait for its host.
    """
    layout = parameters_of(buckets)
    transfers = tuple(map(usual_transfer_ns, layout) if transfer_ns is None else transfer_ns)
    plan = DdpPlan(
        name=name,
        ranks=ranks,
        steps=steps,
        first_step=first_step,
        buckets=layout,
        backward_ns=tuple(backward_ns or backward_for(overlap, layout, transfers)),
        transfer_ns=transfers,
        initial_transfer_ns=initial_transfer_ns,
        input_ns=input_ns,
        copy_ns=copy_ns,
        forward_ns=forward_ns,
        optimizer_ns=optimizer_ns,
        backend=backend,
        workers=workers,
        extras={} if straggler is None else {straggler[0]: Extra(extra_ns=straggler[1], where=straggler[2])},
        end_jitter_ns=dict(end_jitter_ns or {}),
    )
    return scenario_of(plan, ranks_per_host, _straggler(plan))


def scenario_of(plan: DdpPlan, ranks_per_host: int, straggler: ExpectedStraggler) -> Scenario:
    """The scenario of a plan, with its answers."""
    programs = {rank: program_of(plan, rank) for rank in range(plan.ranks)}
    return Scenario(
        name=plan.name,
        backend=plan.backend,
        programs=programs,
        groups=everyone(plan.ranks),
        expected=_expected(plan, ranks_per_host, straggler),
        ranks_per_host=ranks_per_host,
        ddp=ddp_facts_of(plan),
    )


def _straggler(plan: DdpPlan) -> ExpectedStraggler:
    if not plan.extras:
        return ExpectedStraggler(verdict="none")
    (rank,) = plan.extras
    costs = {r: cost_ns_per_step(plan, (r,)) for r in range(plan.ranks)}
    return ExpectedStraggler(
        verdict="found",
        scope="rank",
        ranks=(rank,),
        cause=plan.extras[rank].where,
        cost_ns_per_step=costs[rank],
        cost_by_rank_ns=costs,
    )


def _expected(plan: DdpPlan, ranks_per_host: int, straggler: ExpectedStraggler) -> Expected:
    answers = answer_steps(plan)
    return Expected(
        name=plan.name,
        reasoning=_REASONING,
        world_size=plan.ranks,
        ranks={rank: _whole_run(list(answers.values()), rank) for rank in range(plan.ranks)},
        steps={number: answer.measures for number, answer in answers.items()},
        step_duration_ns=_durations(plan, answers),
        collectives=tuple(c for answer in answers.values() for c in answer.collectives),
        buckets=tuple(b for answer in answers.values() for b in answer.buckets),
        bucket_elements={n: tuple(sum(b) for b in plan.buckets_of(n)) for n in plan.step_numbers},
        operations={"all_reduce": sum(len(plan.buckets_of(n)) for n in plan.step_numbers)},
        straggler=straggler,
        clock_offsets_ns=dict.fromkeys(range(plan.ranks), 0),
        hosts={rank: host_name(rank, ranks_per_host) for rank in range(plan.ranks)},
    )


def _durations(plan: DdpPlan, answers: dict[int, StepAnswer]) -> dict[int, dict[int, int]]:
    durations = {}
    starts = dict.fromkeys(range(plan.ranks), 0)
    for number, answer in answers.items():
        durations[number] = {rank: end_ns - starts[rank] for rank, end_ns in answer.end_ns.items()}
        starts = answer.end_ns
    return durations


def _whole_run(answers: list[StepAnswer], rank: int) -> ExpectedMeasures:
    """Steps do not share device time: sums, and idle is what lies between them."""
    steps = [answer.measures[rank] for answer in answers]
    pairs = pairwise(answers)
    return ExpectedMeasures(
        compute_ns=sum(m.compute_ns or 0 for m in steps),
        communication_ns=sum(m.communication_ns or 0 for m in steps),
        overlap_ns=sum(m.overlap_ns or 0 for m in steps),
        exposed_communication_ns=sum(m.exposed_communication_ns or 0 for m in steps),
        communication_self_overlap_ns=sum(m.communication_self_overlap_ns or 0 for m in steps),
        memory_ns=sum(m.memory_ns or 0 for m in steps),
        exposed_memory_ns=sum(m.exposed_memory_ns or 0 for m in steps),
        window_ns=answers[-1].end_ns[rank] - answers[0].first_ns[rank],
        idle_ns=sum(later.first_ns[rank] - earlier.end_ns[rank] for earlier, later in pairs),
    )

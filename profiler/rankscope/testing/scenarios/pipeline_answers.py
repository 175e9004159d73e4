"""The answers of a pipeline and data parallel run (all microbatches forward, then all backward).

Rank = stage x dp + replica. With P stages, M microbatches, forward f_i (slow stages longer), backward b,
messages of p between neighbours, and A = T + input + launch delay, a replica is a row of machines with queues
between them: M equal jobs leave the last of them at (sum of all machines) + (M - 1) x (longest machine). So

    forward of a replica ends on its last stage at G = A + sum f_i + (P-1) p + (M-1) max(f_i, p)
    backward of stage i ends at      e_i = G + (P-i) b + (P-1-i) p + (M-1) max(b, p if there is a message)
    gradients of stage i end at      max over replicas of e_i + X_g
    the norm over all ranks ends at  the latest of those + X_n, and then the optimizer runs everywhere

One stage that is x slower per microbatch makes G, and with it the step, M x longer: Sum grows by x, and the
longest machine by x in each of M - 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rankscope.testing.expected import Expected, ExpectedCollective, ExpectedMeasures, ExpectedStraggler
from rankscope.testing.program import LAUNCH_DELAY_NS, Group
from rankscope.testing.scenario import RANKS_PER_HOST, host_name
from rankscope.testing.scenarios.parts import DEFAULT_GROUP, number_groups

GRADIENT_ELEMENTS = 16_777_216
NORM_ELEMENTS = 1
MESSAGE_ELEMENTS = 2_097_152
_BF16_BYTES = 2
_FLOAT32_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan:
    """The parameters of a pipeline and data parallel run; see `pipeline_data_parallel`."""

    pp: int
    dp: int
    steps: int
    microbatches: int
    forward_ns: int
    backward_ns: int
    message_ns: int
    gradient_ns: int
    norm_ns: int
    optimizer_ns: int
    input_ns: int
    slow: Mapping[int, int] = field(default_factory=dict)

    @property
    def ranks(self) -> range:
        """All ranks."""
        return range(self.pp * self.dp)

    def stage(self, rank: int) -> int:
        """Pipeline stage of a rank."""
        return rank // self.dp

    def stage_ranks(self, stage: int) -> tuple[int, ...]:
        """The ranks of a stage: its data group."""
        return tuple(range(stage * self.dp, (stage + 1) * self.dp))

    def pipeline_ranks(self, replica: int) -> tuple[int, ...]:
        """The ranks of a replica, by stage."""
        return tuple(range(replica, self.pp * self.dp, self.dp))

    @property
    def groups(self) -> tuple[Group, ...]:
        """The default group, then a data group per stage, then a pipeline group per replica."""
        return number_groups(
            (tuple(self.ranks), "default_pg"),
            *((self.stage_ranks(stage), "DATA_PARALLEL_GROUP") for stage in range(self.pp)),
            *((self.pipeline_ranks(replica), "PIPELINE_MODEL_PARALLEL_GROUP") for replica in range(self.dp)),
        )

    def group_of(self, ranks: tuple[int, ...]) -> str:
        """Name of the group that holds exactly these ranks."""
        return next(group.name for group in self.groups if group.ranks == ranks)

    def forward_of(self, rank: int) -> int:
        """Forward of one microbatch on a rank, in ns."""
        return self.forward_ns + self.slow.get(rank, 0)


def answer_pipeline_run(plan: PipelinePlan) -> Expected:
    """The answers of a plan."""
    duration_ns = step_ns(plan)
    measures = {
        rank: ExpectedMeasures(
            compute_ns=plan.microbatches * (plan.forward_of(rank) + plan.backward_ns) + plan.optimizer_ns,
            memory_ns=0,
            exposed_memory_ns=0,
        )
        for rank in plan.ranks
    }
    return Expected(
        name="pipeline_data_parallel",
        reasoning="Stages are machines in a row with queues between them: the step = sum of all machines + "
        "(microbatches - 1) x longest, forward and backward, + gradients + norm + optimizer.",
        world_size=len(plan.ranks),
        ranks={rank: one.times(plan.steps) for rank, one in measures.items()},
        steps=dict.fromkeys(range(plan.steps), measures),
        step_duration_ns={n: dict.fromkeys(plan.ranks, duration_ns) for n in range(plan.steps)},
        collectives=tuple(c for n in range(plan.steps) for c in _collectives(plan, n, n * duration_ns)),
        straggler=_straggler(plan),
        clock_offsets_ns=dict.fromkeys(plan.ranks, 0),
        hosts={rank: host_name(rank, RANKS_PER_HOST) for rank in plan.ranks},
    )


def step_ns(plan: PipelinePlan) -> int:
    """Length of a step, the same on all ranks, in ns."""
    ends = [max(_backward_end_ns(plan, rank) for rank in plan.stage_ranks(i)) for i in range(plan.pp)]
    return max(ends) + plan.gradient_ns + plan.norm_ns + plan.optimizer_ns


def _backward_end_ns(plan: PipelinePlan, rank: int) -> int:
    """End of a rank's backward, after the start of its step."""
    forwards = [plan.forward_of(r) for r in plan.pipeline_ranks(rank % plan.dp)]
    messages = plan.pp - 1
    forward_end_ns = (
        plan.input_ns
        + LAUNCH_DELAY_NS
        + sum(forwards)
        + messages * plan.message_ns
        + (plan.microbatches - 1) * max(*forwards, plan.message_ns if messages else 0)
    )
    later = messages - plan.stage(rank)
    longest_ns = max(plan.backward_ns, plan.message_ns if later else 0)
    return (
        forward_end_ns
        + (later + 1) * plan.backward_ns
        + later * plan.message_ns
        + (plan.microbatches - 1) * longest_ns
    )


def _collectives(plan: PipelinePlan, number: int, start_ns: int) -> list[ExpectedCollective]:
    found: list[ExpectedCollective] = []
    ends: dict[int, int] = {}
    for stage in range(plan.pp):
        ranks = plan.stage_ranks(stage)
        arrivals = {rank: start_ns + _backward_end_ns(plan, rank) for rank in ranks}
        size = GRADIENT_ELEMENTS * _BF16_BYTES
        found.append(_all_reduce(number, plan.group_of(ranks), size, plan.gradient_ns, arrivals))
        ends.update(dict.fromkeys(ranks, found[-1].end_ns))
    norm = _all_reduce(number, DEFAULT_GROUP, NORM_ELEMENTS * _FLOAT32_BYTES, plan.norm_ns, ends)
    return [*found, norm]


def _all_reduce(
    number: int, group: str, size_bytes: int, transfer_ns: int, arrivals: dict[int, int]
) -> ExpectedCollective:
    return ExpectedCollective(
        step=number,
        group=group,
        op="all_reduce",
        size_bytes=size_bytes,
        transfer_ns=transfer_ns,
        arrivals_ns=arrivals,
    )


def _straggler(plan: PipelinePlan) -> ExpectedStraggler:
    slow = tuple(sorted(rank for rank, ns in plan.slow.items() if ns > 0))
    costs = {rank: _cost_ns(plan, (rank,)) for rank in plan.ranks}
    if not slow:
        return ExpectedStraggler(verdict="none", cost_by_rank_ns=costs)
    is_stage = slow == plan.stage_ranks(plan.stage(slow[0]))
    return ExpectedStraggler(
        verdict="found",
        scope="rank" if len(slow) == 1 else "stage" if is_stage else None,
        ranks=slow,
        cause="compute",
        cost_ns_per_step=_cost_ns(plan, slow),
        cost_by_rank_ns=costs,
    )


def _cost_ns(plan: PipelinePlan, ranks: tuple[int, ...]) -> int:
    left = {rank: ns for rank, ns in plan.slow.items() if rank not in ranks}
    return step_ns(plan) - step_ns(replace(plan, slow=left))

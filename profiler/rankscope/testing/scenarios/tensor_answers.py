"""The answers of a tensor and data parallel run: groups that chain, so that one slow rank makes innocent ones late.

In a step that starts at T, with A = T + input + launch delay, tensor group g of rank r, and slow_g = the
largest extra time in g:

    tensor all-reduce of layer 1 ends at A + layer + slow_g + X_t, that of layer L at A + slow_g + L (layer + X_t)
    data all-reduce: rank r arrives at A + slow_g + L (layer + X_t) + tail. A data group holds one rank of every
        tensor group, so all of them end together, at A + max slow + L (layer + X_t) + tail + X_d
    communication_r = (slow_g - slow_r) + L X_t + (max slow - slow_g) + X_d; nothing overlaps
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rankscope.testing.expected import Expected, ExpectedCollective, ExpectedMeasures, ExpectedStraggler
from rankscope.testing.program import LAUNCH_DELAY_NS, Group
from rankscope.testing.scenario import RANKS_PER_HOST, host_name
from rankscope.testing.scenarios.parts import number_groups

TENSOR_ELEMENTS = 4_194_304
DATA_ELEMENTS = 16_777_216
_BF16_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPlan:
    """The parameters of a tensor and data parallel run; see `tensor_data_parallel`."""

    tp: int
    dp: int
    steps: int
    layers: int
    layer_ns: int
    tail_ns: int
    tensor_ns: int
    data_ns: int
    optimizer_ns: int
    input_ns: int
    slow: Mapping[int, int] = field(default_factory=dict)

    @property
    def ranks(self) -> range:
        """All ranks; those of a tensor group are neighbours."""
        return range(self.tp * self.dp)

    def tensor_group(self, rank: int) -> tuple[int, ...]:
        """Ranks of the tensor group of a rank."""
        first = rank // self.tp * self.tp
        return tuple(range(first, first + self.tp))

    def data_group(self, rank: int) -> tuple[int, ...]:
        """Ranks of the data group of a rank."""
        return tuple(range(rank % self.tp, self.tp * self.dp, self.tp))

    @property
    def groups(self) -> tuple[Group, ...]:
        """The default group, then data groups, then tensor groups."""
        return number_groups(
            (tuple(self.ranks), "default_pg"),
            *((self.data_group(rank), "DATA_PARALLEL_GROUP") for rank in range(self.tp)),
            *((self.tensor_group(rank), "TENSOR_MODEL_PARALLEL_GROUP") for rank in self.ranks[:: self.tp]),
        )

    def group_of(self, ranks: tuple[int, ...]) -> str:
        """Name of the group that holds exactly these ranks."""
        return next(group.name for group in self.groups if group.ranks == ranks)

    def slow_ns(self, *ranks: int) -> int:
        """The largest extra time of these ranks."""
        return max((self.slow.get(rank, 0) for rank in ranks), default=0)


def answer_tensor_run(plan: TensorPlan) -> Expected:
    """The answers of a plan."""
    measures = {rank: _measure(plan, rank) for rank in plan.ranks}
    duration_ns = plan.input_ns + LAUNCH_DELAY_NS + _busy_ns(plan)
    return Expected(
        name="tensor_data_parallel",
        reasoning="Blocking collectives: communication = waits for the slowest rank of the tensor group, then "
        "of all, + transfers; overlap 0. A rank alone costs what the step loses when its extra time goes.",
        world_size=len(plan.ranks),
        ranks={rank: _whole_run(plan, m) for rank, m in measures.items()},
        steps=dict.fromkeys(range(plan.steps), measures),
        step_duration_ns={n: dict.fromkeys(plan.ranks, duration_ns) for n in range(plan.steps)},
        collectives=tuple(c for n in range(plan.steps) for c in _collectives(plan, n, n * duration_ns)),
        operations={"all_reduce": plan.steps * (plan.layers + 1)},
        straggler=_straggler(plan),
        clock_offsets_ns=dict.fromkeys(plan.ranks, 0),
        hosts={rank: host_name(rank, RANKS_PER_HOST) for rank in plan.ranks},
    )


def _busy_ns(plan: TensorPlan) -> int:
    """From the first to the last device event of a step, the same on all ranks."""
    layers_ns = plan.layers * (plan.layer_ns + plan.tensor_ns)
    return layers_ns + plan.slow_ns(*plan.ranks) + plan.tail_ns + plan.data_ns + plan.optimizer_ns


def _measure(plan: TensorPlan, rank: int) -> ExpectedMeasures:
    compute_ns = plan.layers * plan.layer_ns + plan.slow_ns(rank) + plan.tail_ns + plan.optimizer_ns
    waits_ns = plan.slow_ns(*plan.ranks) - plan.slow_ns(rank)
    communication_ns = waits_ns + plan.layers * plan.tensor_ns + plan.data_ns
    return ExpectedMeasures(
        compute_ns=compute_ns,
        communication_ns=communication_ns,
        overlap_ns=0,
        exposed_communication_ns=communication_ns,
        communication_self_overlap_ns=0,
        memory_ns=0,
        exposed_memory_ns=0,
    )


def _whole_run(plan: TensorPlan, one: ExpectedMeasures) -> ExpectedMeasures:
    idle_ns = (plan.steps - 1) * (plan.input_ns + LAUNCH_DELAY_NS)
    return replace(one.times(plan.steps), window_ns=plan.steps * _busy_ns(plan) + idle_ns, idle_ns=idle_ns)


def _collectives(plan: TensorPlan, number: int, start_ns: int) -> list[ExpectedCollective]:
    begin_ns = start_ns + plan.input_ns + LAUNCH_DELAY_NS
    found = []
    for ranks in dict.fromkeys(plan.tensor_group(rank) for rank in plan.ranks):
        first = {rank: begin_ns + plan.layer_ns + plan.slow_ns(rank) for rank in ranks}
        for layer in range(plan.layers):
            later_ns = layer * (plan.layer_ns + plan.tensor_ns)
            together_ns = max(first.values()) + later_ns
            arrivals = first if layer == 0 else dict.fromkeys(ranks, together_ns)
            found.append(_collective(number, plan.group_of(ranks), TENSOR_ELEMENTS, plan.tensor_ns, arrivals))
    layers_ns = plan.layers * (plan.layer_ns + plan.tensor_ns)
    for ranks in dict.fromkeys(plan.data_group(rank) for rank in plan.ranks):
        arrivals = {
            rank: begin_ns + layers_ns + plan.slow_ns(*plan.tensor_group(rank)) + plan.tail_ns
            for rank in ranks
        }
        found.append(_collective(number, plan.group_of(ranks), DATA_ELEMENTS, plan.data_ns, arrivals))
    return found


def _collective(
    number: int, group: str, elements: int, transfer_ns: int, arrivals: dict[int, int]
) -> ExpectedCollective:
    return ExpectedCollective(
        step=number,
        group=group,
        op="all_reduce",
        size_bytes=elements * _BF16_BYTES,
        transfer_ns=transfer_ns,
        arrivals_ns=arrivals,
    )


def _straggler(plan: TensorPlan) -> ExpectedStraggler:
    worst_ns = plan.slow_ns(*plan.ranks)
    costs = {
        rank: worst_ns - plan.slow_ns(*(other for other in plan.ranks if other != rank))
        for rank in plan.ranks
    }
    slow = tuple(sorted(rank for rank, ns in plan.slow.items() if ns > 0))
    if not slow:
        return ExpectedStraggler(verdict="none", cost_by_rank_ns=costs)
    return ExpectedStraggler(
        verdict="found",
        scope="rank" if len(slow) == 1 else "tensor group" if slow == plan.tensor_group(slow[0]) else None,
        ranks=slow,
        cause="compute",
        cost_ns_per_step=worst_ns,
        cost_by_rank_ns=costs,
    )

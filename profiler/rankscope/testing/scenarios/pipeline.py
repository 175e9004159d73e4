"""Pipeline and data parallel ranks, with messages between stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rankscope.testing.program import (
    COLLECTIVE_HOST_NS,
    COMPUTE,
    HOST_OVERHEAD_NS,
    KERNEL_HOST_NS,
    Backend,
    Compute,
    DeviceSync,
    HostWork,
    Item,
    PointToPoint,
    StreamWait,
)
from rankscope.testing.scenario import Scenario
from rankscope.testing.scenarios.parts import (
    DATA_LOADER,
    DEFAULT_GROUP,
    blocking_all_reduce,
    refuse,
    repeat_steps,
)
from rankscope.testing.scenarios.pipeline_answers import (
    GRADIENT_ELEMENTS,
    MESSAGE_ELEMENTS,
    NORM_ELEMENTS,
    PipelinePlan,
    answer_pipeline_run,
)

_MICROBATCH_HOST_NS = KERNEL_HOST_NS + 2 * (COLLECTIVE_HOST_NS + HOST_OVERHEAD_NS)
"""What a microbatch costs the host thread: a kernel, a receive and a send."""


def pipeline_data_parallel(
    *,
    pp: int = 4,
    dp: int = 2,
    slow: Mapping[int, int] | None = None,
    steps: int = 3,
    microbatches: int = 4,
    forward_ns: int = 1_000_000,
    backward_ns: int = 2_000_000,
    message_ns: int = 100_000,
    gradient_ns: int = 2_000_000,
    norm_ns: int = 50_000,
    optimizer_ns: int = 500_000,
    input_ns: int = 100_000,
    backend: Backend = "nccl",
) -> Scenario:
    """A run of pp x dp ranks; the arithmetic stands in `pipeline_answers`.

    A slow stage costs its extra time x microbatches. So does one slow rank, which makes the four ranks of its
    pipeline late at their gradients: plain lateness ties all of them.

    Args:
        pp, dp: stages and replicas; rank = stage x dp + replica.
        slow: rank -> extra ns of each forward microbatch.
        steps, microbatches: how many.
        forward_ns, backward_ns: of one microbatch on one stage.
        message_ns: of an activation or gradient between neighbouring stages; at most forward_ns.
        gradient_ns: of a stage's gradient all-reduce over its replicas.
        norm_ns: of the all-reduce of the gradient norm over all ranks.
        optimizer_ns, input_ns: of the optimizer and of data loading.
        backend: "nccl" or "rccl".

    Returns:
        The scenario, with `expected`; it states compute, step times, collectives and the straggler.

    Raises:
        UsageError: parameters without meaning.
    """
    plan = PipelinePlan(
        pp=pp,
        dp=dp,
        steps=steps,
        microbatches=microbatches,
        forward_ns=forward_ns,
        backward_ns=backward_ns,
        message_ns=message_ns,
        gradient_ns=gradient_ns,
        norm_ns=norm_ns,
        optimizer_ns=optimizer_ns,
        input_ns=input_ns,
        slow=dict(slow or {}),
    )
    _check(plan, backend)
    return Scenario(
        name="pipeline_data_parallel",
        backend=backend,
        programs={rank: repeat_steps(steps, _step_items(plan, rank)) for rank in plan.ranks},
        groups=plan.groups,
        expected=answer_pipeline_run(plan),
    )


def _check(plan: PipelinePlan, backend: Backend) -> None:
    refuse(
        "pipeline_data_parallel",
        (backend == "gloo", "needs a device backend"),
        (
            plan.pp < 2 or plan.dp < 2 or plan.microbatches < 1,
            "needs pp and dp of at least 2, and a microbatch",
        ),
        (bool(set(plan.slow) - set(plan.ranks)), "has no such slow rank"),
        (plan.message_ns > min(plan.forward_ns, plan.backward_ns), "needs messages shorter than compute"),
        (
            min(plan.forward_ns, plan.backward_ns) < _MICROBATCH_HOST_NS,
            f"needs compute of at least {_MICROBATCH_HOST_NS} ns, which a microbatch costs the host",
        ),
        slow_ns=min(plan.slow.values(), default=0),
        message_ns=plan.message_ns,
        gradient_ns=plan.gradient_ns,
        norm_ns=plan.norm_ns,
    )


def _step_items(plan: PipelinePlan, rank: int) -> list[Item]:
    pipeline = plan.group_of(plan.pipeline_ranks(rank % plan.dp))
    before, after = rank - plan.dp, rank + plan.dp
    has_before, has_after = before in plan.ranks, after in plan.ranks
    forward = Compute(name="gemm_forward", operator="aten::linear", duration_ns=plan.forward_of(rank))
    backward = Compute(name="gemm_backward", duration_ns=plan.backward_ns)
    items: list[Item] = [HostWork(duration_ns=plan.input_ns, name=DATA_LOADER)]
    for _ in range(plan.microbatches):
        items += _receive(plan, pipeline, rank, before) if has_before else []
        items.append(forward)
        items += [_send(plan, pipeline, rank, after)] if has_after else []
    for _ in range(plan.microbatches):
        items += _receive(plan, pipeline, rank, after) if has_after else []
        items.append(backward)
        items += [_send(plan, pipeline, rank, before)] if has_before else []
    stage = plan.group_of(plan.stage_ranks(plan.stage(rank)))
    items += blocking_all_reduce(stage, "data", GRADIENT_ELEMENTS, plan.gradient_ns)
    items += blocking_all_reduce(DEFAULT_GROUP, "norm", NORM_ELEMENTS, plan.norm_ns, "float32")
    optimizer = "aten::_fused_adam_"
    items.append(Compute(name="multi_tensor_apply_kernel", operator=optimizer, duration_ns=plan.optimizer_ns))
    return [*items, DeviceSync()]


def _send(plan: PipelinePlan, group: str, rank: int, peer: int) -> PointToPoint:
    return PointToPoint(
        op="send",
        group=group,
        peer=peer,
        elements=MESSAGE_ELEMENTS,
        transfer_ns=plan.message_ns,
        dtype="bfloat16",
        # c10d gives every pair of ranks a communicator, and with it a stream, of its own.
        stream=f"pair {min(rank, peer)}:{max(rank, peer)}",
    )


def _receive(plan: PipelinePlan, group: str, rank: int, peer: int) -> list[Item]:
    receive = replace(_send(plan, group, rank, peer), op="recv", after=())
    return [receive, StreamWait(stream=COMPUTE, on=receive.stream)]

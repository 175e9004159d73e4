"""Tensor and data parallel ranks whose blocking collectives chain."""

from __future__ import annotations

from collections.abc import Mapping

from rankscope.errors import UsageError
from rankscope.testing.program import (
    COLLECTIVE_HOST_NS,
    COMPUTE,
    HOST_OVERHEAD_NS,
    LAUNCH_DELAY_NS,
    Backend,
    Collective,
    Compute,
    DeviceSync,
    Group,
    HostWork,
    Item,
    StreamWait,
    step,
)
from rankscope.testing.scenario import Scenario
from rankscope.testing.scenarios.cursor import Cursor, checked_positive
from rankscope.testing.scenarios.ddp_program import DATA_LOADER
from rankscope.testing.scenarios.tensor_answers import (
    DATA_ELEMENTS,
    TENSOR_ELEMENTS,
    TensorPlan,
    answer_tensor_run,
)


def tensor_data_parallel(
    *,
    tp: int = 2,
    dp: int = 2,
    slow: Mapping[int, int] | None = None,
    steps: int = 3,
    layers: int = 1,
    layer_ns: int = 4_000_000,
    tail_ns: int = 2_000_000,
    tensor_ns: int = 300_000,
    data_ns: int = 2_000_000,
    optimizer_ns: int = 500_000,
    input_ns: int = 100_000,
    backend: Backend = "nccl",
) -> Scenario:
    """A run of tp x dp ranks whose blocking collectives chain; the arithmetic stands in `tensor_answers`.

    With rank 0 slow by 10 ms in TP2 x DP2, lateness blames rank 0 with 20 ms and rank 1, which is innocent,
    with 10 ms: rank 1 waits for rank 0 in their tensor group and is then late in its data group.

    Args:
        tp, dp: sizes of the tensor and data groups; tensor groups hold neighbouring ranks.
        slow: rank -> extra ns of its first layer in every step.
        steps: number of steps.
        layers: layers per step, each a kernel of `layer_ns` and a tensor all-reduce of `tensor_ns`.
        layer_ns, tail_ns, tensor_ns, data_ns, optimizer_ns, input_ns: durations; the tail is compute before
            the data all-reduce.
        backend: "nccl" or "rccl".

    Returns:
        The scenario, with `expected`; cost_by_rank_ns says what each rank alone costs.

    Raises:
        UsageError: parameters without meaning.
    """
    plan = TensorPlan(
        tp=tp,
        dp=dp,
        steps=steps,
        layers=layers,
        layer_ns=layer_ns,
        tail_ns=tail_ns,
        tensor_ns=tensor_ns,
        data_ns=data_ns,
        optimizer_ns=optimizer_ns,
        input_ns=input_ns,
        slow=dict(slow or {}),
    )
    _check(plan, backend)
    groups = _groups(plan)
    names = {group.ranks: group.name for group in groups}
    return Scenario(
        name="tensor_data_parallel",
        backend=backend,
        programs={
            rank: tuple(step(n, *_step_items(plan, rank, names)) for n in range(steps)) for rank in plan.ranks
        },
        groups=groups,
        expected=answer_tensor_run(plan, names),
    )


def _check(plan: TensorPlan, backend: Backend) -> None:
    if backend == "gloo" or plan.tp < 2 or plan.dp < 2 or set(plan.slow) - set(plan.ranks):
        raise UsageError(
            "tensor_data_parallel needs a device backend, tp and dp of at least 2, and slow ranks below tp x dp"
        )
    checked_positive(
        "tensor_data_parallel",
        slow_ns=min(plan.slow.values(), default=0),
        tensor_ns=plan.tensor_ns,
        data_ns=plan.data_ns,
    )
    # Waits only help the host to stay ahead, so the check may leave them out.
    cursor = Cursor(name="tensor_data_parallel", host_ns=0, device_ns=LAUNCH_DELAY_NS)
    for duration_ns in (*[plan.layer_ns] * plan.layers, plan.tail_ns):
        cursor.run(duration_ns)
        cursor.call(HOST_OVERHEAD_NS, cursor.device_ns)
        cursor.host_ns += COLLECTIVE_HOST_NS + HOST_OVERHEAD_NS
    cursor.run(plan.optimizer_ns)


def _groups(plan: TensorPlan) -> tuple[Group, ...]:
    tensor = dict.fromkeys(plan.tensor_group(rank) for rank in plan.ranks)
    data = dict.fromkeys(plan.data_group(rank) for rank in plan.ranks)
    described = [
        (tuple(plan.ranks), "default_pg"),
        *((ranks, "DATA_PARALLEL_GROUP") for ranks in data),
        *((ranks, "TENSOR_MODEL_PARALLEL_GROUP") for ranks in tensor),
    ]
    return tuple(
        Group(name=str(number), ranks=ranks, description=text)
        for number, (ranks, text) in enumerate(described)
    )


def _step_items(plan: TensorPlan, rank: int, names: Mapping[tuple[int, ...], str]) -> list[Item]:
    items: list[Item] = [HostWork(duration_ns=plan.input_ns, name=DATA_LOADER)]
    for layer in range(plan.layers):
        extra_ns = plan.slow_ns(rank) if layer == 0 else 0
        items.append(
            Compute(name="gemm_forward", operator="aten::linear", duration_ns=plan.layer_ns + extra_ns)
        )
        tensor = names[plan.tensor_group(rank)]
        items += _blocking(tensor, "tensor", TENSOR_ELEMENTS, plan.tensor_ns)
    items.append(Compute(name="gemm_backward", duration_ns=plan.tail_ns))
    items += _blocking(names[plan.data_group(rank)], "data", DATA_ELEMENTS, plan.data_ns)
    items.append(
        Compute(
            name="multi_tensor_apply_kernel", operator="aten::_fused_adam_", duration_ns=plan.optimizer_ns
        )
    )
    items.append(DeviceSync())
    return items


def _blocking(group: str, stream: str, elements: int, transfer_ns: int) -> list[Item]:
    return [
        Collective(
            group=group,
            op="all_reduce",
            elements=elements,
            transfer_ns=transfer_ns,
            dtype="bfloat16",
            stream=stream,
        ),
        StreamWait(stream=COMPUTE, on=stream),
    ]

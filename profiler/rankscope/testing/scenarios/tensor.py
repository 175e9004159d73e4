"""Tensor and data parallel ranks whose blocking collectives chain."""

from __future__ import annotations

from collections.abc import Mapping

from rankscope.testing.program import (
    COLLECTIVE_HOST_NS,
    HOST_OVERHEAD_NS,
    LAUNCH_DELAY_NS,
    Backend,
    Compute,
    DeviceSync,
    HostWork,
    Item,
)
from rankscope.testing.scenario import Scenario
from rankscope.testing.scenarios.cursor import Cursor
from rankscope.testing.scenarios.parts import DATA_LOADER, blocking_all_reduce, refuse, repeat_steps
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
    return Scenario(
        name="tensor_data_parallel",
        backend=backend,
        programs={rank: repeat_steps(steps, _step_items(plan, rank)) for rank in plan.ranks},
        groups=plan.groups,
        expected=answer_tensor_run(plan),
    )


def _check(plan: TensorPlan, backend: Backend) -> None:
    refuse(
        "tensor_data_parallel",
        (backend == "gloo", "needs a device backend"),
        (plan.tp < 2 or plan.dp < 2, "needs tp and dp of at least 2"),
        (bool(set(plan.slow) - set(plan.ranks)), "has no such slow rank"),
        slow_ns=min(plan.slow.values(), default=0),
        tensor_ns=plan.tensor_ns,
        data_ns=plan.data_ns,
    )
    # Waits only help the host to stay ahead, so the check may leave them out.
    cursor = Cursor(name="tensor_data_parallel", host_ns=0, device_ns=LAUNCH_DELAY_NS)
    for duration_ns in (*[plan.layer_ns] * plan.layers, plan.tail_ns):
        cursor.run(duration_ns)
        cursor.call(cursor.device_ns)
        cursor.host_ns += COLLECTIVE_HOST_NS + HOST_OVERHEAD_NS
    cursor.run(plan.optimizer_ns)


def _step_items(plan: TensorPlan, rank: int) -> list[Item]:
    tensor, data = plan.group_of(plan.tensor_group(rank)), plan.group_of(plan.data_group(rank))
    items: list[Item] = [HostWork(duration_ns=plan.input_ns, name=DATA_LOADER)]
    for layer in range(plan.layers):
        extra_ns = plan.slow_ns(rank) if layer == 0 else 0
        items.append(
            Compute(name="gemm_forward", operator="aten::linear", duration_ns=plan.layer_ns + extra_ns)
        )
        items += blocking_all_reduce(tensor, "tensor", TENSOR_ELEMENTS, plan.tensor_ns)
    items.append(Compute(name="gemm_backward", duration_ns=plan.tail_ns))
    items += blocking_all_reduce(data, "data", DATA_ELEMENTS, plan.data_ns)
    items.append(
        Compute(
            name="multi_tensor_apply_kernel", operator="aten::_fused_adam_", duration_ns=plan.optimizer_ns
        )
    )
    items.append(DeviceSync())
    return items

"""What the ranks of a synthetic DDP run do."""

from __future__ import annotations

from rankscope.model.manifest import BucketLayout, DdpFacts, Parameter
from rankscope.testing.program import (
    COMPUTE,
    Collective,
    Compute,
    Copy,
    DeviceSync,
    HostWork,
    Item,
    Program,
    Region,
    StreamWait,
    step,
)
from rankscope.testing.scenarios.ddp_plan import ELEMENT_BYTES, DdpPlan
from rankscope.testing.scenarios.parts import DATA_LOADER, DEFAULT_GROUP


def program_of(plan: DdpPlan, rank: int) -> Program:
    """What `rank` does in the run of a plan."""
    return tuple(step(number, *_step_items(plan, rank, number)) for number in plan.step_numbers)


def _step_items(plan: DdpPlan, rank: int, number: int) -> list[Item]:
    items: list[Item] = []
    input_ns = plan.input_ns + plan.slower_by_ns(rank, "input")
    if input_ns:
        items.append(HostWork(duration_ns=input_ns, name=DATA_LOADER))
    if hidden_ns := plan.slower_by_ns(rank, "host"):
        items.append(HostWork(duration_ns=hidden_ns))
    if copy_ns := plan.copy_ns + plan.slower_by_ns(rank, "memory"):
        items.append(Copy(kind="HtoD", duration_ns=copy_ns, size_bytes=plan.copy_ns))
    items.append(Region(name="DistributedDataParallel.forward", items=tuple(_forward(plan, rank))))
    items += _backward(plan, rank, number)
    wait = tuple(StreamWait(stream=COMPUTE, on=lane) for lane in _lanes(plan))
    optimizer = _kernel("multi_tensor_apply_kernel", "aten::_fused_sgd_", plan.optimizer_ns)
    items.append(Region(name="Optimizer.step#SGD.step", items=(*wait, *optimizer)))
    items.append(DeviceSync())
    return items


def _lanes(plan: DdpPlan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(plan.lane(index) for index in range(len(plan.buckets))))


def _forward(plan: DdpPlan, rank: int) -> list[Compute]:
    work = _kernel("extra_layer_kernel", "aten::mm", plan.slower_by_ns(rank, "work"))
    return work + _kernel("gemm_forward", "aten::addmm", plan.forward_ns + plan.slower_by_ns(rank, "compute"))


def _backward(plan: DdpPlan, rank: int, number: int) -> list[Item]:
    items: list[Item] = []
    pieces = iter(plan.backward_ns)
    for index, bucket in enumerate(plan.buckets_of(number)):
        for _ in bucket:
            items += _kernel("gemm_backward", "aten::mm", next(pieces))
        items.append(_bucket(plan, rank, number, index))
    items += _kernel("gemm_backward", "aten::mm", next(pieces, 0))
    # On gloo autograd runs backward on the calling thread.
    return items if plan.on_cpu else [Region(name=None, items=tuple(items), thread="backward")]


def _bucket(plan: DdpPlan, rank: int, number: int, index: int) -> Collective:
    parameters = plan.buckets_of(number)[index]
    return Collective(
        group=DEFAULT_GROUP,
        op="all_reduce",
        elements=sum(parameters),
        transfer_ns=plan.transfers_of(number)[index],
        stream=plan.lane(index),
        parameters=parameters,
        end_jitter_ns=plan.end_jitter_ns.get(rank, 0),
    )


def _kernel(name: str, operator: str, duration_ns: int) -> list[Compute]:
    return [Compute(name=name, operator=operator, duration_ns=duration_ns)] if duration_ns else []


def ddp_facts_of(plan: DdpPlan) -> DdpFacts:
    """What the collector would know of the wrapped module."""
    ready = [elements for bucket in plan.buckets for elements in bucket]
    # DDP meets parameters in the reverse of `parameters()` order.
    order = list(reversed(range(len(ready))))
    sizes = [(elements, elements * ELEMENT_BYTES) for elements in reversed(ready)]
    layouts, first = [], 0
    for index, bucket in enumerate(plan.buckets):
        members = order[first : first + len(bucket)]
        first += len(bucket)
        layouts.append(
            BucketLayout(
                index=index,
                size_bytes=sum(bucket) * ELEMENT_BYTES,
                dtype="float32",
                parameters=members,
            )
        )
    return DdpFacts(
        module="Sequential",
        has_rebuilt_buckets=True,
        buckets=layouts,
        parameters=[
            Parameter(name=f"layers.{i}.weight", elements=n, dtype="float32", size_bytes=size)
            for i, (n, size) in enumerate(sizes)
        ],
        ready_order=order,
    )

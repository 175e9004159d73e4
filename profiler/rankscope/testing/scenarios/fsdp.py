"""A fully sharded run: all-gathers prefetched beside compute, reduce-scatters beside the rest of backward.

With L equal layers, all-gather a, forward f, backward b, reduce-scatter r (a <= b, r <= b), and every
all-gather but the first started together with the compute of the layer before it:

    forward:  a, then L layers of f that are max(f, a) apart      exposed a + (L-1) max(0, a - f)
    backward: L layers of b without a gap. Beside the last layer runs one all-gather, beside the layers between
              an all-gather and a reduce-scatter, beside the first one reduce-scatter: a + (L-2) max(a, r) + r
    the first layer's reduce-scatter has nothing left to hide behind: exposed r, and then the optimizer

The last layer stays gathered between forward and backward.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rankscope.testing.expected import Expected, ExpectedMeasures, ExpectedStraggler
from rankscope.testing.program import (
    COLLECTIVE_HOST_NS,
    COMPUTE,
    HOST_OVERHEAD_NS,
    KERNEL_HOST_NS,
    LAUNCH_NS,
    NESTING_NS,
    Backend,
    Collective,
    Compute,
    DeviceSync,
    HostWork,
    Item,
    Region,
    StreamWait,
)
from rankscope.testing.scenario import RANKS_PER_HOST, Scenario, host_name
from rankscope.testing.scenarios.parts import DATA_LOADER, DEFAULT_GROUP, everyone, refuse, repeat_steps

_GATHER = "all_gather"
_SCATTER = "reduce_scatter"
_FIRST_DELAY_NS = NESTING_NS + HOST_OVERHEAD_NS + LAUNCH_NS
"""From the call of the first all-gather to its kernel."""

_LAYER_HOST_NS = KERNEL_HOST_NS + 2 * (COLLECTIVE_HOST_NS + HOST_OVERHEAD_NS)
"""What a layer costs the host thread at most: a kernel, an all-gather and a reduce-scatter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The parameters of a fully sharded run; see `fsdp_run`."""

    ranks: int
    steps: int
    layers: int
    forward_ns: int
    backward_ns: int
    gather_ns: int
    scatter_ns: int
    optimizer_ns: int
    input_ns: int
    elements: int


def fsdp_run(
    *,
    ranks: int = 4,
    steps: int = 3,
    layers: int = 4,
    forward_ns: int = 1_000_000,
    backward_ns: int = 2_000_000,
    gather_ns: int = 600_000,
    scatter_ns: int = 800_000,
    optimizer_ns: int = 500_000,
    input_ns: int = 100_000,
    elements: int = 12_582_912,
    backend: Backend = "nccl",
) -> Scenario:
    """A fully sharded run with FSDP2's annotations; the arithmetic stands in the module's docstring.

    Args:
        ranks, steps, layers: how many.
        forward_ns, backward_ns: compute of one layer.
        gather_ns, scatter_ns: all-gather and reduce-scatter of one layer; at most backward_ns.
        optimizer_ns, input_ns: of the optimizer and of data loading.
        elements: bfloat16 elements of a whole layer, a multiple of `ranks`.
        backend: "nccl" or "rccl".

    Returns:
        The scenario, with `expected`.

    Raises:
        UsageError: parameters without meaning.
    """
    plan = _Plan(
        ranks=ranks,
        steps=steps,
        layers=layers,
        forward_ns=forward_ns,
        backward_ns=backward_ns,
        gather_ns=gather_ns,
        scatter_ns=scatter_ns,
        optimizer_ns=optimizer_ns,
        input_ns=input_ns,
        elements=elements,
    )
    _check(plan, backend)
    return Scenario(
        name="fsdp",
        backend=backend,
        programs=dict.fromkeys(range(ranks), repeat_steps(steps, _step_items(plan))),
        groups=everyone(ranks),
        expected=_expected(plan),
    )


def _check(plan: _Plan, backend: Backend) -> None:
    refuse(
        "fsdp_run",
        (backend == "gloo", "needs a device backend"),
        (plan.layers < 2 or plan.ranks < 2, "needs at least two layers and two ranks"),
        (max(plan.gather_ns, plan.scatter_ns) > plan.backward_ns, "needs transfers up to backward_ns"),
        (plan.elements % plan.ranks > 0, "needs elements that the ranks can share"),
        (
            min(plan.forward_ns, plan.backward_ns) < _LAYER_HOST_NS,
            f"needs compute of at least {_LAYER_HOST_NS} ns, which a layer costs the host",
        ),
        gather_ns=plan.gather_ns,
        scatter_ns=plan.scatter_ns,
    )


def _step_items(plan: _Plan) -> list[Item]:
    layers = range(plan.layers)
    items: list[Item] = [HostWork(duration_ns=plan.input_ns, name=DATA_LOADER), _gather(plan, 0)]
    for layer in layers:
        wait = StreamWait(stream=COMPUTE, on=_GATHER)
        forward = Compute(name="gemm_forward", operator="aten::linear", duration_ns=plan.forward_ns)
        items.append(Region(name=f"FSDP::pre_forward (layers.{layer})", items=(wait,)))
        items += [_gather(plan, layer + 1)] if layer + 1 in layers else []
        items.append(forward)
    backward: list[Item] = []
    for layer in reversed(layers):
        wait = StreamWait(stream=COMPUTE, on=_GATHER)
        backward.append(Region(name=f"FSDP::pre_backward (layers.{layer})", items=(wait,)))
        backward += [_gather(plan, layer - 1)] if layer > 0 else []
        backward += [Compute(name="gemm_backward", duration_ns=plan.backward_ns), _scatter(plan, layer)]
    items.append(Region(name=None, items=tuple(backward), thread="backward"))
    optimizer = Compute(
        name="multi_tensor_apply_kernel", operator="aten::_fused_adamw_", duration_ns=plan.optimizer_ns
    )
    wait = StreamWait(stream=COMPUTE, on=_SCATTER)
    items.append(Region(name="Optimizer.step#AdamW.step", items=(wait, optimizer)))
    return [*items, DeviceSync()]


def _gather(plan: _Plan, layer: int) -> Region:
    return _communicate(plan, _GATHER, plan.gather_ns, f"FSDP::all_gather (layers.{layer})")


def _scatter(plan: _Plan, layer: int) -> Region:
    return _communicate(plan, _SCATTER, plan.scatter_ns, f"FSDP::post_backward_reduce (layers.{layer})")


def _communicate(plan: _Plan, op: str, transfer_ns: int, annotation: str) -> Region:
    """A collective of a whole layer, on the stream of its operation."""
    collective = Collective(
        group=DEFAULT_GROUP,
        op=op,
        elements=plan.elements,
        transfer_ns=transfer_ns,
        dtype="bfloat16",
        stream=op,
    )
    return Region(name=annotation, items=(collective,))


def _expected(plan: _Plan) -> Expected:
    one = _measure(plan)
    before_ns = plan.input_ns + _FIRST_DELAY_NS
    duration_ns = before_ns + _busy_ns(plan)
    ranks = range(plan.ranks)
    return Expected(
        name="fsdp",
        reasoning="Exposed: the first all-gather, what forward cannot hide of the others, and the last "
        "reduce-scatter; backward hides the rest. All ranks do the same.",
        world_size=plan.ranks,
        ranks=dict.fromkeys(ranks, _whole_run(plan, one, before_ns)),
        steps={n: dict.fromkeys(ranks, one) for n in range(plan.steps)},
        step_duration_ns={n: dict.fromkeys(ranks, duration_ns) for n in range(plan.steps)},
        operations={
            "all_gather": plan.steps * (2 * plan.layers - 1),
            "reduce_scatter": plan.steps * plan.layers,
        },
        straggler=ExpectedStraggler(verdict="none"),
        clock_offsets_ns=dict.fromkeys(ranks, 0),
        hosts={rank: host_name(rank, RANKS_PER_HOST) for rank in ranks},
    )


def _busy_ns(plan: _Plan) -> int:
    """From the first to the last device event of a step."""
    forward_ns = plan.gather_ns + (plan.layers - 1) * max(plan.forward_ns, plan.gather_ns) + plan.forward_ns
    return forward_ns + plan.layers * plan.backward_ns + plan.scatter_ns + plan.optimizer_ns


def _measure(plan: _Plan) -> ExpectedMeasures:
    between = plan.layers - 2
    hidden_ns = (
        (plan.layers - 1) * min(plan.gather_ns, plan.forward_ns)
        + plan.gather_ns
        + between * max(plan.gather_ns, plan.scatter_ns)
        + plan.scatter_ns
    )
    exposed_ns = (
        plan.gather_ns + (plan.layers - 1) * max(0, plan.gather_ns - plan.forward_ns) + plan.scatter_ns
    )
    return ExpectedMeasures(
        compute_ns=plan.layers * (plan.forward_ns + plan.backward_ns) + plan.optimizer_ns,
        communication_ns=hidden_ns + exposed_ns,
        overlap_ns=hidden_ns,
        exposed_communication_ns=exposed_ns,
        communication_self_overlap_ns=between * min(plan.gather_ns, plan.scatter_ns),
        memory_ns=0,
        exposed_memory_ns=0,
    )


def _whole_run(plan: _Plan, one: ExpectedMeasures, before_ns: int) -> ExpectedMeasures:
    idle_ns = (plan.steps - 1) * before_ns
    return replace(one.times(plan.steps), window_ns=plan.steps * _busy_ns(plan) + idle_ns, idle_ns=idle_ns)

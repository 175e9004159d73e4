"""What DDP knows of itself: bucket layout, parameters in gradient-ready order, averages.

All of it comes from `_get_ddp_logging_data()`, a prototype interface: texts such as "11 10 9 8, 7 6 5 4" and
numbers, whose keys come and go with torch's version. A key that is missing leaves its fact unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rankscope.model.manifest import BucketLayout, DdpFacts, Parameter

if TYPE_CHECKING:
    import torch
    from torch.nn.parallel import DistributedDataParallel

# What reading torch's internals raises when another version has moved them.
INTERNALS_MOVED = (AttributeError, KeyError, IndexError, TypeError, ValueError, RuntimeError, AssertionError)


def read_ddp_facts(model: DistributedDataParallel, notes: list[str]) -> DdpFacts:
    """The facts of one DDP module; what cannot be read is left out and said in `notes`."""
    name = type(model.module).__name__
    try:
        logged: Mapping[str, object] = model._get_ddp_logging_data()  # type: ignore[no-untyped-call]
    except INTERNALS_MOVED as fault:
        notes.append(f"DDP's logging data of {name} could not be read: {type(fault).__name__}: {fault}")
        return DdpFacts(module=name)
    parameters = _list_parameters(model)
    expected = _int(logged, "num_parameter_tensors")
    if expected is not None and expected != len(parameters):
        notes.append(
            f"{name} has {len(parameters)} parameters that require a gradient, DDP was built with {expected}: "
            "the names of bucket parameters are unknown"
        )
        parameters = []
    cap = _int(logged, "bucket_cap_bytes")
    rebuilt, initial = _list_rebuilt_buckets(logged, parameters), _list_initial_buckets(logged, parameters)
    return DdpFacts(
        module=name,
        bucket_cap_bytes=cap,
        first_bucket_bytes=_first_bucket_bytes(model, cap),
        has_rebuilt_buckets=_flag(logged, "has_rebuilt_buckets"),
        find_unused_parameters=_flag(logged, "find_unused_parameters"),
        static_graph=_flag(logged, "static_graph", default=False),
        gradient_as_bucket_view=_flag(logged, "gradient_as_bucket_view"),
        buckets=rebuilt or initial,
        initial_buckets=initial if rebuilt else [],
        parameters=parameters,
        ready_order=parse_numbers(logged.get("prev_iteration_grad_ready_order_indices")),
        communication_hook=str(logged.get("comm_hook", "")),
        group=str(getattr(getattr(model, "process_group", None), "group_name", "")),
        bucket_caps_bytes=[int(size) for size in getattr(model, "bucket_bytes_cap_list", ())],
        averages={k: v for k, v in logged.items() if k.startswith("avg_") and isinstance(v, int)},
    )


def parse_numbers(text: object) -> list[int]:
    """The whole numbers in one of DDP's texts, whatever separates them; [] for anything else.

    >>> parse_numbers("11, 10, 9"), parse_numbers("3 2 1 0"), parse_numbers(None), parse_numbers("N/A")
    ([11, 10, 9], [3, 2, 1, 0], [], [])
    """
    if not isinstance(text, str):
        return []
    words = text.replace(",", " ").split()
    return [int(word) for word in words] if all(word.isdigit() for word in words) else []


def parse_number_lists(text: object) -> list[list[int]]:
    """The lists in a text whose commas part lists and whose blanks part numbers.

    >>> parse_number_lists("11 10 9 8, 7 6 5 4")
    [[11, 10, 9, 8], [7, 6, 5, 4]]
    """
    return [parse_numbers(part) for part in text.split(",")] if isinstance(text, str) and text else []


def split_in_reverse(sizes: Sequence[int], parameter_sizes: Sequence[int]) -> list[list[int]]:
    """Indices of the parameters in each bucket of a layout that DDP has not rebuilt.

    Such a layout cuts `parameters()` into runs and launches the last run first, so walking from the end must
    meet every size exactly. Mixed dtypes can interleave the runs: then nothing is known.

    Args:
        sizes: bytes of the buckets, in launch order.
        parameter_sizes: bytes of the parameters, in `parameters()` order.

    Returns:
        Parameter indices per bucket, or an empty list per bucket if the sizes do not fit.

    >>> split_in_reverse([3, 7], [5, 2, 3])
    [[2], [0, 1]]
    >>> split_in_reverse([4, 6], [5, 2, 3])
    [[], []]
    """
    unknown: list[list[int]] = [[] for _ in sizes]
    buckets: list[list[int]] = []
    end = len(parameter_sizes)
    for size in sizes:
        start, total = end, 0
        while start > 0 and total < size:
            start -= 1
            total += parameter_sizes[start]
        if total != size:
            return unknown
        buckets.append(list(range(start, end)))
        end = start
    return buckets if end == 0 else unknown


def _list_rebuilt_buckets(
    logged: Mapping[str, object], parameters: Sequence[Parameter]
) -> list[BucketLayout]:
    sizes = parse_numbers(logged.get("rebuilt_bucket_sizes"))
    return _describe_buckets(
        sizes, parse_number_lists(logged.get("rebuilt_per_bucket_param_indices")), parameters
    )


def _list_initial_buckets(
    logged: Mapping[str, object], parameters: Sequence[Parameter]
) -> list[BucketLayout]:
    sizes = parse_numbers(logged.get("bucket_sizes"))
    members = split_in_reverse(sizes, [parameter.size_bytes for parameter in parameters])
    return _describe_buckets(sizes, members, parameters)


def _describe_buckets(
    sizes: Sequence[int], members: Sequence[list[int]], parameters: Sequence[Parameter]
) -> list[BucketLayout]:
    if len(members) != len(sizes):
        members = [[] for _ in sizes]
    buckets = []
    for index, (size, indices) in enumerate(zip(sizes, members, strict=True)):
        dtypes = {parameters[i].dtype for i in indices if i < len(parameters)}
        dtype = dtypes.pop() if len(dtypes) == 1 else ""
        buckets.append(BucketLayout(index=index, size_bytes=size, dtype=dtype, parameters=indices))
    return buckets


def _list_parameters(model: DistributedDataParallel) -> list[Parameter]:
    """DDP's parameters in the order of its indices: the walk of `_build_params_for_reducer`."""
    ignored = getattr(model, "parameters_to_ignore", ())
    seen: set[int] = set()
    parameters = []
    for module_name, module in model.module.named_modules():
        for name, value in module.named_parameters(recurse=False):
            full_name = f"{module_name}.{name}"
            if not value.requires_grad or full_name in ignored or id(value) in seen:
                continue
            seen.add(id(value))
            parameters.append(_describe(full_name.lstrip("."), value))
    return parameters


def _describe(name: str, value: torch.nn.Parameter) -> Parameter:
    elements = value.numel()
    return Parameter(
        name=name,
        elements=elements,
        dtype=str(value.dtype).removeprefix("torch."),
        size_bytes=elements * value.element_size(),
    )


def _first_bucket_bytes(model: DistributedDataParallel, cap: int | None) -> int | None:
    """Cap of the first bucket, where it differs: 1 MiB while `bucket_cap_mb` was left alone."""
    config = getattr(model, "_bucket_config", None)  # torch >= 2.13
    first = getattr(config, "first_bucket_bytes_cap", None)
    if first is None and getattr(model, "bucket_bytes_cap_default", False):
        import torch.distributed as dist

        first = getattr(dist, "_DEFAULT_FIRST_BUCKET_BYTES", None)
    return None if first is None or first == cap else int(first)


def _int(logged: Mapping[str, object], key: str) -> int | None:
    value = logged.get(key)
    return value if isinstance(value, int) else None


def _flag(logged: Mapping[str, object], key: str, *, default: bool | None = None) -> bool | None:
    value = _int(logged, key)
    return default if value is None else bool(value)

"""Sizes and bandwidth factors of collectives: what counts as the size, and what the ring moves.

The factors are those of nccl-tests (doc/PERFORMANCE.md): a ring all-reduce moves 2(n-1)/n of the size over
each link, all-gather, reduce-scatter and all-to-all (n-1)/n, broadcast and reduce all of it.
"""

from __future__ import annotations

_ELEMENT_SIZES = {
    "float": 4, "float32": 4, "half": 2, "float16": 2, "c10::half": 2, "bfloat16": 2, "c10::bfloat16": 2,
    "double": 8, "float64": 8, "byte": 1, "unsigned char": 1, "uint8": 1, "char": 1, "signed char": 1,
    "int8": 1, "short": 2, "short int": 2, "int16": 2, "int": 4, "int32": 4, "long": 8, "long int": 8,
    "int64": 8, "bool": 1, "complexfloat": 8, "c10::complex<float>": 8, "complexdouble": 16,
    "c10::complex<double>": 16, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1, "uint16": 2, "uint32": 4, "uint64": 8,
}  # fmt: skip

_NAMES = {
    "float": "float32", "half": "float16", "c10::half": "float16", "c10::bfloat16": "bfloat16",
    "double": "float64", "byte": "uint8", "unsigned char": "uint8", "char": "int8", "signed char": "int8",
    "short": "int16", "short int": "int16", "int": "int32", "long": "int64", "long int": "int64",
}  # fmt: skip

_ALL_TO_ALL_LIKE = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")


def element_size_bytes(dtype: str | None) -> int | None:
    """Bytes of one element, by any of the names that traces use for a dtype; None if unknown.

    >>> element_size_bytes("BFloat16"), element_size_bytes("c10::BFloat16"), element_size_bytes("long int")
    (2, 2, 8)
    """
    if dtype is None:
        return None
    text = dtype.removeprefix("c10::").lower() if dtype.lower() not in _ELEMENT_SIZES else dtype.lower()
    return _ELEMENT_SIZES.get(text)


def dtype_name(dtype: str | None) -> str | None:
    """PyTorch's name of a dtype that a trace spells in its own way; unknown spellings stay as they are.

    >>> dtype_name("Float"), dtype_name("c10::BFloat16"), dtype_name("long int")
    ('float32', 'bfloat16', 'int64')
    """
    if dtype is None:
        return None
    lower = dtype.lower()
    if lower in _NAMES:
        return _NAMES[lower]
    bare = lower.removeprefix("c10::")
    return bare if bare in _ELEMENT_SIZES else dtype


def sized_elements(op: str, in_elements: int | None, out_elements: int | None) -> int | None:
    """Elements that count as a collective's size: what it puts out for all-gather, else what goes in.

    In Kineto traces `In msg nelems` is per rank for all-gather and the total for reduce-scatter.

    >>> sized_elements("all_gather", 8, 64), sized_elements("reduce_scatter", 64, 8)
    (64, 64)
    """
    wanted = out_elements if op == "all_gather" else in_elements
    return wanted if wanted is not None and wanted >= 0 else None


def bus_factor(op: str, group_size: int) -> float | None:
    """Bus bandwidth over algorithm bandwidth for `group_size` ranks; None for operations without one.

    >>> bus_factor("all_reduce", 4), bus_factor("all_gather", 4), bus_factor("broadcast", 4)
    (1.5, 0.75, 1.0)
    """
    if group_size < 1:
        return None
    if op == "all_reduce":
        return 2 * (group_size - 1) / group_size
    if op in _ALL_TO_ALL_LIKE:
        return (group_size - 1) / group_size
    if op in ("broadcast", "reduce", "send", "recv", "send_recv"):
        return 1.0
    return None


def algorithm_bandwidth_gbps(size_bytes: int, transfer_ns: int) -> float | None:
    """Size over transfer time, in 1e9 bytes per second; None if the transfer took no time.

    >>> algorithm_bandwidth_gbps(1_000_000, 100_000)
    10.0
    """
    return size_bytes / transfer_ns if transfer_ns > 0 else None

"""What PyTorch, NCCL, RCCL and gloo call a communication: operator, annotation, argument and kernel names."""

from __future__ import annotations

from dataclasses import dataclass

from rankscope.testing.program import Collective, Communication


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Names of one operation.

    Attributes:
        collective: the `Collective name` argument.
        annotation: the annotation without its backend ("nccl:<this>").
        gloo: the gloo annotation without its backend.
        operator: the c10d operator.
        kernel: the middle of the kernel's name.
        reduces: whether the kernel's name says "Sum" and the dtype.
    """

    collective: str
    annotation: str
    gloo: str
    operator: str
    kernel: str
    reduces: bool = False


_NAMES = {
    "all_reduce": _Names(
        collective="allreduce", annotation="all_reduce", gloo="all_reduce",
        operator="c10d::allreduce_", kernel="AllReduce", reduces=True,
    ),
    "all_gather": _Names(
        collective="_allgather_base", annotation="_all_gather_base", gloo="all_gather",
        operator="c10d::_allgather_base_", kernel="AllGather",
    ),
    "reduce_scatter": _Names(
        collective="_reduce_scatter_base", annotation="_reduce_scatter_base", gloo="reduce_scatter",
        operator="c10d::_reduce_scatter_base_", kernel="ReduceScatter", reduces=True,
    ),
    "broadcast": _Names(
        collective="broadcast", annotation="broadcast", gloo="broadcast",
        operator="c10d::broadcast_", kernel="Broadcast",
    ),
    "all_to_all": _Names(
        collective="all_to_all", annotation="all_to_all", gloo="all_to_all",
        operator="c10d::alltoall_base_", kernel="SendRecv",
    ),
    "send": _Names(
        collective="send", annotation="send", gloo="send", operator="c10d::send", kernel="SendRecv"
    ),
    "recv": _Names(
        collective="recv", annotation="recv", gloo="recv", operator="c10d::recv_", kernel="SendRecv"
    ),
}  # fmt: skip

_KERNEL_DTYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "int32": "i32", "int64": "i64"}
_ARGUMENT_DTYPES = {
    "float32": "Float", "bfloat16": "BFloat16", "float16": "Half", "int32": "Int", "int64": "Long"
}  # fmt: skip
_INPUT_TYPES = {
    "float32": "float", "bfloat16": "c10::BFloat16", "float16": "c10::Half",
    "int32": "int", "int64": "long int",
}  # fmt: skip

RCCL_KERNEL = "ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)"


def collective_name_of(item: Communication) -> str:
    """The `Collective name` argument of a communication."""
    return _NAMES[item.op].collective


def operator_of(item: Communication) -> str:
    """The c10d operator that calls a communication."""
    return _NAMES[item.op].operator


def annotation_of(backend: str, item: Communication, rank: int, group_ranks: tuple[int, ...]) -> str:
    """The annotation that c10d puts round a communication of `rank`: "nccl:all_reduce", "nccl:send 0->1".

    Ends of a message are numbered within their group, whose global ranks are `group_ranks`.
    """
    names = _NAMES[item.op]
    if backend == "gloo":
        return f"gloo:{names.gloo}"
    if isinstance(item, Collective):
        return f"{backend}:{names.annotation}"
    arrow = "->" if item.op == "send" else "<-"
    return f"{backend}:{names.annotation} {group_ranks.index(rank)}{arrow}{group_ranks.index(item.peer)}"


def kernel_of(item: Communication, *, before_nccl_2_19: bool) -> str:
    """NCCL's name of the kernel; with the older spelling of NCCL below 2.19."""
    names = _NAMES[item.op]
    dtype = _KERNEL_DTYPES[item.dtype]
    if before_nccl_2_19:
        if names.kernel == "SendRecv":
            return "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)"
        old_dtype = {"f32": "float", "bf16": "__nv_bfloat16", "f16": "half"}.get(dtype, "int8_t")
        return f"ncclKernel_{names.kernel}_RING_LL_Sum_{old_dtype}(ncclWorkElem)"
    if names.kernel == "SendRecv":
        return "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
    middle = f"{names.kernel}_Sum_{dtype}" if names.reduces else names.kernel
    return f"ncclDevKernel_{middle}_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def argument_dtype(dtype: str) -> str:
    """The spelling of a dtype in communication arguments ("Float")."""
    return _ARGUMENT_DTYPES[dtype]


def input_type(dtype: str) -> str:
    """The spelling of a dtype in `Input type` ("float", "c10::BFloat16")."""
    return _INPUT_TYPES[dtype]

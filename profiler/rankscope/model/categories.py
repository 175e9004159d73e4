"""What kind of row an event is, which class of GPU time it counts as, and which operation a name says.

Classes are decided per event and never per stream: since 2025 a synchronous collective runs on the
compute stream, and ROCm computes on stream 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum

from rankscope.errors import UsageError


class Category(IntEnum):
    """The kind of row, from the `cat` of the trace (case-blind, old spellings included)."""

    OTHER = 0
    KERNEL = 1
    MEMCPY = 2
    MEMSET = 3
    CPU_OP = 4
    RUNTIME = 5
    USER_ANNOTATION = 6
    GPU_ANNOTATION = 7
    SYNC = 8


class EventClass(IntEnum):
    """What an event counts as. Only the first three are ever time on a device."""

    COMPUTE = 0
    COMMUNICATION = 1
    MEMORY = 2
    SYNC = 3
    ANNOTATION = 4
    HOST = 5


CATEGORY_OF_TEXT = {
    "kernel": Category.KERNEL,
    "gpu_memcpy": Category.MEMCPY,
    "memcpy": Category.MEMCPY,
    "gpu_memset": Category.MEMSET,
    "memset": Category.MEMSET,
    "cpu_op": Category.CPU_OP,
    "operator": Category.CPU_OP,
    "cuda_runtime": Category.RUNTIME,
    "cuda_driver": Category.RUNTIME,
    "hip_runtime": Category.RUNTIME,
    "xpu_runtime": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,
    "runtime": Category.RUNTIME,
    "user_annotation": Category.USER_ANNOTATION,
    "gpu_user_annotation": Category.GPU_ANNOTATION,
    "cuda_sync": Category.SYNC,
}

GPU_CATEGORIES = (Category.KERNEL, Category.MEMCPY, Category.MEMSET)

DEFAULT_COMMUNICATION_PATTERNS = (
    r"^(?:void )?[nr]ccl",  # NCCL and RCCL, every spelling: ncclKernel_, ncclDevKernel_, ncclSymDevKernel_
    r"deep_ep::",  # DeepEP dispatch and combine
    r"nvshmem",  # NVSHMEM device kernels
    r"cross_device_reduce",  # vLLM custom all-reduce
    r"(?:one|two|multimem_one)_shot_all_?reduce|multimem_all_(?:reduce|gather)",  # torch symmetric memory
    r"\bmscclpp?\b|mscclpp::|mscclKernel",  # MSCCL, MSCCL++
    r"oneapi::ccl|ccl_(?:allreduce|allgather|reduce_scatter|alltoall)",  # oneCCL
    r"^hccl|hcom_",  # HCCL
    r"trtllm::.*all_?reduce|flashinfer.*all_?reduce|quick_?reduce::",  # TensorRT-LLM, FlashInfer, QuickReduce
)
"""Kernel names that communicate, case-blind. Users add their own with `--comm-pattern`."""

_DEFAULT_COMMUNICATION = re.compile(
    "|".join(f"(?:{p})" for p in DEFAULT_COMMUNICATION_PATTERNS), re.IGNORECASE
)
_LONGEST_NAME = 1 << 14
"""Characters of a kernel's name that patterns see: a name of megabytes is damage, and must not cost seconds."""

_MEMORY_KERNEL = re.compile(r"^__amd_rocclr_(?:copy|fill)", re.IGNORECASE)
_HOST_COMMUNICATION = re.compile(r"^(?:gloo|mpi|ucc):")

_OPS_BY_NAME = (
    ("all_reduce", re.compile(r"all_?reduce|cross_device_reduce", re.IGNORECASE)),
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.IGNORECASE)),
    ("all_gather", re.compile(r"all_?gather", re.IGNORECASE)),
    ("all_to_all", re.compile(r"all_?to_?all|deep_ep::|alltoall", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast", re.IGNORECASE)),
    ("send_recv", re.compile(r"send_?recv", re.IGNORECASE)),
    ("gather", re.compile(r"(?:^|[_:])gather", re.IGNORECASE)),
    ("scatter", re.compile(r"(?:^|[_:])scatter", re.IGNORECASE)),
    ("reduce", re.compile(r"(?:^|[_:])reduce(?![a-z])|nccl(?:Dev)?(?:Kernel)?_?reduce", re.IGNORECASE)),
    ("send", re.compile(r"(?:^|[_:])i?send", re.IGNORECASE)),
    ("recv", re.compile(r"(?:^|[_:])i?recv", re.IGNORECASE)),
    ("barrier", re.compile(r"barrier", re.IGNORECASE)),
)

UNKNOWN_OP = "unknown"
COALESCED_OP = "coalesced"

_OP_OF_COLLECTIVE_NAME = {
    "allreduce": "all_reduce",
    "all_reduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "allreduce_sparse": "all_reduce",
    "reduce": "reduce",
    "_reduce_oop": "reduce",
    "broadcast": "broadcast",
    "_broadcast_oop": "broadcast",
    "allgather": "all_gather",
    "all_gather": "all_gather",
    "_allgather_base": "all_gather",
    "_all_gather_base": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "allgather_coalesced": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all": "all_to_all",
    "all_to_allv": "all_to_all",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
    "monitored_barrier": "barrier",
    "send": "send",
    "recv": "recv",
    "recvanysource": "recv",
    "recv_any_source": "recv",
    "coalesced": COALESCED_OP,
    "coalesced_start": COALESCED_OP,
    "coalesced_end": COALESCED_OP,
}

POINT_TO_POINT_OPS = ("send", "recv")
SYNCHRONISING_OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""Operations that no rank can finish before every rank has arrived: only these align clocks."""

_PREFIXED_NAME = re.compile(r"^(?:nccl|gloo|mpi|ucc|c10d|hccl|xccl):+(.*?)_?$")


def op_of_collective_name(text: str) -> str:
    """Canonical operation of a `Collective name`, of a `nccl:<op>` annotation or of a `c10d::` operator.

    >>> op_of_collective_name("_allgather_base")
    'all_gather'
    >>> op_of_collective_name("nccl:_reduce_scatter_base")
    'reduce_scatter'
    >>> op_of_collective_name("c10d::allreduce_")
    'all_reduce'
    >>> op_of_collective_name("nccl:recv 3<-1")
    'recv'
    """
    prefixed = _PREFIXED_NAME.match(text)
    bare = (prefixed.group(1) if prefixed else text).strip().lower()
    known = _OP_OF_COLLECTIVE_NAME.get(bare)
    if known is not None:
        return known
    first_word = bare.split(" ", 1)[0]
    return _OP_OF_COLLECTIVE_NAME.get(first_word) or op_of_kernel_name(bare)


def op_of_kernel_name(name: str) -> str:
    """Operation that a communication kernel's name says, or "unknown" (RCCL calls every kernel Generic).

    A hint only: an all-to-all runs SendRecv kernels too.

    >>> op_of_kernel_name("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    'all_reduce'
    >>> op_of_kernel_name("ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)")
    'unknown'
    """
    head = name.split("(", 1)[0]
    for op, pattern in _OPS_BY_NAME:
        if pattern.search(head):
            return op
    return UNKNOWN_OP


@dataclass(frozen=True, slots=True, kw_only=True)
class Classifier:
    """Decides the class of an event from its category and name.

    Attributes:
        extra_patterns: regular expressions, case-blind, of kernel names that communicate beyond
            `DEFAULT_COMMUNICATION_PATTERNS`.
    """

    extra_patterns: tuple[str, ...] = ()
    _compiled: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the patterns.

        Raises:
            UsageError: naming every pattern that is not a regular expression.
        """
        faults = []
        compiled = [_DEFAULT_COMMUNICATION]
        for pattern in self.extra_patterns:
            # Each on its own: joined into one, flags and numbered or named groups of one would meet another's.
            try:
                compiled.append(re.compile(pattern, re.IGNORECASE))
            except re.error as error:
                faults.append(f"  {pattern!r}: {error}")
        if faults:
            raise UsageError(
                "communication patterns must be regular expressions, and these are not:\n"
                + "\n".join(faults)
                + "\nEscape characters such as ( and * with a backslash to match them as they are."
            )
        object.__setattr__(self, "_compiled", tuple(compiled))

    def classify(self, category: Category, name: str) -> EventClass:
        """Class of an event.

        >>> Classifier().classify(Category.KERNEL, "__amd_rocclr_copyBuffer").name
        'MEMORY'
        >>> Classifier().classify(Category.KERNEL, "void deep_ep::internode::dispatch<4>()").name
        'COMMUNICATION'
        """
        if category == Category.KERNEL:
            if _MEMORY_KERNEL.match(name):
                return EventClass.MEMORY
            communicates = any(pattern.search(name, 0, _LONGEST_NAME) for pattern in self._compiled)
            return EventClass.COMMUNICATION if communicates else EventClass.COMPUTE
        if category in (Category.MEMCPY, Category.MEMSET):
            return EventClass.MEMORY
        if category == Category.SYNC:
            return EventClass.SYNC
        if category == Category.USER_ANNOTATION:
            return EventClass.COMMUNICATION if _HOST_COMMUNICATION.match(name) else EventClass.ANNOTATION
        if category == Category.GPU_ANNOTATION:
            return EventClass.ANNOTATION
        return EventClass.HOST


BLOCKING_HOST_OPS = frozenset(
    {
        "c10d::barrier",
        "c10d::monitored_barrier_",
        "c10d::recv_",
        "c10d::recv_any_source_",
        "c10d::send",
    }
)
"""c10d operators whose host time is waiting for a peer, so never compute on a CPU-only run."""

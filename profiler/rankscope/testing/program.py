"""What a rank of a synthetic run does: a program of items, one after another on its host thread.

Times are int nanoseconds. Device work goes to streams with names ("compute", "communication"); work on one
stream is serial, and the host only waits for a device where the program says `DeviceSync`. On the gloo backend
there is no device: compute runs on the host thread itself, and collectives run on worker threads, which
take the place of the communication streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Backend = Literal["nccl", "rccl", "gloo"]
Thread = Literal["main", "backward"]

COMPUTE = "compute"
"""The stream of kernels."""

COMMUNICATION = "communication"
"""The usual stream of collectives; a program may name others, one for each process group."""

OPERATOR_LEAD_NS = 1_000
LAUNCH_NS = 4_000
OPERATOR_TAIL_NS = 1_000
LAUNCH_DELAY_NS = OPERATOR_LEAD_NS + LAUNCH_NS
"""From the start of an operator to the end of its launch row: no kernel starts sooner."""

KERNEL_HOST_NS = LAUNCH_DELAY_NS + OPERATOR_TAIL_NS
"""What one kernel or copy costs the host thread."""

HOST_OVERHEAD_NS = 50_000
"""From the `record_param_comms` row of a collective to its launch row."""

NESTING_NS = 1_000
"""From the start of a host row to the start of the row inside it."""

COLLECTIVE_TAIL_NS = 3 * NESTING_NS
"""After a launch: the ends of the annotation, of `record_param_comms` and of the c10d operator."""

ACCUMULATE_NS = 3_000
"""What one AccumulateGrad row without a collective costs the host thread."""

COLLECTIVE_HOST_NS = NESTING_NS + LAUNCH_NS + COLLECTIVE_TAIL_NS
"""What a collective costs the host thread beside its host overhead."""

BUCKET_LEAD_NS = 2 * NESTING_NS
"""From the start of a bucket's AccumulateGrad row to its c10d operator."""

BUCKET_HOST_NS = BUCKET_LEAD_NS + COLLECTIVE_HOST_NS + NESTING_NS
"""What a DDP bucket costs the host thread beside its host overhead; on gloo BUCKET_LEAD_NS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A process group: its name (unless a rank calls it otherwise), global ranks and description."""

    name: str
    ranks: tuple[int, ...]
    description: str = "undefined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """One kernel of `duration_ns` on `stream`; on gloo one host operator of that duration."""

    name: str
    duration_ns: int
    operator: str = "aten::mm"
    stream: str = COMPUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One memory copy of `size_bytes` in `duration_ns`."""

    kind: Literal["HtoD", "DtoH", "DtoD"]
    duration_ns: int
    size_bytes: int
    stream: str = COMPUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """A collective: it starts when its stream reaches it and ends at (last arrival + transfer) on all ranks.

    Attributes:
        group: name of the process group.
        op: canonical operation ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all").
        elements: elements that count as its size (all-gather: what comes out; else what goes in).
        transfer_ns: from the last rank's arrival to the common end; the same on all ranks.
        dtype: PyTorch's name ("float32", "bfloat16", "int32", "int64").
        stream: the communication stream, on gloo the worker thread.
        after: streams whose work launched so far must have ended.
        parameters: for a DDP bucket the elements of its parameters, in gradient-ready order; () otherwise.
            The collective then stands inside the AccumulateGrad row of the last one.
        end_jitter_ns: how much later than the common end it ends on this rank.
        host_overhead_ns: from the `record_param_comms` row to the launch row; on gloo the length of the
            c10d operator.
    """

    group: str
    op: str
    elements: int
    transfer_ns: int
    dtype: str = "float32"
    stream: str = COMMUNICATION
    after: tuple[str, ...] = (COMPUTE,)
    parameters: tuple[int, ...] = ()
    end_jitter_ns: int = 0
    host_overhead_ns: int = HOST_OVERHEAD_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class PointToPoint:
    """A send or receive; a pair ends together at (later start + transfer).

    Attributes:
        op: "send" or "recv".
        group: process group in which it is called.
        peer: global rank at the other end.
        elements: number of elements.
        transfer_ns: from the later start to the common end; the same on both ranks.
        dtype, stream, after, host_overhead_ns: as for a collective.
    """

    op: Literal["send", "recv"]
    group: str
    peer: int
    elements: int
    transfer_ns: int
    dtype: str = "float32"
    stream: str = COMMUNICATION
    after: tuple[str, ...] = (COMPUTE,)
    host_overhead_ns: int = HOST_OVERHEAD_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWait:
    """What is launched on `stream` from now on waits for all that was launched on `on` so far.

    Host compute (gloo) waits on the host thread.
    """

    stream: str
    on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWork:
    """The host thread is busy for `duration_ns`; a name makes it an annotation, None leaves no row."""

    duration_ns: int
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSync:
    """The host waits until everything launched so far has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """An annotation round items.

    Attributes:
        name: text of the annotation; None leaves no row.
        items: what happens inside.
        thread: host thread from here on; None keeps the surrounding one. The host runs one item at a
            time: main waits while backward runs.
        step: number of the training step, for a `ProfilerStep#` region.
    """

    name: str | None
    items: tuple[Item, ...]
    thread: Thread | None = None
    step: int | None = None


Communication: TypeAlias = "Collective | PointToPoint"
DeviceItem: TypeAlias = "Compute | Copy | Collective | PointToPoint"
Item: TypeAlias = "DeviceItem | StreamWait | HostWork | DeviceSync | Region"
Program: TypeAlias = "tuple[Item, ...]"


def step(number: int, *items: Item) -> Region:
    """The training step `number`, as torch.profiler marks it.

    >>> step(3).name
    'ProfilerStep#3'
    """
    return Region(name=f"ProfilerStep#{number}", items=items, step=number)

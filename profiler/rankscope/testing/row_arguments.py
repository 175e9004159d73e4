"""The `args` of rows: what each torch release says of operators, kernels and communications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankscope.testing.communication_names import argument_dtype, collective_name_of, input_type
from rankscope.testing.program import Collective, Communication, Compute, Copy, Group
from rankscope.testing.timeline import DeviceSpan, HostSpan
from rankscope.testing.trace_style import TraceStyle

_RECORD_INPUTS = 10
"""Arguments of record_param_comms; their values stand in `Concrete Inputs`."""

_ALLREDUCE_INPUTS = 5
_COPY_NAMES = {
    "HtoD": "Memcpy HtoD (Pinned -> Device)",
    "DtoH": "Memcpy DtoH (Device -> Pinned)",
    "DtoD": "Memcpy DtoD (Device -> Device)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How one rank's file names things.

    Attributes:
        rank: the rank.
        style: of the files.
        groups: scenario's name of a group -> the group.
        device: its device number.
        streams: stream -> number.
    """

    rank: int
    style: TraceStyle
    groups: dict[str, Group]
    device: int
    streams: dict[str, int]

    def group_name(self, name: str) -> str:
        """What this rank calls a group."""
        return self.style.group_names.get(self.rank, {}).get(name, name)


def operator_arguments(naming: Naming, span: HostSpan, external_id: int, place: int) -> dict[str, Any]:
    """Arguments of an operator or annotation."""
    args: dict[str, Any] = {"External id": external_id}
    if naming.style.release.joined:
        args["Record function id"] = 0
    if span.shape is not None and naming.style.record_shapes:
        dtype = span.item.dtype if isinstance(span.item, Collective) else "float32"
        args |= _shapes(span, dtype)
    return args | {"Ev Idx": place}


def record_arguments(
    naming: Naming, span: HostSpan, item: Communication, sequence: int | None, external_id: int, place: int
) -> dict[str, Any]:
    """Arguments of a `record_param_comms` row."""
    args = {"External id": external_id, **_record_inputs(naming, item, sequence)}
    release = naming.style.release
    if release.arguments >= 1:
        args |= communication_arguments(naming, item, sequence)
    if release.arguments >= 2:
        ranks = naming.groups[item.group].ranks
        args |= {"Global rank start": ranks[0], "Global rank stride": _stride(ranks)}
    if release.arguments >= 3:
        args["Rank"] = naming.groups[item.group].ranks.index(naming.rank)
    return args | {"Ev Idx": place}


def kernel_arguments(naming: Naming, span: DeviceSpan, external_id: int, correlation: int) -> dict[str, Any]:
    """Arguments of a kernel or copy."""
    is_communication = not isinstance(span.item, (Compute, Copy))
    args: dict[str, Any] = {
        "External id": external_id,
        "queued": 0,
        "device": naming.device,
        "context": 1,
        "stream": naming.streams[span.stream],
        "correlation": correlation,
    }
    if isinstance(span.item, Copy):
        duration_ns = span.end_ns - span.start_ns
        bandwidth = round(span.item.size_bytes / duration_ns, 6)
        return args | {"bytes": span.item.size_bytes, "memory bandwidth (GB/s)": bandwidth}
    args |= {
        "registers per thread": 96 if is_communication else 64,
        "shared memory": 0,
        "grid": [24 if is_communication else 256, 1, 1],
        "block": [512, 1, 1],
    }
    if not isinstance(span.item, Compute) and naming.style.release.arguments >= 1:
        args |= communication_arguments(naming, span.item, span.sequence)
    return args


def communication_arguments(naming: Naming, item: Communication, sequence: int | None) -> dict[str, Any]:
    """The communication facts that both kernels and `record_param_comms` rows carry."""
    release = naming.style.release
    group = naming.groups[item.group]
    taken, given = elements_of(item, len(group.ranks))
    args: dict[str, Any] = {
        "Collective name": collective_name_of(item),
        f"In {release.size_word}": taken,
        f"Out {release.size_word}": given,
        "Group size": len(group.ranks),
        "dtype": argument_dtype(item.dtype),
    }
    if release.arguments >= 2:
        args |= {
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": naming.group_name(item.group),
            "Process Group Description": group.description,
            "Process Group Ranks": str(list(group.ranks)),
        }
    if release.arguments >= 3 and not isinstance(item, Collective):
        ends = (naming.rank, item.peer) if item.op == "send" else (item.peer, naming.rank)
        args |= {"Src Rank": ends[0], "Dst Rank": ends[1]}  # global ranks, unlike those in annotations
    if release.arguments >= 4 and sequence is not None:
        args |= {"Seq": sequence + 1, "Is asynchronized op": True}
    return args


def elements_of(item: Communication, group_size: int) -> tuple[int, int]:
    """Elements that one rank puts in and gets out.

    >>> elements_of(Collective(group="0", op="all_gather", elements=8, transfer_ns=1), 4)
    (2, 8)
    """
    if item.op == "all_gather":
        return item.elements // group_size, item.elements
    if item.op == "reduce_scatter":
        return item.elements, item.elements // group_size
    return item.elements, item.elements


def gloo_arguments(naming: Naming, item: Communication, external_id: int, place: int) -> dict[str, Any]:
    """Arguments of a `gloo:` annotation on a worker thread."""
    args: dict[str, Any] = {"External id": external_id, "Record function id": 0}
    if naming.style.record_shapes:
        args |= {
            "Concrete Inputs": [""],
            "Input type": [input_type(item.dtype)],
            "Input Strides": [[1]],
            "Input Dims": [[item.elements]],
        }
    return args | {"Ev Idx": place}


def copy_name(item: Copy) -> str:
    """Name of a copy's row."""
    return _COPY_NAMES[item.kind]


def _shapes(span: HostSpan, dtype: str) -> dict[str, Any]:
    shape = list(span.shape or ())
    if not span.name.startswith("c10d::"):
        return {
            "Concrete Inputs": [""],
            "Input type": [input_type(dtype)],
            "Input Strides": [[1]],
            "Input Dims": [shape],
        }
    rest = [[] for _ in range(_ALLREDUCE_INPUTS - 1)]  # type: list[list[int]]
    return {
        "Concrete Inputs": ["", "", "", "", "-1"],
        "Input type": ["TensorList", "", "", "", "Scalar"],
        "Input Strides": [[[1]], *rest],
        "Input Dims": [[shape], *rest],
    }


def _record_inputs(naming: Naming, item: Communication, sequence: int | None) -> dict[str, Any]:
    if not naming.style.release.joined:
        return {}
    args: dict[str, Any] = {"Record function id": 0}
    if naming.style.concrete_inputs == "none":
        return args
    ranks = naming.groups[item.group].ranks
    with_sequence = naming.style.concrete_inputs == "sequence" and sequence is not None
    number = str((sequence or 0) + 1) if with_sequence else ""
    rest = [[] for _ in range(_RECORD_INPUTS - 1)]  # type: list[list[int]]
    return args | {
        "Concrete Inputs": [
            "", number, "", str(ranks.index(naming.rank)), "", "[]", "[]",
            str(ranks[0]), str(_stride(ranks)), str(len(ranks)),
        ],
        "Input Dims": [[[item.elements]], *rest],
    }  # fmt: skip


def _stride(ranks: tuple[int, ...]) -> int:
    return ranks[1] - ranks[0] if len(ranks) > 1 else 1

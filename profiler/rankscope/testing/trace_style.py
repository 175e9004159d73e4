"""How trace files of a synthetic run look: the torch release that wrote them, names, layout, what is left out.

What each release writes was read off real traces of that release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rankscope.testing.trace_file import Layout

TorchRelease = Literal["2.1", "2.2", "2.4", "2.8", "2.12"]
Place = Literal["before", "after"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What one torch release writes.

    Attributes:
        whole_us: times are whole microseconds since the Unix epoch; else ns decimals after the base time.
        base: where `baseTimeNanoseconds` stands.
        arguments: 0 - kernels carry no communication arguments; 1 - name, dtype, sizes, group size;
            2 - also the process group; 3 - also ranks, source and destination; 4 - also `Seq`.
        size_word: "msg size" or "msg nelems" in the size arguments.
        joined: a kernel carries the `External id` of its operator; else that of its correlation.
        groups: `distributedInfo` lists the process groups.
        gpu_annotations: annotations are copied to the device rows.
        metadata_first: process and thread names stand before the events; else behind them.
        layout: Kineto's line breaks.
        old_kernel_names: NCCL below 2.19.
        host_name: the host stands at the top of the file; before, only in Kineto's file names.
    """

    whole_us: bool = False
    base: Place | None = "before"
    arguments: int = 3
    size_word: str = "msg nelems"
    joined: bool = True
    groups: bool = True
    gpu_annotations: bool = True
    metadata_first: bool = False
    layout: Layout = "kineto"
    old_kernel_names: bool = False
    host_name: bool = False


RELEASES: dict[TorchRelease, Release] = {
    "2.1": Release(
        whole_us=True,
        base=None,
        arguments=0,
        joined=False,
        groups=False,
        gpu_annotations=False,
        old_kernel_names=True,
    ),
    "2.2": Release(
        whole_us=True,
        base=None,
        arguments=1,
        size_word="msg size",
        joined=False,
        groups=False,
        gpu_annotations=False,
    ),
    "2.4": Release(base="after", arguments=2),
    "2.8": Release(),
    "2.12": Release(arguments=4, metadata_first=True, layout="kineto long", host_name=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStyle:
    """How the files of a run look.

    Attributes:
        torch: release that wrote them.
        file_names: "rankscope" (rank_00007.0.pt.trace.json), "kineto" (host0_4007.<unix ns>.pt.trace.json) or
            "plain" (rank7.json).
        compress: gzip, and .gz at the end of the name.
        pretty: Kineto's line breaks; else one line without any.
        flows: arrows from launches to kernels.
        record_shapes: input dimensions and types on operators.
        concrete_inputs: what `record_param_comms` holds of its arguments: nothing, the rank as the first
            number, or the sequence number before it (1 of 11 real runs has that).
        distributed_info: the whole of it, without the rank, or none.
        distributed_info_place: before traceEvents as in the real files, or after them.
        base_shift_ns: rank -> how much later than usual its `baseTimeNanoseconds` is; its ts fall by as much.
        group_names: rank -> scenario's name of a group -> what this rank calls it.
        manifest: add what rankscope's collector writes, the host among it, under its key; None: in files that are
            named as the collector names them.
    """

    torch: TorchRelease = "2.4"
    file_names: Literal["rankscope", "kineto", "plain"] = "rankscope"
    compress: bool = True
    pretty: bool = True
    flows: bool = True
    record_shapes: bool = True
    concrete_inputs: Literal["none", "rank", "sequence"] = "none"
    distributed_info: Literal["full", "no rank", "none"] = "full"
    distributed_info_place: Place = "before"
    base_shift_ns: Mapping[int, int] = field(default_factory=dict)
    group_names: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    manifest: bool | None = None

    @property
    def has_manifest(self) -> bool:
        """Whether files hold the collector's facts."""
        return self.file_names == "rankscope" if self.manifest is None else self.manifest

    @property
    def release(self) -> Release:
        """What the release writes."""
        return RELEASES[self.torch]

    @property
    def layout(self) -> Layout:
        """The line breaks."""
        return self.release.layout if self.pretty else "compact"

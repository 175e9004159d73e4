"""A run as it was read: one window per trace file, what the files say of themselves, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from rankscope.model.categories import Category
from rankscope.model.manifest import Manifest
from rankscope.model.table import TraceTable

Severity = Literal["error", "warning", "note"]
RankSource = Literal["distributedInfo", "manifest", "file name", "numbered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in the input that a person must know.

    Attributes:
        file: the file, as the user would name it; "" for the whole run.
        offset: byte offset in the uncompressed text, from 0; None where a place has no meaning.
        kind: slug, explained in docs/errors.md.
        message: what happened and what was done about it.
        severity: "error" - a file or a part of one is lost; "warning" - figures were repaired or may
            mislead; "note" - good to know.
    """

    file: str
    offset: int | None
    kind: str
    message: str
    severity: Severity = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessGroup:
    """A process group as one rank names it. Names may differ by rank; the ranks identify the group."""

    name: str
    description: str
    ranks: tuple[int, ...]
    backend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceWindow:
    """One recorded window of one rank: one trace file.

    Attributes:
        rank: global rank.
        rank_source: where the rank number comes from.
        window: number of the window within the rank, by start time, from 0.
        file: the file, relative to the run.
        table: its complete events.
        world_size: number of ranks of the job, or None if the file does not say.
        backend: "nccl", "gloo", ...; None if the file does not say or says "undefined".
        groups: process groups in creation order.
        host: host name, or None.
        device_names: device number -> product name.
        versions: component -> version text.
        manifest: what rankscope's collector recorded, or None.
    """

    rank: int
    rank_source: RankSource
    window: int
    file: str
    table: TraceTable
    world_size: int | None = None
    backend: str | None = None
    groups: tuple[ProcessGroup, ...] = ()
    host: str | None = None
    device_names: dict[int, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    manifest: Manifest | None = None

    def with_table(self, table: TraceTable) -> TraceWindow:
        """The same window over other events."""
        return replace(self, table=table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All windows of a run, sorted by rank and window, and the problems met while reading it.

    Attributes:
        name: short name, from the directory or file.
        source: the path or URL that was read.
        windows: the windows.
        problems: in order of file and offset.
    """

    name: str
    source: str
    windows: tuple[TraceWindow, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that are present, in order."""
        return tuple(sorted({w.rank for w in self.windows}))

    @property
    def world_size(self) -> int | None:
        """The number of ranks of the job, as the files say; None if none says it."""
        sizes = [w.world_size for w in self.windows if w.world_size is not None]
        return max(sizes) if sizes else None

    @property
    def missing_ranks(self) -> tuple[int, ...]:
        """Ranks of the job without a file; () where the world size is unknown."""
        world_size = self.world_size
        return () if world_size is None else tuple(sorted(set(range(world_size)) - set(self.ranks)))

    @property
    def is_cpu_only(self) -> bool:
        """True if no file holds a device event nor a device launch: then host operators are the compute."""
        return not any(w.table.gpu_devices() or has_device_launches(w.table) for w in self.windows)


def has_device_launches(table: TraceTable) -> bool:
    """True if the table holds rows of a device runtime (so the job used a device, recorded or not)."""
    return bool((table.category == Category.RUNTIME).any())

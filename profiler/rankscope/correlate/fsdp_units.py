"""Which communications are FSDP's, and of which module: all-gathers of parameters, reduce-scatters of gradients.

FSDP2 writes annotations round what it launches: `FSDP::all_gather (layers.3)`, `FSDP::post_backward_reduce (layers.3)`;
from torch 2.5 on with the module's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from rankscope.correlate.communications import Communications
from rankscope.correlate.launches import NO_ROW, find_enclosing
from rankscope.model.categories import Category
from rankscope.model.intervals import Int64

_ANNOTATION = re.compile(r"^FSDP::\w+(?: \((?P<unit>.+)\))?$")
_OPS = ("all_gather", "reduce_scatter", "all_reduce")
ROOT = "(root)"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitEvents:
    """FSDP communications of one window on one device, in the order in which the host asked for them.

    Attributes:
        index: int64[u], which of the window's communications each is.
        host_row: int64[u], the row that asked for it, NO_ROW if the trace holds none.
        unit: name of the module of each; "(root)" where the annotation has none.
    """

    index: Int64
    host_row: Int64
    unit: tuple[str, ...]


def find_units(communications: Communications) -> UnitEvents:
    """The FSDP communications of a window."""
    table = communications.events.table
    names = [_ANNOTATION.match(name) for name in table.names]
    holders = table.rows_of_category(Category.USER_ANNOTATION, [match is not None for match in names])
    is_wanted = np.array([kind.op in _OPS for kind in communications.kinds], bool)
    wanted = np.flatnonzero(is_wanted[communications.kind]) if len(is_wanted) else np.empty(0, np.int64)
    host = communications.host_row[wanted]
    anchor = np.where(host == NO_ROW, communications.launch_row[wanted], host)
    holder = find_enclosing(table, holders, anchor)
    inside = holder != NO_ROW
    wanted, host, anchor, holder = wanted[inside], host[inside], anchor[inside], holder[inside]
    order = np.argsort(table.start_ns[anchor], kind="stable")
    units = [names[table.name[row]] for row in holder[order]]
    return UnitEvents(
        index=wanted[order],
        host_row=host[order],
        unit=tuple((match["unit"] or ROOT) if match else ROOT for match in units),
    )

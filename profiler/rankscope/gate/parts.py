"""Collectives, kernels and copies that appeared, vanished or changed their time between two runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rankscope.model.comparison import ChangedPart, PartChange
from rankscope.model.snapshot import Part, PartClass, Parts

Key = tuple[PartClass, str, str]

_NOTEWORTHY = 0.02
"""Change of a part's time, as a share of it, below which it counts as unchanged."""

LONGEST_NAME = 90
"""Characters of a name by which parts are told apart, those of a hash included."""

_HASH_DIGITS = 12

_RANKS_OF_GROUP = re.compile(r"\s*\[[0-9,\-]*\](?= #\d+$|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Total:
    """A part of one run, per step: times in ns; exposed time of a collective, None of others."""

    name: str
    group: str
    time_ns: float = 0
    count: float = 0
    exposed_ns: float | None = None


def compare_parts(
    base: Parts, head: Parts, *, base_steps: float = 1, head_steps: float = 1, same_ranks: bool = True
) -> list[ChangedPart]:
    """The parts whose time, or exposed time, changed by at least 2 %, the largest change first.

    Kernels are compared only if both sides know them. A part that one side lacks because only its largest
    parts were kept is passed over.

    Args:
        base, head: the parts of both runs.
        base_steps, head_steps: what times and counts are divided by.
        same_ranks: False if the jobs have different ranks: groups are then named without them.
    """
    both_know_kernels = base.has_kernels and head.has_kernels
    before = _by_key(base.rows, base_steps, same_ranks)
    after = _by_key(head.rows, head_steps, same_ranks)
    changes = []
    for key in {**before, **after}:
        if key[0] != "collective" and not both_know_kernels:
            continue
        old, new = before.get(key), after.get(key)
        change = _name_change(old, new, _left_out(base, key) / base_steps, _left_out(head, key) / head_steps)
        if change is not None:
            changes.append(_describe(key, change, old, new))
    return sorted(changes, key=lambda c: (-_size(c), c.part_class, c.name, c.group))


def _size(part: ChangedPart) -> float:
    return max(abs(part.change_ns), abs(part.exposed_change_ns or 0))


def _by_key(rows: Iterable[Part], steps: float, same_ranks: bool) -> dict[Key, _Total]:
    found: dict[Key, _Total] = {}
    for part in rows:
        group = part.group if same_ranks else _RANKS_OF_GROUP.sub("", part.group)
        key = (part.part_class, shorten_name(part.name), shorten_name(group))
        total = found.get(key)
        found[key] = _Total(
            name=part.name,
            group=group,
            time_ns=(total.time_ns if total else 0) + part.time_ns / steps,
            count=(total.count if total else 0) + part.count / steps,
            exposed_ns=None
            if part.exposed_ns is None
            else ((total.exposed_ns or 0) if total else 0) + part.exposed_ns / steps,
        )
    return found


def shorten_name(name: str) -> str:
    """The name, or the beginning of a long one with a hash of it all, so that two do not become one.

    >>> shorten_name("gemm"), len(shorten_name("k" * 1000))
    ('gemm', 90)
    """
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    return f"{name[: LONGEST_NAME - _HASH_DIGITS - 1]}~{digest}"


def _left_out(parts: Parts, key: Key) -> float:
    return parts.left_out_collective_ns if key[0] == "collective" else parts.left_out_kernel_ns


def _name_change(
    old: _Total | None, new: _Total | None, base_cut: float, head_cut: float
) -> PartChange | None:
    if old is None:
        return "appeared" if new is not None and new.time_ns > base_cut else None
    if new is None:
        return "vanished" if old.time_ns > head_cut else None
    if _differ(old.time_ns, new.time_ns):
        return "longer" if new.time_ns > old.time_ns else "shorter"
    if old.exposed_ns is not None and new.exposed_ns is not None and _differ(old.exposed_ns, new.exposed_ns):
        return "less hidden" if new.exposed_ns > old.exposed_ns else "more hidden"
    return None


def _differ(old: float, new: float) -> bool:
    return new != old and abs(new - old) >= _NOTEWORTHY * old


def _describe(key: Key, change: PartChange, old: _Total | None, new: _Total | None) -> ChangedPart:
    # The side that was not cut short has the longer name.
    name, group = max(
        ((side.name, side.group) for side in (old, new) if side is not None), key=lambda n: len(n[0])
    )
    absent = _Total(name=name, group=group, exposed_ns=0 if key[0] == "collective" else None)
    old, new = old or absent, new or absent
    return ChangedPart(
        part_class=key[0],
        name=name,
        group=group,
        change=change,
        base_ns=old.time_ns,
        head_ns=new.time_ns,
        base_count=old.count,
        head_count=new.count,
        base_exposed_ns=old.exposed_ns,
        head_exposed_ns=new.exposed_ns,
    )

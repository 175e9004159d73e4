"""Why a figure is undefined: the paths of `Report.undefined`.

A path names a row and a figure: `ranks[rank=3,device=0].overlap_ratio`, `totals.steady.overlap_ratio`. `[*]`
stands for every row, and a row may be named by some of its keys only: `steps[step=5].overlap_ratio` is step 5
on all ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from rankscope.model.report import Report

Keys = frozenset[tuple[str, str]]

_MOST_KEYS = 5
"""Rows have fewer keys; a group's name that looks like more must not cost 2 to the power of them."""


class Reasons:
    """The reasons of a report, looked up in constant time per figure.

    >>> reasons = Reasons({"steps[*].window_ns": "a step has no window"})
    >>> reasons.find("steps[step=5,rank=0].window_ns")
    'a step has no window'
    """

    def __init__(self, undefined: Mapping[str, str]) -> None:
        self._by_figure: dict[tuple[str, ...], dict[Keys, str]] = {}
        for path, reason in undefined.items():
            figure, keys = parse_path(path)
            self._by_figure.setdefault(figure, {})[keys] = reason

    def find(self, path: str) -> str | None:
        """The reason of the figure at `path`: the entry that names it most closely; None if there is none."""
        figure, keys = parse_path(path)
        entries = self._by_figure.get(figure)
        if entries is None:
            return None
        if len(keys) > _MOST_KEYS:
            fitting = [known for known in entries if known <= keys]
            return entries[max(fitting, key=len)] if fitting else None
        for size in range(len(keys), -1, -1):
            for subset in combinations(sorted(keys), size):
                reason = entries.get(frozenset(subset))
                if reason is not None:
                    return reason
        return None


def reason_of(report: Report, path: str) -> str | None:
    """Why the figure at `path` is undefined, or None if the report does not say."""
    return Reasons(report.undefined).find(path)


def make_path(section: str, keys: Mapping[str, object], figure: str) -> str:
    """The path of a figure of a row.

    >>> make_path("ranks", {"rank": 3, "device": 0}, "overlap_ratio")
    'ranks[rank=3,device=0].overlap_ratio'
    """
    named = ",".join(f"{key}={value}" for key, value in keys.items())
    return f"{section}[{named}].{figure}"


def parse_path(path: str) -> tuple[tuple[str, ...], Keys]:
    """The names along a path, and the keys of its row; a key whose value is `*` says nothing.

    >>> figure, keys = parse_path("groups[group=a.b,op=*].bus_bandwidth_gbps")
    >>> figure, sorted(keys)
    (('groups', 'bus_bandwidth_gbps'), [('group', 'a.b')])
    """
    section, bracket, rest = path.partition("[")
    if not bracket:
        return tuple(path.split(".")), frozenset()
    # The last "]." ends the row: a group's name may hold brackets, commas and dots.
    inside, _, figure = rest.rpartition("].")
    return (*section.split("."), *figure.split(".")), frozenset(_parse_keys(inside.split(",")))


def _parse_keys(pieces: Iterable[str]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for piece in pieces:
        key, equals, value = piece.partition("=")
        if equals and key.isidentifier():
            pairs.append((key, value))
        elif pairs:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]},{piece}")
    return [(key, value) for key, value in pairs if value != "*"]

"""Sets of ranks that may be slow together: single ranks, hosts, process groups, stages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rankscope.correlate.own_work import OwnWork, excess_of
from rankscope.model.groups import GroupKey

Scope = Literal["rank", "host", "group", "stage", "ranks"]
_MAX_SINGLES = 16
_MAX_SETS = 24
_SHARES_EXCESS = 0.5


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A set of ranks and what they have in common."""

    ranks: tuple[int, ...]
    scope: Scope
    name: str = ""


def find_candidates(
    work: OwnWork, groups: Sequence[GroupKey], hosts: Mapping[int, str]
) -> tuple[Candidate, ...]:
    """Sets whose cost is worth a replay, single ranks first.

    The cost of a set is at most what its ranks worked longer than their peers, so of many ranks only those that
    worked longest are tried, and the sets that hold one of them.
    """
    excess = excess_of(work)
    ranks = sorted(excess, key=lambda r: (-excess[r], r))
    singles = sorted(ranks[:_MAX_SINGLES])
    chosen = [Candidate((rank,), "rank") for rank in singles]
    worth = set(ranks[: max(_MAX_SINGLES, len(ranks) // 2)])
    sets = [
        *_hosts(hosts, set(ranks)),
        *_stages(work),
        *[Candidate(g.ranks, "group", g.label) for g in groups],
        *_long_workers(excess),
    ]
    seen = {candidate.ranks for candidate in chosen}
    for candidate in sets:
        proper = 1 < len(candidate.ranks) < len(ranks) and set(candidate.ranks) <= set(ranks)
        if proper and candidate.ranks not in seen and worth.intersection(candidate.ranks):
            seen.add(candidate.ranks)
            chosen.append(candidate)
        if len(chosen) >= len(singles) + _MAX_SETS:
            break
    return tuple(chosen)


def _hosts(hosts: Mapping[int, str], present: set[int]) -> list[Candidate]:
    on_host: dict[str, list[int]] = defaultdict(list)
    for rank, host in sorted(hosts.items()):
        if rank in present:
            on_host[host].append(rank)
    return [Candidate(tuple(ranks), "host", host) for host, ranks in on_host.items()]


def _stages(work: OwnWork) -> list[Candidate]:
    """Ranks that run the same program where there are several programs: pipeline stages."""
    stages = sorted({tuple(sorted({work.nodes[i].rank for i in role})) for role in work.roles})
    return [Candidate(ranks, "stage") for ranks in stages] if len(stages) > 1 else []


def _long_workers(excess: Mapping[int, int]) -> list[Candidate]:
    """All ranks that worked about as much longer as the one that did most: two of them hide each other."""
    most = max(excess.values(), default=0)
    ranks = tuple(sorted(r for r, ns in excess.items() if most > 0 and ns >= _SHARES_EXCESS * most))
    return [Candidate(ranks, "ranks")] if len(ranks) <= len(excess) // 2 else []

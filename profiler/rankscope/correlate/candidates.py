"""Sets of ranks that may be slow together: single ranks, hosts, process groups, stages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankscope.correlate.own_work import OwnWork, excess_of
from rankscope.correlate.run_communications import NO_PEER, RunCommunications

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
    work: OwnWork, comms: RunCommunications, hosts: Mapping[int, str]
) -> tuple[Candidate, ...]:
    """Sets whose cost is worth a replay, single ranks first.

    The cost of a set is at most what its ranks worked longer than their peers, so of many ranks only those that
    worked longest are tried, and the sets that hold one of them.

    Args:
        work: own work of all ranks.
        comms: the run's communication events.
        hosts: rank -> host, where known.
    """
    excess = excess_of(work)
    ranks = sorted(excess, key=lambda r: (-excess[r], r))
    singles = sorted(ranks[:_MAX_SINGLES])
    chosen = [Candidate((rank,), "rank") for rank in singles]
    worth = set(ranks[: max(_MAX_SINGLES, len(ranks) // 2)])
    sets = [
        *_hosts(hosts, set(ranks)),
        *_stages(work, comms),
        *[Candidate(g.ranks, "group", g.label) for g in comms.groups],
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


def _stages(work: OwnWork, comms: RunCommunications) -> list[Candidate]:
    """Pipeline stages: ranks at one place of chains of messages, else ranks that run one of several programs."""
    programs = [{work.nodes[i].rank for i in role} for role in work.roles]
    if len(programs) < 2:
        return []
    chains = [c for c in _chains(comms) if not any(program.issuperset(c) for program in programs)]
    by_place = {
        tuple(chain[place] for chain in chains if len(chain) == length)
        for length in {len(chain) for chain in chains}
        for place in range(length)
    }
    stages = by_place or {tuple(sorted(program)) for program in programs}
    return [Candidate(ranks, "stage") for ranks in sorted(stages)]


def _chains(comms: RunCommunications) -> list[list[int]]:
    """Ranks that hang together by sends and receives, each in order."""
    known = np.flatnonzero(comms.is_point_to_point & (comms.peer != NO_PEER))
    ends = np.unique(np.stack([comms.rank[known], comms.peer[known]], axis=1), axis=0)
    chain_of: dict[int, list[int]] = {}
    for one, other in ends.tolist():
        mine, theirs = chain_of.setdefault(one, [one]), chain_of.setdefault(other, [other])
        if mine is not theirs:
            mine += theirs
            chain_of.update(dict.fromkeys(theirs, mine))
    return [sorted(chain) for rank, chain in sorted(chain_of.items()) if rank == min(chain)]


def _long_workers(excess: Mapping[int, int]) -> list[Candidate]:
    """All ranks that worked about as much longer as the one that did most: two of them hide each other.

    Of more than a quarter of all ranks nobody can say that they are the exception.
    """
    most = max(excess.values(), default=0)
    ranks = tuple(sorted(r for r, ns in excess.items() if most > 0 and ns >= _SHARES_EXCESS * most))
    few = len(ranks) <= max(2, len(excess) // 4) and len(ranks) <= len(excess) // 2
    return [Candidate(ranks, "ranks")] if few else []

"""Communication: per group and operation, per collective, per event, and per end of a transfer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Median and 95th percentile in ns."""

    p50: int
    p95: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One operation in one process group, over all ranks.

    Attributes:
        group: short name of the group; ranks: its global ranks ([] if unknown).
        op: canonical operation.
        count: collectives (the most that one rank took part in, until ranks are matched).
        size_bytes: sum of the sizes of those collectives; None if some are unknown.
        communication_ns, exposed_communication_ns: sum over ranks of union times.
        overlap_ratio: share of communication_ns that compute hides.
        bus_bandwidth_gbps: by transfer time, 1e9 bytes per second.
        transfer_ns: quantiles of the transfer times.
    """

    group: str
    ranks: list[int]
    op: str
    count: int
    size_bytes: int | None
    communication_ns: int
    exposed_communication_ns: int
    overlap_ratio: float | None
    bus_bandwidth_gbps: float | None = None
    transfer_ns: Quantiles | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitQuantiles:
    """Median and largest wait over the ranks of a collective, in ns."""

    p50: int
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRow:
    """One collective over all its ranks; times need no clocks except arrivals, lateness and last_rank.

    Attributes:
        sequence: its number in the group by the source named in `matched_by`.
        matched_by: "seq", "inputs", "order" or "unmatched".
        ranks: number of ranks on which it was found.
        transfer_ns: shortest duration over the ranks.
        lateness_ns: last arrival - second last.
        overlap_ratio: hidden share of its time, all ranks together.
        countable: whether its lateness counts against its last rank (docs/metrics.md, Straggler).
        arrivals_ns: rank -> start on the common clock; without `--detail full` of the latest collectives only.
        waits_ns: rank -> duration - transfer, with `--detail full`.
    """

    index: int
    step: int | None
    group: str
    op: str
    dtype: str | None
    size_bytes: int | None
    sequence: int | None
    matched_by: str
    coalesced: bool
    ranks: int
    transfer_ns: int | None
    lateness_ns: int | None
    last_rank: int | None
    overlap_ratio: float | None
    algorithm_bandwidth_gbps: float | None
    bus_bandwidth_gbps: float | None
    wait_ns: WaitQuantiles | None
    arrivals_ns: dict[int, int] | None = None
    waits_ns: dict[int, int] | None = None
    countable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicationRow:
    """One communication event of one rank, in time order (with `--detail full`)."""

    rank: int
    device: int | Literal["cpu"]
    window: int
    step: int | None
    op: str
    name: str
    group: str
    dtype: str | None
    size_bytes: int | None
    started_ns: int
    duration_ns: int
    exposed_ns: int
    overlap_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointToPointRow:
    """One end of a point-to-point transfer: wait for the peer, then transfer."""

    step: int | None
    op: str
    rank: int
    peer: int | None
    size_bytes: int | None
    wait_ns: int | None
    transfer_ns: int | None

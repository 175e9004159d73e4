"""How long an all-reduce of a size takes: latency + size / bandwidth, in pieces where the data shows a protocol step.

Fit with transfer times, from the last rank's arrival on: a duration holds the wait for that rank. Transfers of a
calibration (an idle network) and of the run (compute beside them) are never in one fit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

import numpy as np

from rankscope.model.collective import bus_factor

Source = Literal["calibration", "run", "given"]
Confidence = Literal["high", "medium", "low"]

_MIN_SIZE_SPREAD = 2.0
_WIDE_SPREAD = 4.0
_GOOD_ERROR = 0.10
_FAIR_ERROR = 0.20
_MIN_PIECE_SIZES = 3
_STEP_GAIN = 0.5
_STEP_WORTH = 0.08
_QUARTILE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One straight piece: `latency_ns + ns_per_byte * size` for sizes up to `up_to_bytes` (None: all above)."""

    latency_ns: float
    ns_per_byte: float
    up_to_bytes: int | None = None

    def duration_ns(self, size_bytes: float) -> float:
        """Time of one transfer in ns."""
        return self.latency_ns + self.ns_per_byte * size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A fitted network.

    Attributes:
        pieces: by rising size; more than one where the data shows protocol steps.
        ranks: number of ranks of the group.
        source: "calibration", "run" or "given" (by the user).
        sizes: distinct sizes that were measured.
        error: median relative deviation of single transfers from the fit.
        confidence: "high", "medium" or "low".
        measured: (bytes, measured over fitted time) by rising size: a real network bends where a line cannot.
    """

    pieces: tuple[Piece, ...]
    ranks: int
    source: Source
    sizes: int
    error: float
    confidence: Confidence
    measured: tuple[tuple[int, float], ...] = ()

    def transfer_ns(self, size_bytes: float) -> float:
        """Time of an all-reduce of `size_bytes`, in ns."""
        piece = next(
            (p for p in self.pieces if p.up_to_bytes is None or size_bytes <= p.up_to_bytes), self.pieces[-1]
        )
        return piece.duration_ns(size_bytes) * self._bend(size_bytes)

    def _bend(self, size_bytes: float) -> float:
        """Measured over fitted time, between the measured sizes on a line over the logarithm of the size."""
        if not self.measured:
            return 1.0
        sizes = [math.log(size) for size, _ in self.measured]
        return float(np.interp(math.log(max(size_bytes, 1.0)), sizes, [ratio for _, ratio in self.measured]))

    @property
    def latency_ns(self) -> float:
        """Latency of the smallest messages."""
        return self.pieces[0].latency_ns

    @property
    def bus_bandwidth_gbps(self) -> float | None:
        """Bus bandwidth of large messages in 1e9 bytes/s: 2(n-1)/n over the time per byte."""
        slope, factor = self.pieces[-1].ns_per_byte, bus_factor("all_reduce", self.ranks)
        return factor / slope if factor and slope > 0 else None


def fit_network(transfers: Iterable[tuple[int, float]], *, ranks: int, source: Source) -> Network | None:
    """The network behind transfers, or None if they cannot tell latency from bandwidth.

    Relative deviations from what is typical of each size are kept small (least squares), so that small messages count
    as much as large ones.

    Args:
        transfers: (bytes, ns) of all-reduces, any number per size.
        ranks: number of ranks of the group.
        source: where they come from.

    >>> network = fit_network([(1000, 1100.0), (9000, 9100.0)], ranks=2, source="run")
    >>> round(network.latency_ns), round(network.transfer_ns(2000))
    (100, 2100)
    >>> fit_network([(1000, 1100.0), (1000, 1150.0)], ranks=2, source="run") is None
    True
    """
    by_size: dict[int, list[float]] = defaultdict(list)
    for size, duration in transfers:
        if size > 0 and duration > 0:
            by_size[size].append(duration)
    points = _typical(by_size, source)
    if len(points) < 2 or points[-1][0] < _MIN_SIZE_SPREAD * points[0][0]:
        return None
    network = Network(
        pieces=tuple(_pieces(points)),
        ranks=ranks,
        source=source,
        sizes=len(points),
        error=0.0,
        confidence="low",
    )
    network = replace(network, measured=tuple((size, t / network.transfer_ns(size)) for size, t in points))
    error = median(
        abs(duration / network.transfer_ns(size) - 1)
        for size, durations in by_size.items()
        for duration in durations
    )
    spread = points[-1][0] / points[0][0]
    return replace(network, error=error, confidence=_confidence(source, error, spread))


def _typical(by_size: dict[int, list[float]], source: Source) -> list[tuple[int, float]]:
    """(bytes, ns) of each size, rising: larger messages take no less.

    On an idle network others only ever add time, so of a calibration the lower quartile counts; beside compute, in the
    run, the median.
    """
    points: list[tuple[int, float]] = []
    for size in sorted(by_size):
        typical = float(np.quantile(by_size[size], _QUARTILE if source == "calibration" else 0.5))
        points.append((size, max(typical, points[-1][1] if points else 0.0)))
    return points


def _confidence(source: Source, error: float, spread: float) -> Confidence:
    if source == "calibration" and error <= _GOOD_ERROR:
        return "high"
    return "medium" if error <= _FAIR_ERROR and spread >= _WIDE_SPREAD else "low"


def _pieces(points: Sequence[tuple[int, float]]) -> list[Piece]:
    """One line, or two and more where that halves a deviation worth speaking of."""
    line = _line(points)
    whole = _deviation(points, line)
    best: tuple[float, int] | None = None
    for cut in range(_MIN_PIECE_SIZES, len(points) - _MIN_PIECE_SIZES + 1):
        left, right = points[:cut], points[cut:]
        deviation = (
            _deviation(left, _line(left)) * len(left) + _deviation(right, _line(right)) * len(right)
        ) / len(points)
        if best is None or deviation < best[0]:
            best = deviation, cut
    if best is None or whole < _STEP_WORTH or best[0] > _STEP_GAIN * whole:
        return [line]
    cut = best[1]
    before = _pieces(points[:cut])
    border = (points[cut - 1][0] + points[cut][0]) // 2
    return [*before[:-1], replace(before[-1], up_to_bytes=border), *_pieces(points[cut:])]


def _line(points: Sequence[tuple[int, float]]) -> Piece:
    """The line with the least squares of relative deviations; neither latency nor time per byte is negative."""
    weights = [1 / duration**2 for _, duration in points]
    total = sum(weights)
    mean_size = sum(w * size for w, (size, _) in zip(weights, points, strict=True)) / total
    mean_time = sum(w * t for w, (_, t) in zip(weights, points, strict=True)) / total
    spread = sum(w * (size - mean_size) ** 2 for w, (size, _) in zip(weights, points, strict=True))
    joint = sum(w * (s - mean_size) * (t - mean_time) for w, (s, t) in zip(weights, points, strict=True))
    slope = max(joint / spread, 0.0) if spread else 0.0
    latency = mean_time - slope * mean_size
    if latency < 0:
        squares = sum(w * size * size for w, (size, _) in zip(weights, points, strict=True))
        return Piece(
            latency_ns=0.0,
            ns_per_byte=sum(w * s * t for w, (s, t) in zip(weights, points, strict=True)) / squares,
        )
    return Piece(latency_ns=latency, ns_per_byte=slope)


def _deviation(points: Sequence[tuple[int, float]], line: Piece) -> float:
    return sum(abs(line.duration_ns(size) / duration - 1) for size, duration in points) / len(points)


def change_network(
    network: Network,
    *,
    bandwidth_gbps: float | None = None,
    latency_us: float | None = None,
    world_size: int | None = None,
) -> Network:
    """The network with another bus bandwidth, latency or number of ranks, by the ring formula.

    A ring all-reduce of n ranks takes 2(n-1) rounds and moves 2(n-1)/n of the size over each link: the latency grows
    with n-1, the time per byte with (n-1)/n (nccl-tests, doc/PERFORMANCE.md).

    Args:
        network: as fitted.
        bandwidth_gbps: bus bandwidth in 1e9 bytes/s.
        latency_us: latency of a whole all-reduce in us, for the new number of ranks.
        world_size: number of ranks, at least 2.

    >>> two = Network(pieces=(Piece(latency_ns=100.0, ns_per_byte=1.0),), ranks=2, source="run", sizes=2, error=0.0,
    ...               confidence="medium")
    >>> four = change_network(two, world_size=4)
    >>> four.latency_ns, four.pieces[0].ns_per_byte
    (300.0, 1.5)
    """
    ranks = world_size or network.ranks
    old, new = bus_factor("all_reduce", network.ranks) or 1.0, bus_factor("all_reduce", ranks) or 1.0
    rounds = (ranks - 1) / max(network.ranks - 1, 1)
    pieces = [
        replace(p, latency_ns=p.latency_ns * rounds, ns_per_byte=p.ns_per_byte * new / old)
        for p in network.pieces
    ]
    if bandwidth_gbps is not None:
        pieces = [replace(p, ns_per_byte=new / bandwidth_gbps) for p in pieces]
    if latency_us is not None:
        pieces = [replace(p, latency_ns=latency_us * 1000) for p in pieces]
    if bandwidth_gbps is not None and latency_us is not None:
        only = replace(pieces[-1], up_to_bytes=None)
        return replace(network, pieces=(only,), ranks=ranks, source="given", error=0.0, measured=())
    return replace(network, pieces=tuple(pieces), ranks=ranks)

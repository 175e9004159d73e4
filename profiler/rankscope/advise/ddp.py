"""Step time, exposed communication and overlap for any sizes of buckets, and which to choose."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankscope.advise.backward import Recorded, slowdown_of
from rankscope.advise.ddp_layout import MIB, Bucket
from rankscope.advise.network import Network
from rankscope.advise.replay_layout import Beside, Float, Replayed, free_work, replay_layout
from rankscope.model.intervals import covered_ns

_CAPS_MB = (0.25, 0.5, 1, 2, 3, 5, 8, 12, 16, 25, 35, 50, 75, 100, 150, 200, 300, 500, 1000)
_PLATEAU = 0.01
_LEAST_ERROR = 0.05
_MAX_DRAG = 4.0
_MIN_BESIDE = 0.1
_PROBE = 0.1
_LEAST_REPLAY = -0.99  # a replay of no length has no logarithm
_REPLAY_TRUST = 0.03
_TRANSFER_TRUST = 0.10

LayoutRule = Callable[[Sequence[int]], list[Bucket]]
"""Caps in bytes -> buckets in index order, over gradients in ready order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What a layout would give, in ns, medians over the recorded steps."""

    buckets: int
    step_ns: int
    step_low_ns: int
    step_high_ns: int
    exposed_ns: int
    overlap_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A run as the predictions see it.

    Attributes:
        backwards: the synchronised backwards of the steady steps, on all ranks.
        step_ns: measured duration of those steps, median.
        network: what an all-reduce costs.
        beside: what compute and communication do to one another.
        slowdown_known, drag_known: whether the trace shows those two factors.
        replay_error: replayed over measured backward with the layout in use, less 1.
        scale: factor on all transfer times that brings the replay nearer to the measured backward.
        works: of each backward what `free_work` returns.
        unchanged: factor on transfer times -> replayed end of each backward with the layout in use; the factors are
            1 and those that bound the error band.
    """

    backwards: tuple[Recorded, ...]
    step_ns: int
    network: Network
    beside: Beside
    slowdown_known: bool
    drag_known: bool
    replay_error: float
    scale: float
    works: tuple[Float, ...]
    unchanged: dict[float, list[float]]


def build_model(backwards: Sequence[Recorded], step_ns: int, network: Network) -> Model:
    """The model of a run.

    Args:
        backwards: at least one.
        step_ns: measured duration of a step, median.
        network: fitted, from a calibration or from the run's own transfers.
    """
    slowdown, slowdown_known = slowdown_of(list(backwards))
    drag, drag_known = (1.0, False)
    if network.source == "calibration":
        drag, drag_known = drag_of(backwards, network)
    beside = Beside(slowdown=slowdown, drag=drag)
    unscaled = Model(
        backwards=tuple(backwards),
        step_ns=step_ns,
        network=network,
        beside=beside,
        slowdown_known=slowdown_known,
        drag_known=drag_known,
        replay_error=0.0,
        scale=1.0,
        works=tuple(free_work(recorded, slowdown) for recorded in backwards),
        unchanged={},
    )
    scaled = replace(unscaled, replay_error=_replay_error(unscaled, 1.0), scale=_find_scale(unscaled))
    error = max(network.error, _LEAST_ERROR)
    return replace(scaled, unchanged={f: _ends(scaled, f) for f in (1.0, 1 - error, 1 + error)})


def _ends(model: Model, factor: float) -> list[float]:
    """Replayed end of each backward with the layout in use."""
    return [
        _replay(model, place, recorded.buckets, model.network, None, factor).end_ns
        for place, recorded in enumerate(model.backwards)
    ]


def _replay_error(model: Model, scale: float) -> float:
    """Replayed over measured backward with the layout in use, less 1: median."""
    lengths = [max(r.end_ns - int(r.ready_ns[:, 0].min()), 1) for r in model.backwards]
    return float(np.median(np.array(_ends(model, scale)) / lengths)) - 1


def _find_scale(model: Model) -> float:
    """The factor on transfer times that brings the replay nearer to the measured backward.

    Where transfers hardly decide when the backward ends, a small error would ask for a large factor, so both weigh in:
    the replay is trusted to 3 %, transfer times to 10 %.
    """
    error = math.log1p(max(_replay_error(model, 1.0), _LEAST_REPLAY))
    more = math.log1p(max(_replay_error(model, 1 + _PROBE), _LEAST_REPLAY))
    effect = (more - error) / math.log1p(_PROBE)
    weight = effect / _REPLAY_TRUST**2
    return math.exp(-error * weight / (effect * weight + 1 / _TRANSFER_TRUST**2))


def drag_of(backwards: Sequence[Recorded], network: Network) -> tuple[float, bool]:
    """By what factor compute slows transfers down, against a calibration on an idle network; and whether that shows.

    Transfers that overlap one another share the network, so only their union and the sum of their work count. The
    part of the union after the last rank's compute runs at full speed: the work that it leaves was done beside compute.
    """
    beside_ns = work_beside_ns = 0.0
    for recorded in backwards:
        busy = recorded.transfers
        computed = recorded.computed_ns.max()
        inside = float(covered_ns(recorded.ready_ns[:1, 0] * 0, np.array([computed]), busy)[0])
        work = sum(network.transfer_ns(size) for size in recorded.sent_bytes.tolist())
        beside_ns += inside
        work_beside_ns += work - (busy.length_ns - inside)
    total = sum(recorded.transfers.length_ns for recorded in backwards)
    if beside_ns < _MIN_BESIDE * total or work_beside_ns <= 0:
        return 1.0, False
    return float(np.clip(beside_ns / work_beside_ns, 1.0, _MAX_DRAG)), True


def predict(
    model: Model,
    rule: LayoutRule,
    caps: Sequence[int],
    *,
    network: Network | None = None,
    sent_ratio: float | None = None,
) -> Predicted:
    """What caps would give.

    The change of the replayed backward is added to the measured step, so what the replay leaves out stays as it was
    measured. The band comes from the fit's deviation (at least 5 %, the same for both layouts), from how far the replay
    is off, and from how much the steps disagree.

    Args:
        model: the run.
        rule: how caps become buckets.
        caps: bytes; the last one holds for all further buckets.
        network: another network than the fitted one.
        sent_ratio: another ratio of bytes on the network to bytes of the gradients.
    """
    layout = rule(caps)
    chosen = network or model.network

    def changes(factor: float) -> tuple[dict[int, float], list[Replayed]]:
        by_step: dict[int, float] = defaultdict(float)
        found = []
        for place, (recorded, before_ns) in enumerate(
            zip(model.backwards, model.unchanged[factor], strict=True)
        ):
            after = _replay(model, place, layout, chosen, sent_ratio, factor)
            by_step[recorded.step] += after.end_ns - before_ns
            found.append(after)
        return by_step, found

    by_step, replayed = changes(1.0)
    change = float(np.median(list(by_step.values())))
    apart = [float(np.median(list(changes(f)[0].values()))) for f in model.unchanged if f != 1.0]
    scatter = float(np.median([abs(c - change) for c in by_step.values()]))
    slack = abs(model.replay_error * change) + scatter
    step = max(model.step_ns + change, 1.0)
    communication = float(np.median([r.communication_ns for r in replayed]))
    exposed = float(np.median([r.exposed_ns for r in replayed]))
    return Predicted(
        buckets=len(layout),
        step_ns=round(step),
        step_low_ns=round(max(model.step_ns + min(apart[0], apart[1], change) - slack, 1.0)),
        step_high_ns=round(model.step_ns + max(apart[0], apart[1], change) + slack),
        exposed_ns=round(exposed),
        overlap_ratio=max(1 - exposed / communication, 0.0) if communication > 0 else None,
    )


def _replay(
    model: Model,
    place: int,
    layout: Sequence[Bucket],
    network: Network,
    sent_ratio: float | None,
    factor: float,
) -> Replayed:
    scale = factor * model.scale

    def transfer_time(size_bytes: float) -> float:
        return scale * network.transfer_ns(size_bytes)

    return replay_layout(
        model.backwards[place],
        layout,
        transfer_time,
        model.beside,
        sent_ratio=sent_ratio,
        work=model.works[place],
    )


def usual_caps(total_bytes: int, current_mb: float | None) -> list[float]:
    """Caps worth trying for a model, in MiB: the usual ones up to the first that holds all of it, and the current one.

    >>> usual_caps(6 << 20, 4.0)
    [0.25, 0.5, 1, 2, 3, 4.0, 5, 8]
    """
    caps: list[float] = []
    for cap in _CAPS_MB:
        caps.append(cap)
        if cap * MIB >= total_bytes:
            break
    return sorted({*caps, *([current_mb] if current_mb is not None else [])})


def choose(predictions: Sequence[tuple[float, Predicted]], current_mb: float | None) -> float:
    """The cap to recommend: of those within 1 % of the least step time, the one nearest to the cap in use.

    Args:
        predictions: (cap in MiB, what it gives), at least one.
        current_mb: the cap in use, if known; without one the middle of the plateau is taken.
    """
    least = min(p.step_ns for _, p in predictions)
    plateau = [cap for cap, p in predictions if p.step_ns <= (1 + _PLATEAU) * least]
    if current_mb is None:
        return plateau[len(plateau) // 2]
    return min(plateau, key=lambda cap: (abs(math.log(cap / current_mb)), cap))

"""What to change about DDP's buckets: predictions from the run, or why they cannot be made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankscope.advise.ddp import (
    Model,
    Predicted,
    build_model,
    choose,
    predict,
    usual_caps,
)
from rankscope.advise.ddp_layout import MIB, caps_of
from rankscope.advise.network import Network, change_network, fit_network
from rankscope.correlate.device_events import NO_TIME
from rankscope.model.groups import name_ranks
from rankscope.model.manifest import Calibration
from rankscope.model.report import Advice, AlternativeRow, CapAdvice, NetworkRow, Prediction, StepRow
from rankscope.model.run import Run
from rankscope.pipeline.buckets import RunBuckets, size_bytes
from rankscope.pipeline.recorded_backwards import Backwards, collect_backwards
from rankscope.pipeline.together import Together
from rankscope.units import format_duration, format_ratio

_HIDDEN_SHARE = 0.01
_LEAST_GAIN = 0.01
_PLAIN = 0.99
_MIN_UNRECORDED = 5
_CALIBRATE = "record again with rankscope.Collector(..., calibrate=True), which measures the network once"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseOptions:
    """What to predict beside the usual caps.

    Attributes:
        caps_mb: values of bucket_cap_mb; () for the usual ones.
        cap_lists_mb: values of bucket_cap_mb_list.
        bandwidth_gbps, latency_us, world_size: another network; None as measured.
    """

    caps_mb: tuple[float, ...] = ()
    cap_lists_mb: tuple[tuple[float, ...], ...] = ()
    bandwidth_gbps: float | None = None
    latency_us: float | None = None
    world_size: int | None = None

    @property
    def changes_network(self) -> bool:
        """Whether another network is asked for."""
        return any(v is not None for v in (self.bandwidth_gbps, self.latency_us, self.world_size))


def advise_run(
    run: Run,
    buckets: RunBuckets,
    together: Together,
    steps: Sequence[StepRow],
    options: AdviseOptions | None = None,
) -> Advice | None:
    """Advice on the buckets of a run; None if no DDP bucket is in it.

    Args:
        run: the run.
        buckets: its DDP buckets.
        together: matching and clocks.
        steps: the report's steps, with durations.
        options: what to predict.
    """
    if not any(len(w.events) for w in buckets.windows):
        return None
    options = options or AdviseOptions()
    steady = sorted({s.step for s in steps if s.steady and s.step is not None})
    current = _current_cap(buckets)
    if not steady:
        return _decline(
            current, "every recorded step lies before DDP's rebuild of its buckets; record later steps"
        )
    if run.missing_ranks:
        are = "is" if len(run.missing_ranks) == 1 else "are"
        reason = (
            f"{name_ranks(run.missing_ranks)} {are} missing, so transfers cannot be told; record every rank"
        )
        return _decline(current, reason)
    backwards = collect_backwards(buckets, together.clocks, steady, run.ranks)
    if backwards.reason:
        return _decline(current, backwards.reason)
    network = _fit(run, buckets, backwards)
    if network is None:
        sizes = len({b for r in backwards.recorded for b in r.sent_bytes.tolist()})
        what = "one size" if sizes == 1 else "sizes too much alike"
        return _decline(current, f"buckets of {what} cannot tell latency from bandwidth; {_CALIBRATE}")
    step_ns = _step_ns(run, steps, steady)
    if step_ns is None:
        return _decline(
            current, "the steps have no duration; call step() on the profiler once per training step"
        )
    model = build_model(backwards.recorded, step_ns, network)
    return _advise(model, backwards, current, options)


def _advise(model: Model, backwards: Backwards, current: float | None, options: AdviseOptions) -> Advice:
    step_ns = model.step_ns
    facts = _facts(model)
    exposed = float(np.median([max(r.end_ns - int(r.computed_ns.max()), 0) for r in backwards.recorded]))
    if exposed < _HIDDEN_SHARE * step_ns and not options.changes_network:
        reason = (
            f"compute hides the buckets already: the last one ends {format_duration(round(exposed))} after the last "
            f"rank's compute, in a step of {format_duration(step_ns)}, so no cap can gain more (what other ranks spend "
            "in it is waiting for that rank)"
        )
        return replace(
            facts, reason=reason, bucket_cap_mb=CapAdvice(current=current, best=None, predictions=[])
        )
    network = change_network(
        model.network,
        bandwidth_gbps=options.bandwidth_gbps,
        latency_us=options.latency_us,
        world_size=options.world_size,
    )
    total = sum(g.size_bytes for g in backwards.recorded[0].gradients)
    caps = sorted({*(options.caps_mb or usual_caps(total, current)), *([current] if current else [])})
    predicted = [(cap, predict(model, backwards.lay_out, caps_of(cap), network=network)) for cap in caps]
    best = choose(predicted, current)
    before = _in_use(model, backwards, network)
    at_best = dict(predicted)[best]
    saving = before.step_ns - at_best.step_ns
    advice = replace(
        facts,
        bucket_cap_mb=CapAdvice(
            current=current, best=best, predictions=[_prediction(cap, p) for cap, p in predicted]
        ),
        alternatives=_alternatives(model, backwards, network, best, options),
    )
    if saving < _LEAST_GAIN * before.step_ns or at_best.buckets == before.buckets:
        reason = f"no other cap saves more than {format_ratio(_LEAST_GAIN)} of a step"
        kept = replace(advice.bucket_cap_mb, best=current)
        return replace(advice, reason=reason, bucket_cap_mb=kept)
    return replace(
        advice,
        verdict="change",
        reason=f"a step takes {format_duration(at_best.step_ns)} instead of {format_duration(before.step_ns)} "
        f"({format_duration(at_best.step_low_ns)} to {format_duration(at_best.step_high_ns)})",
        code=f"bucket_cap_mb={best:g}",
        saving_ns=saving,
        saving_ratio=saving / before.step_ns,
    )


def _in_use(model: Model, backwards: Backwards, network: Network) -> Predicted:
    """The layout in use, on the network that is asked for."""
    layout = list(backwards.recorded[0].buckets)
    return predict(model, lambda _caps: layout, (), network=network)


def _alternatives(
    model: Model, backwards: Backwards, network: Network, best_mb: float, options: AdviseOptions
) -> list[AlternativeRow]:
    """Caps per bucket, DDP's default, and gradients compressed to 16 bits."""
    rows = [
        _alternative(
            "a cap per bucket (torch >= 2.13)",
            f"bucket_cap_mb_list={[f'{c:g}' for c in caps]}".replace("'", ""),
            predict(model, backwards.lay_out, caps_of(None, bucket_cap_mb_list=caps), network=network),
        )
        for caps in options.cap_lists_mb
    ]
    default = predict(model, backwards.lay_out, caps_of(None), network=network)
    rows.append(_alternative("DDP's default: 25 MiB, the first bucket 1 MiB", "bucket_cap_mb=None", default))
    rows += _as_views(model, backwards, network)
    gradients = backwards.recorded[0].gradients
    is_plain = all(r.sent_ratio > _PLAIN for r in model.backwards)
    if is_plain and {g.dtype for g in gradients} == {"float32"}:
        half = predict(model, backwards.lay_out, caps_of(best_mb), network=network, sent_ratio=0.5)
        code = "model.register_comm_hook(None, default_hooks.bf16_compress_hook)"
        rows.append(_alternative(f"16-bit gradients on the network, bucket_cap_mb={best_mb:g}", code, half))
    return rows


def _as_views(model: Model, backwards: Backwards, network: Network) -> list[AlternativeRow]:
    """Gradients as views of the buckets: what copying them back takes now, after the last bucket has arrived."""
    copied = [float(r.copied_ns.mean()) for r in model.backwards]
    saved = round(float(np.median(copied)))
    facts = backwards.facts
    if saved == 0 or (facts is not None and facts.gradient_as_bucket_view):
        return []
    now = _in_use(model, backwards, network)
    scatter = round(float(np.median(np.abs(np.array(copied) - saved))))
    step = max(now.step_ns - saved, 1)
    views = replace(
        now,
        step_ns=step,
        step_low_ns=max(min(now.step_low_ns - saved, step) - scatter, 1),
        step_high_ns=max(now.step_high_ns - saved, step) + scatter,
    )
    change = f"no copies back from the buckets ({format_duration(saved)} a step)"
    return [_alternative(change, "gradient_as_bucket_view=True", views)]


def _alternative(change: str, code: str, predicted: Predicted) -> AlternativeRow:
    return AlternativeRow(
        change=change,
        code=code,
        step_ns=predicted.step_ns,
        exposed_ns=predicted.exposed_ns,
        overlap_ratio=predicted.overlap_ratio,
        step_low_ns=predicted.step_low_ns,
        step_high_ns=predicted.step_high_ns,
        buckets=predicted.buckets,
    )


def _prediction(cap: float, predicted: Predicted) -> Prediction:
    return Prediction(
        bucket_cap_mb=cap,
        step_ns=predicted.step_ns,
        exposed_ns=predicted.exposed_ns,
        overlap_ratio=predicted.overlap_ratio,
        step_low_ns=predicted.step_low_ns,
        step_high_ns=predicted.step_high_ns,
        buckets=predicted.buckets,
    )


def _step_ns(run: Run, steps: Sequence[StepRow], steady: Sequence[int]) -> int | None:
    """Typical duration of a step: of those that were not recorded, where the collector timed some, else of the steady.

    Recording slows a step; what is predicted is the change, and this is what it changes.
    """
    unrecorded = [
        time.duration_ns
        for window in run.windows
        if window.rank == run.ranks[0] and window.manifest is not None
        for time in window.manifest.steps
        if not time.recorded and time.step >= steady[0]
    ]
    if len(unrecorded) >= _MIN_UNRECORDED:
        return int(np.median(unrecorded))
    durations = [s.duration_ns for s in steps if s.step in steady and s.duration_ns]
    return int(np.median(durations)) if durations else None


def _facts(model: Model) -> Advice:
    """What the predictions rest on."""
    network = model.network
    return Advice(
        bucket_cap_mb=CapAdvice(current=None, best=None, predictions=[]),
        step_ns=model.step_ns,
        replay_error_ratio=model.replay_error,
        compute_slowdown=model.beside.slowdown if model.slowdown_known else None,
        transfer_slowdown=model.beside.drag if model.drag_known else None,
        network=NetworkRow(
            source=network.source,
            sizes=network.sizes,
            latency_ns=round(network.latency_ns),
            bus_bandwidth_gbps=network.bus_bandwidth_gbps,
            deviation_ratio=network.error,
            confidence=network.confidence,
            pieces=len(network.pieces),
        ),
    )


def _decline(current: float | None, reason: str) -> Advice:
    caps = CapAdvice(current=current, best=None, predictions=[])
    return Advice(bucket_cap_mb=caps, verdict="declined", reason=reason)


def _current_cap(buckets: RunBuckets) -> float | None:
    """The cap in use, in MiB, where the collector recorded one and it is the same for all buckets."""
    for window in buckets.windows:
        manifest = window.result.events.window.manifest
        for facts in manifest.ddp if manifest is not None else ():
            if facts.bucket_cap_bytes is not None and not facts.bucket_caps_bytes:
                return facts.bucket_cap_bytes / MIB
    return None


def _fit(run: Run, buckets: RunBuckets, backwards: Backwards) -> Network | None:
    """The network from a calibration on the buckets' ranks, else from the steady buckets themselves."""
    ranks = backwards.recorded[0].ranks
    for window in run.windows:
        calibration = window.manifest.calibration if window.manifest is not None else None
        if calibration is not None and len(calibration.ranks) == ranks:
            fitted = fit_network(_points(calibration), ranks=ranks, source="calibration")
            if fitted is not None:
                return fitted
    steps = {r.step for r in backwards.recorded}
    transfers: dict[int, tuple[int, int]] = {}
    for bucket_window in buckets.windows:
        for i, collective in enumerate(bucket_window.collective.tolist()):
            transfer = int(bucket_window.transfer_ns[i])
            elements = bucket_window.sent[i].elements
            if transfer != NO_TIME and elements and int(bucket_window.events.step[i]) in steps:
                transfers[collective] = (size_bytes(bucket_window.sent[i]) or 0, transfer)
    return fit_network(transfers.values(), ranks=ranks, source="run")


def _points(calibration: Calibration) -> list[tuple[int, float]]:
    return [(p.size_bytes, float(d)) for p in calibration.points for d in p.durations_ns]

"""The table of predictions, and what to change."""

from __future__ import annotations

from collections.abc import Iterator

from rankscope.model.report import Advice, CapAdvice, Prediction, Report
from rankscope.renderers.escape import MESSAGE_LIMIT, make_inert
from rankscope.renderers.tables import Cell, Column, Table, duration_cell, finish_table, ratio_cell
from rankscope.units import format_duration, format_ratio

_COLUMNS = (
    Column(label="bucket_cap_mb", short="Cap", term="Bucket cap"),
    Column(label="Which", numeric=False),
    Column(label="Predicted step", short="Step", term="Predicted"),
    Column(label="From", term="Predicted"),
    Column(label="To", term="Predicted"),
    Column(label="Against now", wide=True),
    Column(label="Exposed", term="Exposed"),
    Column(label="Hidden", term="Hidden"),
)

_NO_CURRENT = "the cap in use is not known, or not among the predictions"


def find_prediction(cap: CapAdvice, value: float | None) -> Prediction | None:
    """The prediction for a cap; None if there is none."""
    return next((p for p in cap.predictions if value is not None and p.bucket_cap_mb == value), None)


def build_advice_table(report: Report, limit: int) -> Table:
    """One row per cap, the smallest first."""
    cap = None if report.advice is None else report.advice.bucket_cap_mb
    predictions = [] if cap is None else sorted(cap.predictions, key=lambda p: p.bucket_cap_mb)[:limit]
    now = None if cap is None else find_prediction(cap, cap.current)
    rows = [_cells(prediction, cap, now) for prediction in predictions if cap is not None]
    notes = ["Predicted from this run's own timing; from and to enclose the model's error."] if rows else []
    best = None if cap is None else find_prediction(cap, cap.best)
    if best is not None and any(prediction.step_ns < best.step_ns for prediction in predictions):
        notes.append("Best: of those that are about as short, the one nearest to the cap in use.")
    return finish_table("Predictions", _COLUMNS, rows, notes)


def _cells(prediction: Prediction, cap: CapAdvice, now: Prediction | None) -> list[Cell]:
    marks = [
        word
        for word, value in (("in use", cap.current), ("best", cap.best))
        if value == prediction.bucket_cap_mb
    ]
    change = None if now is None or not now.step_ns else prediction.step_ns / now.step_ns - 1
    against = (
        Cell(text="n/a", reason=_NO_CURRENT)
        if change is None
        else Cell(text=f"{100 * change:+.1f} %", value=change)
    )
    return [
        Cell(text=f"{prediction.bucket_cap_mb:g}", value=prediction.bucket_cap_mb),
        Cell(text=", ".join(marks)),
        duration_cell(prediction.step_ns),
        duration_cell(prediction.step_low_ns),
        duration_cell(prediction.step_high_ns),
        against,
        duration_cell(prediction.exposed_ns),
        ratio_cell(prediction.overlap_ratio, "the prediction holds no communication"),
    ]


def write_advice(report: Report) -> tuple[str, ...]:
    """What the advice comes down to; inert sentences, () without advice."""
    if report.advice is None:
        return ()
    sentences = [*_say_change(report.advice)] if report.advice.verdict == "change" else []
    if report.advice.reason and not sentences:
        sentences.append(f"{report.advice.reason[0].upper()}{report.advice.reason[1:].rstrip('.')}.")
    return tuple(make_inert(sentence, MESSAGE_LIMIT) for sentence in sentences)


def _say_change(advice: Advice) -> Iterator[str]:
    cap = advice.bucket_cap_mb
    best, now = find_prediction(cap, cap.best), find_prediction(cap, cap.current)
    if cap.best is None or best is None:
        return
    step = f"a step is predicted to take {format_duration(best.step_ns)} ({_range(best)})"
    if now is None:
        gain = "" if advice.saving_ns is None else f": {format_duration(advice.saving_ns)} less than now"
        yield f"With bucket_cap_mb={cap.best:g} {step}{gain}."
        return
    saved = now.step_ns - best.step_ns
    share = f", {format_ratio(saved / now.step_ns)}" if now.step_ns else ""
    yield (
        f"With bucket_cap_mb={cap.best:g} instead of {cap.current:g} {step} instead of {format_duration(now.step_ns)}: "
        f"{format_duration(saved)}{share} less."
    )
    if best.step_high_ns >= now.step_low_ns:
        yield "The two ranges overlap, so the gain may be smaller than the model's error: measure it."


def _range(prediction: Prediction) -> str:
    return f"{format_duration(prediction.step_low_ns)} to {format_duration(prediction.step_high_ns)}"


def write_code(report: Report) -> str | None:
    """The line of code to change; None if there is nothing to change."""
    advice = report.advice
    if advice is None or advice.verdict != "change" or not advice.code:
        return None
    return make_inert(f"model = DistributedDataParallel(model, {advice.code})", MESSAGE_LIMIT)

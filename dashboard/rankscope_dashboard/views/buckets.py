"""DDP buckets: when they are ready and done, how fast they move, and what another cap would give."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from rankscope.renderers.advice_tables import build_advice_table, write_advice, write_code
from rankscope.renderers.bucket_charts import build_bucket_chart, build_cap_chart
from rankscope.renderers.bucket_tables import (
    build_bucket_table,
    build_layout_table,
    describe_layout,
    pick_bucket_step,
)
from rankscope_dashboard.figures.bandwidth import build_bandwidth_chart
from rankscope_dashboard.load import load_timeline
from rankscope_dashboard.show import (
    safe,
    show_figure,
    show_heading,
    show_notes,
    show_nothing,
    show_table,
    show_title,
)
from rankscope_dashboard.visit import Visit
from rankscope_dashboard.words import BUCKETS

_ROWS = 1_000


def show(visit: Visit) -> None:
    """Draw the buckets of a run."""
    show_title(BUCKETS)
    _show_gantt(visit)
    _show_bandwidth(visit)
    _show_advice(visit)
    layout = build_layout_table(visit.report, _ROWS)
    if layout.rows:
        show_heading(layout.title, "Parameters in the order in which their gradients become ready.")
        show_table(layout, key="layout")


def _show_gantt(visit: Visit) -> None:
    steps = sorted({row.step for row in visit.report.buckets if row.step is not None})
    if not steps:
        show_nothing(
            "No DDP buckets",
            "No gradient all-reduce of DistributedDataParallel was found: the model is not wrapped in it, or the "
            "recording holds no backward pass.",
            "Record at least one whole step. rankscope's Collector also names the parameters in each bucket: "
            "collector.watch(model).",
        )
        return
    usual = pick_bucket_step(visit.report)[0].step
    step = st.selectbox(
        "Step", steps, index=steps.index(usual) if usual in steps else 0, key="bucket-step", width=180
    )
    # The store's timeline is of the whole run: it holds this step too, and the picture cuts it out.
    timeline = replace(load_timeline(visit.run), step=step)
    figure = build_bucket_chart(visit.report, timeline)
    if figure is None:
        show_nothing("No buckets in this step", "Pick another step.")
        return
    rank = pick_bucket_step(visit.report, step)[0].rank
    show_heading(
        f"Step {step} on rank {rank}",
        "The rank with the most exposed time in buckets. A bar that goes on after compute ends is exposed; a tick "
        "is the moment when all gradients of the bucket are ready.",
    )
    show_figure(figure, key="gantt", alt="Buckets over time, beside the compute of the backward pass")
    show_notes(describe_layout(visit.report))
    show_table(build_bucket_table(visit.report, _ROWS), key="buckets")


def _show_bandwidth(visit: Visit) -> None:
    figure = build_bandwidth_chart(visit.report)
    show_heading(
        "Bandwidth by size",
        "Each mark is an operation by its size and the bandwidth that its links carried while transferring. Small ones "
        "left of the bend pay for latency: merge them. The line is what the ring can reach.",
    )
    if figure is None:
        show_nothing(
            "Bandwidth is not known",
            "It needs operations of known size that were found on all ranks.",
            "Record with record_shapes=True, and give the traces of all ranks.",
        )
        return
    show_figure(figure, key="bandwidth", alt="Bus bandwidth against size")


def _show_advice(visit: Visit) -> None:
    show_heading("What another bucket_cap_mb would give")
    sentences = write_advice(visit.report)
    figure = build_cap_chart(visit.report)
    if not sentences and figure is None:
        reason = visit.report.undefined.get("advice") or "the report holds no prediction for other caps"
        show_nothing("No advice", f"{reason[0].upper()}{reason[1:]}.")
        return
    st.html(f'<div class="rs-finding">{"".join(f"<p>{safe(sentence)}</p>" for sentence in sentences)}</div>')
    code = write_code(visit.report)
    if code is not None:
        st.code(code, language="python")
    if figure is not None:
        show_figure(figure, key="cap", alt="Predicted step time by bucket_cap_mb")
        show_table(build_advice_table(visit.report, _ROWS), key="advice")

"""The advice alone, as `rankscope advise` prints it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from rankscope.model.json_text import write_json
from rankscope.model.report import Advice, Report
from rankscope.renderers.advice_tables import build_advice_table, write_advice, write_code
from rankscope.renderers.console_charts import draw_caps
from rankscope.renderers.console_drawing import INDENT, draw_lines, draw_table, print_sections
from rankscope.renderers.escape import MESSAGE_LIMIT, escape_markdown, make_inert
from rankscope.renderers.markdown_tables import write_table
from rankscope.renderers.tables import Column, Table, duration_cell, finish_table, ratio_cell, text_cell
from rankscope.units import format_duration, format_ratio

_ALL = 1_000
_ALTERNATIVES = (
    Column(label="Another change", numeric=False),
    Column(label="Predicted step", term="Predicted"),
    Column(label="From", term="Predicted"),
    Column(label="To", term="Predicted"),
    Column(label="Exposed", term="Exposed"),
    Column(label="Hidden", term="Hidden"),
    Column(label="Code", numeric=False, wide=True),
)
_NO_COMMUNICATION = "the prediction holds no communication"


def render_advice_console(report: Report, *, width: int = 100, color: bool = False) -> str:
    """The advice as text for a terminal, ending with a line break."""
    title = Text.assemble(("rankscope advise", "bold"), "  ", make_inert(report.run.name))
    sections: list[RenderableType] = [title, draw_lines(write_advice(report))]
    code = write_code(report)
    if code is not None:
        sections.append(Padding(Text(code, style="bold"), (0, 0, 0, INDENT)))
    sections += [
        draw_caps(report, width),
        draw_table(build_advice_table(report, _ALL), width),
        draw_table(build_alternative_table(report), width),
        draw_lines(explain_advice(report.advice)),
    ]
    return print_sections(sections, width=width, color=color)


def render_advice_markdown(report: Report) -> str:
    """The advice as Markdown, ending with a line break."""
    blocks = [f"## rankscope advise: {escape_markdown(report.run.name)}"]
    blocks += [escape_markdown(line, MESSAGE_LIMIT) for line in write_advice(report)]
    code = write_code(report)
    if code is not None:
        blocks.append(f"```python\n{code}\n```")
    blocks += [*write_table(build_advice_table(report, _ALL)), *write_table(build_alternative_table(report))]
    blocks += [escape_markdown(line, MESSAGE_LIMIT) for line in explain_advice(report.advice)]
    return "\n\n".join(blocks) + "\n"


def render_advice_json(report: Report) -> str:
    """Strict JSON: `run` (its name), `advice` as in the report, ending with a line break."""
    return write_json({"run": report.run.name, "advice": report.advice}, indent=2) + "\n"


def build_alternative_table(report: Report) -> Table:
    """One row per change other than `bucket_cap_mb`."""
    rows = [
        [
            text_cell(row.change),
            duration_cell(row.step_ns),
            duration_cell(row.step_low_ns),
            duration_cell(row.step_high_ns),
            duration_cell(row.exposed_ns),
            ratio_cell(row.overlap_ratio, _NO_COMMUNICATION),
            text_cell(row.code),
        ]
        for row in (report.advice.alternatives if report.advice is not None else ())
    ]
    return finish_table("Other changes", _ALTERNATIVES, rows)


def explain_advice(advice: Advice | None) -> tuple[str, ...]:
    """What the predictions rest on, one sentence per item; () where there are none."""
    if advice is None or advice.network is None:
        return ()
    network = advice.network
    source = {
        "calibration": f"a calibration of {network.sizes} sizes",
        "run": f"the run's own buckets, {network.sizes} sizes",
        "given": "what was given on the command line",
    }[network.source]
    bandwidth = (
        "" if network.bus_bandwidth_gbps is None else f", {network.bus_bandwidth_gbps:.3g} GB/s on the bus"
    )
    sentences = [
        f"Network from {source}: latency {format_duration(network.latency_ns)}{bandwidth}; single transfers deviate by "
        f"{format_ratio(network.deviation_ratio)} (confidence {network.confidence})."
    ]
    if advice.replay_error_ratio is not None:
        sentences.append(
            f"Replayed with the layout in use, the backward is {100 * advice.replay_error_ratio:+.1f} % off."
        )
    factors = [
        f"{what} {factor:.2f} times as long beside {beside}"
        for what, factor, beside in (
            ("compute takes", advice.compute_slowdown, "a transfer"),
            ("a transfer takes", advice.transfer_slowdown, "compute"),
        )
        if factor is not None and factor > 1
    ]
    return (*sentences, *([f"In this run {' and '.join(factors)}."] if factors else []))

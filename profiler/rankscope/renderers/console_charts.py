"""Charts of characters: a bar per rank, the heat map of caused wait, arrivals, buckets and predictions."""

from __future__ import annotations

from itertools import pairwise

from rich.console import Group, RenderableType
from rich.text import Text

from rankscope.model.report import RankRow, Report
from rankscope.renderers.advice_tables import find_prediction
from rankscope.renderers.arrivals import Arrivals, describe_arrivals, list_arrivals
from rankscope.renderers.bucket_tables import pick_bucket_step, split_bucket
from rankscope.renderers.console_drawing import NOTHING, draw_notes, draw_text, draw_title
from rankscope.renderers.palette import ANNOTATION, EXPOSED, HIDDEN, IDLE, PARTS, WAITING, split_window
from rankscope.renderers.report_tables import name_rank, pick_ranks
from rankscope.renderers.wait_matrix import WaitMatrix, build_wait_matrix
from rankscope.units import format_duration

_WIDE = 100
_MOST_COLUMNS = 100
_SHADES = "·░▒▓█"
"""From nothing to the full value; what is unknown is a blank."""

_BUCKET_PARTS = ((IDLE, "·"), (ANNOTATION, "░"), (WAITING, "▒"), (HIDDEN, "█"))
"""Of a bucket's time, in the order of `split_bucket`."""

_SHADE_STYLES = ("dim", "color(223)", "color(216)", "color(209)", "color(166)")


def draw_window_bars(report: Report, width: int, ranks: int) -> RenderableType:
    """A bar per rank of what its window is made of."""
    kept, _ = pick_ranks(report, ranks)
    rows = [row for row in kept if row.window_ns]
    if not rows:
        return NOTHING
    label_width = max(len(name_rank(report, row)) for row in rows) + len("rank ")
    longest = max(row.window_ns or 0 for row in rows)
    space = max(10, min(width - label_width - 4, _MOST_COLUMNS))
    lines: list[RenderableType] = []
    for row in rows:
        label = f"  rank {name_rank(report, row)}".ljust(label_width + 3)
        lines.append(Text(label).append_text(_draw_bar(row, space * (row.window_ns or 0) / longest)))
    legend = Text("  ")
    for part in PARTS:
        label = part.label if width >= _WIDE else part.label.replace("communication", "comm.")
        legend.append(part.block, style=part.light).append(f" {label}   ")
    return Group(draw_title("Where the window goes"), *lines, legend)


def _draw_bar(row: RankRow, length: float) -> Text:
    bar = Text()
    reached_ns, drawn = 0, 0
    for part, ns in split_window(row):
        # Rounding the running sum keeps the bar's length right whatever the parts are.
        reached_ns += ns
        reach = round(length * reached_ns / row.window_ns) if row.window_ns else 0
        bar.append(part.block * (reach - drawn), style=part.light)
        drawn = max(drawn, reach)
    return bar


def draw_heat_map(report: Report, width: int, ranks: int) -> RenderableType:
    """Ranks down, steps across: what each rank cost each step."""
    label_width = max((len(str(rank)) for rank in report.run.ranks), default=1) + len("  rank  ")
    matrix = build_wait_matrix(
        report, ranks=ranks, steps=max(4, min(width - label_width - 12, _MOST_COLUMNS))
    )
    if matrix is None:
        return NOTHING
    columns = len(matrix.steps)
    cell = max(1, min(4, (width - label_width - 12) // columns))
    lines: list[RenderableType] = [_draw_step_axis(matrix, label_width, cell)]
    for rank, values in zip(matrix.ranks, matrix.values, strict=True):
        line = Text(f"  rank {rank}".ljust(label_width))
        for value in values:
            shade = _choose_shade(value, matrix.full_ns)
            block, style = (" ", "") if shade is None else (_SHADES[shade], _SHADE_STYLES[shade])
            line.append(block * cell, style=style)
        known = [value for value in values if value is not None]
        line.append(f"  {format_duration(max(known))}" if known else "")
        lines.append(line)
    legend = f"· nothing, {_SHADES[-1]} {format_duration(matrix.full_ns)}, blank: unknown; at the right the worst step"
    return Group(draw_title(matrix.title), *lines, *draw_notes([legend, *matrix.notes]))


def _choose_shade(value: int | None, full_ns: int) -> int | None:
    """Index of the shade: only nothing, to a hundredth of the full value, is shown as nothing."""
    if value is None:
        return None
    share = value / full_ns
    if share < 1 / 100:
        return 0
    return 1 + min(int(share * (len(_SHADES) - 1)), len(_SHADES) - 2)


def _draw_step_axis(matrix: WaitMatrix, label_width: int, cell: int) -> Text:
    """Labels of the columns, as many as have room."""
    axis = "  step".ljust(label_width)
    for index, name in enumerate(matrix.steps):
        start = label_width + index * cell
        if len(axis) <= start:
            axis = axis.ljust(start) + name + " "
    return Text(axis.rstrip(), style="dim")


def draw_arrivals(report: Report, width: int, collectives: int, ranks: int) -> RenderableType:
    """Of each of the latest collectives, a line per rank from its arrival to the last one."""
    listed = list_arrivals(report, collectives=collectives, ranks=ranks)
    if not listed:
        return NOTHING
    lines: list[RenderableType] = []
    for arrivals in listed:
        lines.append(draw_text(f"{arrivals.name}: {describe_arrivals(arrivals)}"))
        lines.extend(_draw_strip(arrivals, width))
    note = "▒ the rank is there and waits, ▌ the last rank arrives. Each collective has its own scale."
    return Group(draw_title("Who arrived when"), *lines, *draw_notes([note]))


def _draw_strip(arrivals: Arrivals, width: int) -> list[RenderableType]:
    label_width = max(len(str(arrival.rank)) for arrival in arrivals.ranks) + len("    rank  ")
    space = max(10, min(width - label_width - 18, 72))
    lines: list[RenderableType] = []
    for arrival in arrivals.ranks:
        waiting = round(space * arrival.before_last_ns / max(arrivals.span_ns, 1))
        line = Text(f"    rank {arrival.rank}".ljust(label_width))
        line.append(" " * (space - waiting))
        line.append("▒" * waiting, style=WAITING.light)
        is_last = arrival.before_last_ns == 0
        line.append("▌", style=EXPOSED.light)
        line.append(" last" if is_last else f" waits {format_duration(arrival.before_last_ns)}", style="dim")
        lines.append(line)
    if arrivals.left_out:
        lines.append(Text(f"    ({arrivals.left_out:,} more ranks between them)", style="dim"))
    return lines


def draw_bucket_strip(report: Report, width: int) -> RenderableType:
    """The buckets of one step on one rank over time."""
    rows = pick_bucket_step(report)
    if not rows:
        return NOTHING
    begin, end = min(split_bucket(row)[0] for row in rows), max(row.finished_ns for row in rows)
    label_width = max(len(str(row.index)) for row in rows) + len("  bucket  ")
    space = max(10, min(width - label_width - 2, _MOST_COLUMNS))

    def column(time_ns: int) -> int:
        return min(round(space * (time_ns - begin) / max(end - begin, 1)), space)

    lines: list[RenderableType] = []
    for row in rows:
        line = Text(f"  bucket {row.index}".ljust(label_width))
        columns = [column(time_ns) for time_ns in split_bucket(row)]
        line.append(" " * columns[0])
        for (part, block), (first, last) in zip(_BUCKET_PARTS, pairwise(columns), strict=True):
            line.append(block * (last - first), style=part.light)
        lines.append(line)
    step, rank = rows[0].step, rows[0].rank
    legend = (
        "From when its gradients are ready: · waits for its host, ░ for its turn, ▒ for other ranks, █ transfer. The "
        f"lines are {format_duration(end - begin)} long."
    )
    return Group(draw_title(f"Buckets of step {step} on rank {rank}"), *lines, *draw_notes([legend]))


def draw_caps(report: Report, width: int) -> RenderableType:
    """A bar per cap: the predicted step time above the best one, with the model's range."""
    cap = None if report.advice is None else report.advice.bucket_cap_mb
    if cap is None or len(cap.predictions) < 2:
        return NOTHING
    predictions = sorted(cap.predictions, key=lambda prediction: prediction.bucket_cap_mb)
    low = min(p.step_low_ns for p in predictions)
    high = max(p.step_high_ns for p in predictions)
    space = max(10, min(width - 35, _MOST_COLUMNS))

    def column(step_ns: int) -> int:
        return round((space - 1) * (step_ns - low) / max(high - low, 1))

    lines: list[RenderableType] = []
    best = find_prediction(cap, cap.best)
    for prediction in predictions:
        band = [" "] * space
        first, last = column(prediction.step_low_ns), column(prediction.step_high_ns)
        band[first : last + 1] = "─" * (last + 1 - first)
        band[column(prediction.step_ns)] = "●"
        mark = " best" if prediction is best else " in use" if prediction.bucket_cap_mb == cap.current else ""
        label = f"  {prediction.bucket_cap_mb:>8g} MiB  {format_duration(prediction.step_ns):>8}  "
        lines.append(Text(label).append("".join(band).rstrip()).append(mark, style="bold"))
    scale = f"from {format_duration(low)} at the left to {format_duration(high)} at the right; ─ the model's range"
    return Group(draw_title("Predicted step time by bucket_cap_mb"), *lines, *draw_notes([scale]))

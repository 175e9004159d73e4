"""The value of each figure, scope by scope, read from a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rankscope.gate.bucket_figures import measure_buckets
from rankscope.gate.row import Row, Value, mean
from rankscope.model.report import GroupRow, Measures, RankRow, Report, StepRow


def measure_scope(report: Report, scope: str) -> list[Row]:
    """The rows of a scope; [] where the report holds none.

    Args:
        report: the report.
        scope: "run", "steady", "outside", "step", "rank", "group" or "bucket".
    """
    return _MEASURES[scope](report)


def why_empty(report: Report, scope: str) -> str:
    """Why a scope holds no rows."""
    if scope == "bucket":
        return report.undefined.get("buckets") or "no DDP buckets were found in the traces"
    if scope in ("steady", "step"):
        return report.undefined.get("totals.steady") or "the report holds no steady step"
    if scope == "outside":
        return report.undefined.get("totals.outside_steps") or "nothing was launched outside steps"
    return "the report holds no communication" if scope == "group" else "the report holds no rank"


def measure_steps(report: Report, *, steady_only: bool = True) -> list[Row]:
    """One row per recorded step, in order of window and number, over all ranks that recorded it."""
    found: dict[tuple[int, int], list[StepRow]] = {}
    for row in report.steps:
        if row.step is not None and (row.steady or not steady_only):
            found.setdefault((row.window, row.step), []).append(row)
    several = len({window for window, _ in found}) > 1
    return [
        Row(
            place=f"step {step} of window {window}" if several else f"step {step}",
            keys={"step": step},
            values=_step_values(rows),
            reasons={
                "overlap_ratio": "no communication was launched in this step",
                "duration": "the step has no duration",
                "exposed_communication_ratio": "the step has no duration",
            },
        )
        for (window, step), rows in sorted(found.items())
    ]


def _step_values(rows: Sequence[StepRow]) -> dict[str, Value]:
    values = _mean_measures(rows)
    duration = mean([row.duration_ns for row in rows])
    exposed = values["exposed_communication"]
    return {
        **values,
        "duration": duration,
        "exposed_communication_ratio": exposed / duration if duration and exposed is not None else None,
    }


def _mean_measures(rows: Sequence[Measures]) -> dict[str, Value]:
    communication = sum(row.communication_ns for row in rows)
    overlap = sum(row.overlap_ns for row in rows)
    return {
        "overlap_ratio": overlap / communication if communication else None,
        "exposed_communication": mean([row.exposed_communication_ns for row in rows]),
        "communication": mean([row.communication_ns for row in rows]),
        "compute": mean([row.compute_ns for row in rows]),
        "exposed_memory": mean([row.exposed_memory_ns for row in rows]),
    }


def _measure_run(report: Report) -> list[Row]:
    if not report.ranks:
        return []
    undefined = report.undefined
    no_overlap = undefined.get("totals.run.overlap_ratio", "no communication kernels")
    no_wait = undefined.get("ranks[*].exposed_wait_ns", "waiting cannot be told from transfer")
    straggler, why_straggler = _straggler_values(report)
    values: dict[str, Value] = {
        **_rank_values(report.ranks),
        **straggler,
        "bus_bandwidth": min(
            (g.bus_bandwidth_gbps for g in report.groups if g.bus_bandwidth_gbps is not None), default=None
        ),
        "missing_ranks": len(report.run.missing_ranks) if report.run.world_size is not None else None,
        "coverage_matched_ratio": report.coverage.matched,
        "coverage_sized_ratio": report.coverage.sized,
        "coverage_named_ratio": report.coverage.named,
        "coverage_in_steps_ratio": report.coverage.in_steps,
    }
    reasons = {
        "overlap_ratio": no_overlap,
        "exposed_wait": no_wait,
        "exposed_transfer": no_wait,
        "bus_bandwidth": "no operation was found on all its ranks with its size known",
        "missing_ranks": "no file says how many ranks the job has",
        **{f"coverage_{name}_ratio": no_overlap for name in ("matched", "sized", "named", "in_steps")},
        **dict.fromkeys(straggler, why_straggler),
    }
    return [Row(place="whole run", values=values, reasons=reasons)]


def _rank_values(rows: Sequence[RankRow]) -> dict[str, Value]:
    window, idle = mean([r.window_ns for r in rows]), mean([r.idle_ns for r in rows])
    values = _mean_measures(rows)
    exposed = values["exposed_communication"]
    return {
        **values,
        "exposed_wait": mean([r.exposed_wait_ns for r in rows]),
        "exposed_transfer": mean([r.exposed_transfer_ns for r in rows]),
        "window": window,
        "idle": idle,
        "idle_ratio": idle / window if window and idle is not None else None,
        "exposed_communication_ratio": exposed / window if window and exposed is not None else None,
    }


def _straggler_values(report: Report) -> tuple[dict[str, Value], str]:
    """Cost, its share of the step and the slowdown; nothing if nobody is late. And why there is no value."""
    names = ("straggler_cost", "straggler_cost_ratio", "straggler_slowdown")
    straggler = report.straggler
    if straggler is None:
        return dict.fromkeys(names), "the report judges no straggler"
    if straggler.verdict == "none":
        return {"straggler_cost": 0, "straggler_cost_ratio": 0.0, "straggler_slowdown": 1.0}, ""
    if straggler.verdict == "inconclusive":
        return dict.fromkeys(names), f"whether a rank is late cannot be told: {straggler.reason}"
    cost = straggler.cost_ns_per_step
    step = mean([row.duration_ns for row in report.steps if row.steady])
    return {
        "straggler_cost": cost,
        "straggler_cost_ratio": cost / step if cost is not None and step else None,
        "straggler_slowdown": straggler.slowdown,
    }, report.undefined.get("straggler.slowdown", "the replay gives no cost, or the steps have no duration")


def _measure_steady(report: Report) -> list[Row]:
    rows = [row for row in report.steps if row.step is not None and row.steady]
    if not rows or report.totals.steady is None:
        return []
    reasons = {
        "overlap_ratio": "no communication in the steady steps",
        "duration": "a steady step has no duration",
        "exposed_communication_ratio": "a steady step has no duration",
    }
    return [Row(place="steady steps", values=_step_values(rows), reasons=reasons)]


def _measure_outside(report: Report) -> list[Row]:
    outside = report.totals.outside_steps
    if outside is None or not report.ranks:
        return []
    number = len(report.ranks)
    values: dict[str, Value] = {
        "overlap_ratio": outside.overlap_ratio,
        "exposed_communication": outside.exposed_communication_ns / number,
        "communication": outside.communication_ns / number,
        "compute": outside.compute_ns / number,
        "exposed_memory": outside.exposed_memory_ns / number,
    }
    return [
        Row(place="outside steps", values=values, reasons={"overlap_ratio": "no communication outside steps"})
    ]


def _measure_ranks(report: Report) -> list[Row]:
    several = len({row.rank for row in report.ranks}) < len(report.ranks)
    costs = {r.rank: r.cost_ns_per_step for r in report.straggler.by_rank} if report.straggler else {}
    no_wait = "waiting cannot be told from transfer"
    return [
        Row(
            place=f"rank {row.rank} on device {row.device}" if several else f"rank {row.rank}",
            keys={"rank": row.rank},
            values={**_rank_values([row]), "straggler_cost": costs.get(row.rank)},
            reasons={
                "overlap_ratio": "no communication kernels",
                "exposed_wait": no_wait,
                "exposed_transfer": no_wait,
                "straggler_cost": "the steps of this rank were not replayed",
            },
        )
        for row in report.ranks
    ]


def _measure_groups(report: Report) -> list[Row]:
    return [
        Row(
            place=f"{row.op} in {row.group}",
            keys={"group": row.group, "op": row.op},
            values=_group_values(row, report),
            reasons={
                figure: report.undefined.get(f"groups[group={row.group},op={row.op}].{key}", "unknown")
                for figure, key in (
                    ("overlap_ratio", "overlap_ratio"),
                    ("bus_bandwidth", "bus_bandwidth_gbps"),
                    ("transfer_p50", "transfer_ns"),
                    ("transfer_p95", "transfer_ns"),
                    ("size", "size_bytes"),
                )
            },
        )
        for row in report.groups
    ]


def count_present(row: GroupRow, report: Report) -> int:
    """Number of the group's ranks that are in the run; of all ranks in the run if the group's are unknown."""
    present = set(report.run.ranks)
    return len(present & set(row.ranks)) or len(present) or 1


def _group_values(row: GroupRow, report: Report) -> dict[str, Value]:
    number = count_present(row, report)
    return {
        "overlap_ratio": row.overlap_ratio,
        "exposed_communication": row.exposed_communication_ns / number,
        "communication": row.communication_ns / number,
        "bus_bandwidth": row.bus_bandwidth_gbps,
        "transfer_p50": row.transfer_ns.p50 if row.transfer_ns else None,
        "transfer_p95": row.transfer_ns.p95 if row.transfer_ns else None,
        "size": row.size_bytes,
        "count": row.count,
    }


_MEASURES: dict[str, Callable[[Report], list[Row]]] = {
    "run": _measure_run,
    "steady": _measure_steady,
    "outside": _measure_outside,
    "step": measure_steps,
    "rank": _measure_ranks,
    "group": _measure_groups,
    "bucket": measure_buckets,
}

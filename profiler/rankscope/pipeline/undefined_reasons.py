"""Why a figure of the report can have no value: a reason for every section and figure, in plain sight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rankscope.model.report import GroupRow, Report, StepRow, WindowRow

Reason = str | Callable[[Any, Report], str]
"""A text, or what gives one for a row of a report."""

NO_COMMUNICATION = "no communication kernels"
NO_MARKERS = "no step markers (ProfilerStep) in the files"
_NO_TIME = "it took no time"
_STEP_WINDOW = "the work of a step overlaps that of its neighbours, so a step has no window of its own"
_OUTSIDE = "events outside steps have no duration as a step"
_NOT_COMPLETE = (
    "needs a collective that was found on all its ranks and on which every rank waits for the last"
)
_NO_SIZE = "the trace gives no size for it (record with record_shapes=True)"
_NO_SIZE_OF_SOME = "the trace gives no size for some of these (record with record_shapes=True)"
_NO_SPLIT = "no collective was found on all its ranks, so waiting cannot be told from transfer"
_ONLY_FULL = "kept for the latest collectives only; all of them with --detail full"
_ONE_END = "the other end is not in the traces"
_NO_HOST_ROW = "needs the host rows that asked for it, and the trace holds none of them"
_NO_LATENESS = (
    "no collective of this rank counts: none was found on all ranks, on clocks that are close enough"
)
_NO_COST = "the replay of the run cannot tell what this rank costs"
_NO_STEP_COST = (
    "only the ranks that worked longest are replayed; the first recorded step has nothing to compare with"
)
_NO_NETWORK_FIT = "the traces do not show what this would give"


def _without_window(row: WindowRow, report: Report) -> str:
    if row.device is not None:
        return NO_COMMUNICATION
    on_cpu = bool(report.ranks) and all(rank.device == "cpu" for rank in report.ranks)
    return f"no {'host operators' if on_cpu else 'GPU events'} in this window"


def _step_overlap(row: StepRow, _report: Report) -> str:
    if row.step is None:
        return "no communication was launched outside the steps"
    return "no communication was launched in this step"


def _step_duration(row: StepRow, _report: Report) -> str:
    return _OUTSIDE if row.step is None else "the trace does not show where the step ends"


def _group_bandwidth(row: GroupRow, _report: Report) -> str:
    return _NOT_COMPLETE if row.transfer_ns is None else f"{_NO_SIZE}, or the operation has no bus bandwidth"


ROW_REASONS: dict[str, dict[str, Reason]] = {
    "ranks": {
        "overlap_ratio": NO_COMMUNICATION,
        "exposed_wait_ns": _NO_SPLIT,
        "exposed_transfer_ns": _NO_SPLIT,
    },
    "windows": dict.fromkeys(("window_ns", "idle_ns", "overlap_ratio", "started_ns"), _without_window),
    "steps": {
        "window_ns": _STEP_WINDOW,
        "idle_ns": _STEP_WINDOW,
        "overlap_ratio": _step_overlap,
        "duration_ns": _step_duration,
        "runs_past_end_ns": _step_duration,
    },
    "groups": {
        "size_bytes": _NO_SIZE_OF_SOME,
        "overlap_ratio": _NO_TIME,
        "transfer_ns": _NOT_COMPLETE,
        "bus_bandwidth_gbps": _group_bandwidth,
    },
    "collectives": {
        "step": "launched outside the recorded steps",
        "dtype": _NO_SIZE,
        "size_bytes": _NO_SIZE,
        "sequence": _NOT_COMPLETE,
        "transfer_ns": _NOT_COMPLETE,
        "wait_ns": _NOT_COMPLETE,
        "lateness_ns": _NOT_COMPLETE,
        "last_rank": _NOT_COMPLETE,
        "overlap_ratio": _NO_TIME,
        "algorithm_bandwidth_gbps": f"{_NOT_COMPLETE}, and its size",
        "bus_bandwidth_gbps": f"{_NOT_COMPLETE}, and its size",
        "arrivals_ns": _ONLY_FULL,
        "waits_ns": f"with --detail full only; {_NOT_COMPLETE}",
    },
    "communications": {
        "step": "launched outside the recorded steps",
        "dtype": _NO_SIZE,
        "size_bytes": _NO_SIZE,
        "overlap_ratio": _NO_TIME,
    },
    "p2p": {
        "step": "launched outside the recorded steps",
        "peer": _ONE_END,
        "size_bytes": _NO_SIZE,
        "wait_ns": _ONE_END,
        "transfer_ns": _ONE_END,
    },
    "bucket_layouts": {
        "cap_mb": "only the collector records bucket_cap_mb, and before DDP rebuilds its buckets it does not apply",
    },
    "buckets": {
        "step": "launched outside the recorded steps",
        "size_bytes": _NO_SIZE,
        "ready_ns": f"{_NO_HOST_ROW}; an all-gather of FSDP waits for no gradient",
        "launched_ns": _NO_HOST_ROW,
        "host_overhead_ns": f"{_NO_HOST_ROW}; on the CPU nothing is launched",
        "queue_ns": f"{_NO_HOST_ROW}; an all-gather of FSDP waits for no gradient",
        "wait_ns": _NOT_COMPLETE,
        "transfer_ns": _NOT_COMPLETE,
        "overlap_ratio": _NO_TIME,
        "bus_bandwidth_gbps": f"{_NOT_COMPLETE}, and its size",
    },
    "quantiles": {
        "size_bytes": _NO_SIZE,
        "transfer_ns": _NOT_COMPLETE,
        "wait_ns": _NOT_COMPLETE,
        "lateness_ns": f"of collectives only; {_NOT_COMPLETE}",
        "exposed_ns": "of buckets only",
    },
    "caused_waits": {"lateness_ns": _NO_LATENESS, "cost_ns": _NO_STEP_COST},
    "straggler.by_rank": {"lateness_ns_per_step": _NO_LATENESS, "cost_ns_per_step": _NO_COST},
    "advice.bucket_cap_mb.predictions": {"overlap_ratio": "the prediction holds no communication"},
}

CLOCK_REASONS = {
    "residual_ns": "no synchronising collective was found on several ranks",
    "uncertainty_ns": "no collective bounds this clock from both sides",
}

CAP_REASONS = {
    "current": "only the collector records bucket_cap_mb",
    "best": _NO_NETWORK_FIT,
}

STRAGGLER_REASONS = {
    "cost_ns_per_step": _NO_COST,
    "saved_ns_per_step": _NO_COST,
    "slowdown": "the replay of the unchanged run is more than 2 % off the measured steps",
    "cause_ns_per_step": "no cause stands out",
}

ADVICE_REASONS = {
    "code": "no other cap is recommended",
    "step_ns": "the steps have no duration",
    "saving_ns": "no other cap is recommended",
    "saving_ratio": "no other cap is recommended",
    "replay_error_ratio": "nothing was replayed",
    "compute_slowdown": "too few equal layers ran both beside a transfer and without, or they took about as long",
    "transfer_slowdown": "only a calibration shows how fast transfers are without compute beside them",
    "network": "no network was fitted",
}

"""Every figure of a report that can be limited or compared, by scope. Docs: docs/ci.md."""

from __future__ import annotations

from rankscope.model.figure import Figure

OVERLAP = Figure(name="overlap_ratio", label="hidden communication", kind="ratio", better="higher")
EXPOSED = Figure(name="exposed_communication", label="exposed communication", kind="time")
EXPOSED_RATIO = Figure(name="exposed_communication_ratio", label="exposed share of the time", kind="ratio")
COMMUNICATION = Figure(name="communication", label="communication", kind="time")
COMPUTE = Figure(name="compute", label="compute", kind="time")
EXPOSED_MEMORY = Figure(name="exposed_memory", label="exposed memory", kind="time")
DURATION = Figure(name="duration", label="step duration", kind="time")
WINDOW = Figure(name="window", label="recorded window", kind="time")
IDLE = Figure(name="idle", label="idle", kind="time")
IDLE_RATIO = Figure(name="idle_ratio", label="idle share of the window", kind="ratio")
EXPOSED_WAIT = Figure(name="exposed_wait", label="exposed waiting", kind="time")
EXPOSED_TRANSFER = Figure(name="exposed_transfer", label="exposed transfer", kind="time")
STRAGGLER_COST = Figure(name="straggler_cost", label="straggler cost per step", kind="time")
STRAGGLER_COST_RATIO = Figure(
    name="straggler_cost_ratio", label="straggler cost as a share of the step", kind="ratio"
)
STRAGGLER_SLOWDOWN = Figure(name="straggler_slowdown", label="slowdown by the straggler", kind="factor")
BUS_BANDWIDTH = Figure(name="bus_bandwidth", label="bus bandwidth", kind="bandwidth", better="higher")
MISSING_RANKS = Figure(name="missing_ranks", label="ranks without a trace", kind="count")
COVERAGE_MATCHED = Figure(
    name="coverage_matched_ratio",
    label="communication matched over ranks",
    kind="ratio",
    better="higher",
)
COVERAGE_SIZED = Figure(
    name="coverage_sized_ratio", label="communication of known size", kind="ratio", better="higher"
)
COVERAGE_NAMED = Figure(
    name="coverage_named_ratio", label="communication of known operation", kind="ratio", better="higher"
)
COVERAGE_IN_STEPS = Figure(
    name="coverage_in_steps_ratio", label="communication inside steps", kind="ratio", better="higher"
)
TRANSFER = Figure(name="transfer", label="transfer", kind="time")
TRANSFER_P50 = Figure(name="transfer_p50", label="median transfer", kind="time")
TRANSFER_P95 = Figure(name="transfer_p95", label="95th percentile of transfers", kind="time")
HOST_OVERHEAD = Figure(name="host_overhead", label="host overhead", kind="time")
QUEUE = Figure(name="queue", label="queueing", kind="time")
WAIT = Figure(name="wait", label="waiting", kind="time")
SIZE = Figure(name="size", label="size", kind="size")
COUNT = Figure(name="count", label="collectives", kind="count")

RUN_FIGURES = (
    OVERLAP,
    EXPOSED,
    EXPOSED_RATIO,
    EXPOSED_WAIT,
    EXPOSED_TRANSFER,
    COMMUNICATION,
    COMPUTE,
    EXPOSED_MEMORY,
    IDLE,
    IDLE_RATIO,
    WINDOW,
    BUS_BANDWIDTH,
    STRAGGLER_COST,
    STRAGGLER_COST_RATIO,
    STRAGGLER_SLOWDOWN,
    MISSING_RANKS,
    COVERAGE_MATCHED,
    COVERAGE_SIZED,
    COVERAGE_NAMED,
    COVERAGE_IN_STEPS,
)
"""Of the whole recording. Times are the mean over ranks and devices."""

STEADY_FIGURES = (OVERLAP, EXPOSED, EXPOSED_RATIO, COMMUNICATION, COMPUTE, EXPOSED_MEMORY, DURATION)
"""Of the steady steps. Times are the mean over ranks, devices and steps."""

OUTSIDE_FIGURES = (OVERLAP, EXPOSED, COMMUNICATION, COMPUTE, EXPOSED_MEMORY)
"""Of what was launched outside steps. Times are the mean over ranks and devices."""

STEP_FIGURES = STEADY_FIGURES
"""Of one step. Times are the mean over ranks and devices."""

RANK_FIGURES = (
    OVERLAP,
    EXPOSED,
    EXPOSED_RATIO,
    EXPOSED_WAIT,
    EXPOSED_TRANSFER,
    COMMUNICATION,
    COMPUTE,
    EXPOSED_MEMORY,
    IDLE,
    IDLE_RATIO,
    WINDOW,
    STRAGGLER_COST,
)
"""Of one rank on one device."""

GROUP_FIGURES = (
    OVERLAP,
    EXPOSED,
    COMMUNICATION,
    BUS_BANDWIDTH,
    TRANSFER_P50,
    TRANSFER_P95,
    SIZE,
    COUNT,
)
"""Of one operation in one process group. Times are the mean over the group's ranks in the run."""

BUCKET_FIGURES = (OVERLAP, EXPOSED, BUS_BANDWIDTH, TRANSFER, WAIT, QUEUE, HOST_OVERHEAD, SIZE)
"""Of one DDP bucket over its steady steps and ranks: exposed time is the mean, other times the median."""

FIGURES_OF_SCOPE: dict[str, tuple[Figure, ...]] = {
    "run": RUN_FIGURES,
    "steady": STEADY_FIGURES,
    "outside": OUTSIDE_FIGURES,
    "step": STEP_FIGURES,
    "rank": RANK_FIGURES,
    "group": GROUP_FIGURES,
    "bucket": BUCKET_FIGURES,
}

ALIASES = {"exposed": "exposed_communication", "exposed_ratio": "exposed_communication_ratio"}
"""Short names that are accepted for long ones."""


def find_figure(scope: str, name: str) -> Figure | None:
    """The figure of that name or alias in a scope; None if there is none."""
    wanted = ALIASES.get(name, name)
    return next((figure for figure in FIGURES_OF_SCOPE[scope] if figure.name == wanted), None)


def qualify(scope: str, figure: str) -> str:
    """Name of a figure in a scope: that of the whole run stands alone.

    >>> qualify("run", "overlap_ratio"), qualify("steady", "overlap_ratio")
    ('overlap_ratio', 'steady.overlap_ratio')
    """
    return figure if scope == "run" else f"{scope}.{figure}"

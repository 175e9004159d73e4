"""One line for each term that a report uses; docs/metrics.md holds the full definitions."""

from __future__ import annotations

TERMS = {
    "Window": "From the first to the last event on the device; several recordings of a rank are added up.",
    "Compute": "Time in which at least one kernel runs that neither communicates nor copies.",
    "Communication": "Time in which at least one communication kernel runs, waiting for other ranks included.",
    "Hidden": "Share of the communication time during which compute runs too, also called overlap.",
    "Exposed": "Communication time during which nothing is computed: what communication costs.",
    "Exposed memory": "Time of copies and fills during which neither compute nor communication runs.",
    "Idle": "The rest: compute + exposed communication + exposed memory + idle = window.",
    "Step": "One iteration of the training loop. A kernel belongs to the step that launched it.",
    "Steady": "Steps that stand for the run: no warm-up, and not the step in which DDP rebuilds its buckets.",
    "Bus bandwidth": "Bytes that each link carries per second of transfer, to compare with the hardware's.",
    "Straggler": "The rank, or the set of ranks, that the others wait for.",
    "n/a": "The figure has no value here, for the reason beside it. It never means zero.",
}
"""Term -> its meaning."""

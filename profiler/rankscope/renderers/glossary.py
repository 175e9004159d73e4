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
    "Wait": "From a rank's own start of a collective until the last rank has come.",
    "Transfer": "The shortest duration of a collective over its ranks: what is left once all have come.",
    "Exposed wait": "Exposed communication time in which the rank waited for others.",
    "Exposed transfer": "The rest of the exposed communication time.",
    "Lateness": "How long after the second last rank the last one came, added over collectives that count.",
    "Cost": "By how much a step would be shorter if this rank worked like its peers, by replay of the run.",
    "Last in": "Collectives that count in which this rank came last.",
    "Clock offset": "What was subtracted from the rank's times to put all ranks on one clock.",
    "Clock uncertainty": "How far the offset may be off: no collective ends on a rank before all have come.",
    "Clock drift": "By how much the rank's clock runs fast, in millionths; where the recording is too short, none.",
    "Bucket": "Gradients that DDP sends together, numbered in the order in which they are sent.",
    "Host overhead": "From the host's request until the launch on the device.",
    "Queue": "From when a bucket is ready and launched until it starts.",
    "Bucket cap": "The size at which DDP closes a bucket, in MiB.",
    "Predicted": "What the model of this run's buckets and network gives, with its error.",
    "Straggler": "The rank, or the set of ranks, that the others wait for.",
    "n/a": "The figure has no value here, for the reason beside it. It never means zero.",
}
"""Term -> its meaning."""

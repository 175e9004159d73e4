"""What each collective does, in a few sentences, with the ring's formula (n ranks, size S, link bandwidth B)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A lesson on one operation.

    Attributes:
        title: name for people.
        does: what it does.
        used: where training uses it.
        formula: what the ring takes, without latency.
    """

    title: str
    does: str
    used: str
    formula: str


LESSONS = {
    "all_reduce": Lesson(
        title="All-reduce",
        does="Every rank gives an array, and every rank gets the sum of all of them.",
        used="DDP averages gradients with it, a bucket at a time; tensor parallelism adds up partial results.",
        formula="time = 2 (n-1)/n x S/B: a reduce-scatter and then an all-gather, n-1 steps of S/n each",
    ),
    "all_gather": Lesson(
        title="All-gather",
        does="Every rank gives its piece, and every rank gets all pieces.",
        used="FSDP and ZeRO collect the parameters of a layer with it before they compute it.",
        formula="time = (n-1)/n x S/B, S being what comes out: n-1 steps of S/n each",
    ),
    "reduce_scatter": Lesson(
        title="Reduce-scatter",
        does="Every rank gives an array; each gets its own piece of the sum.",
        used="FSDP and ZeRO reduce gradients with it, so that each rank keeps those of its own parameters.",
        formula="time = (n-1)/n x S/B, S being what goes in: n-1 steps of S/n each",
    ),
    "all_to_all": Lesson(
        title="All-to-all",
        does="Every rank gives a different piece to every other one.",
        used="Experts (MoE) and sharded embeddings send tokens and rows to their owners with it.",
        formula="time = (n-1)/n x S/B: every rank keeps only 1/n of its data",
    ),
    "broadcast": Lesson(
        title="Broadcast",
        does="One rank gives an array, and all others get a copy.",
        used="DDP sends parameters and buffers from rank 0 with it.",
        formula="time = S/B: pieces run along the ring behind one another",
    ),
    "reduce": Lesson(
        title="Reduce",
        does="Every rank gives an array, and one rank gets the sum.",
        used="Losses and metrics for the log often come together in this way.",
        formula="time = S/B",
    ),
    "gather": Lesson(
        title="Gather",
        does="Every rank gives its piece, and one rank gets them all.",
        used="Evaluation collects predictions with it.",
        formula="time = (n-1)/n x S/B, all of it over the link of one rank",
    ),
    "scatter": Lesson(
        title="Scatter",
        does="One rank gives every other one a piece.",
        used="Rank 0 hands out data or parameters with it.",
        formula="time = (n-1)/n x S/B, all of it over the link of one rank",
    ),
    "barrier": Lesson(
        title="Barrier",
        does="Nobody goes on before everybody has come.",
        used="Checkpoints and tests wait with it. In a training step it costs the lateness of the last rank.",
        formula="time = latency only: it moves no data",
    ),
    "send": Lesson(
        title="Send and receive",
        does="One rank hands an array to one other.",
        used="Pipeline parallelism passes activations and their gradients between stages with it.",
        formula="time = S/B",
    ),
}
"""Operation -> its lesson."""

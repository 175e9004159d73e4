"""Tables about whom everybody waits for, the same for every format."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.model.groups import name_ranks
from rankscope.model.late_collectives import pick_late
from rankscope.model.report import CollectiveRow, Report, Straggler, StragglerRank
from rankscope.renderers.escape import MESSAGE_LIMIT, make_inert
from rankscope.renderers.report_tables import drop_single_host
from rankscope.renderers.tables import (
    Cell,
    Column,
    Table,
    count_cell,
    duration_cell,
    finish_table,
    keep_worst,
    number_cell,
    size_cell,
    text_cell,
)
from rankscope.renderers.undefined import Reasons, make_path
from rankscope.units import format_duration

_WAITING_COLUMNS = (
    Column(label="Rank"),
    Column(label="Host", numeric=False, wide=True),
    Column(label="Cost per step", short="Cost", term="Cost"),
    Column(label="Lateness per step", short="Lateness", term="Lateness"),
    Column(label="Last in", term="Last in"),
    Column(label="Own exposed wait", short="Wait", term="Exposed wait"),
    Column(label="Own exposed transfer", short="Transfer", wide=True, term="Exposed transfer"),
)

_EVIDENCE_COLUMNS = (
    Column(label="What", numeric=False),
    Column(label="Name", numeric=False),
    Column(label="This rank"),
    Column(label="Its peers"),
    Column(label="Longer by"),
)

_LATE_COLUMNS = (
    Column(label="Collective", short="No."),
    Column(label="Step", term="Step"),
    Column(label="Operation", numeric=False),
    Column(label="Group", numeric=False, wide=True),
    Column(label="Bytes", wide=True),
    Column(label="Last rank", short="Last", term="Last in"),
    Column(label="Lateness", term="Lateness"),
    Column(label="Longest wait", short="Wait", term="Wait"),
    Column(label="Transfer", term="Transfer"),
)

_CLOCK_COLUMNS = (
    Column(label="Rank"),
    Column(label="Host", numeric=False, wide=True),
    Column(label="Offset", term="Clock offset"),
    Column(label="Uncertainty", term="Clock uncertainty"),
    Column(label="Drift", wide=True, term="Clock drift"),
)


def build_waiting_table(report: Report, limit: int) -> Table:
    """What each rank cost the others and how long it waited itself; above `limit` the ones that cost most."""
    straggler = report.straggler
    by_rank = () if straggler is None or len(straggler.by_rank) < 2 else straggler.by_rank
    reasons = Reasons(report.undefined)
    split = _add_split(report)
    kept, left_out = keep_worst(by_rank, _badness, limit)
    if len(by_rank) > _MOST_IN_ORDER:
        kept = tuple(sorted(kept, key=_badness, reverse=True))
    rows = [_waiting_cells(report, row, split, reasons) for row in kept]
    notes = (
        ["Cost and lateness: of a step. Own exposed wait and transfer: of the whole recording."]
        if rows
        else []
    )
    if left_out:
        notes.append(f"Shown: the {len(kept):,} of {len(by_rank):,} ranks that cost most.")
    elif len(by_rank) > _MOST_IN_ORDER:
        notes.append("The ranks that cost most come first.")
    return finish_table("Who the others wait for", *drop_single_host(report, _WAITING_COLUMNS, rows), notes)


_MOST_IN_ORDER = 16
"""Above this many ranks the worst come first: nobody looks through all of them."""


def _badness(row: StragglerRank) -> tuple[int, int]:
    return row.cost_ns_per_step or 0, row.lateness_ns_per_step or 0


def _waiting_cells(
    report: Report, row: StragglerRank, split: dict[int, tuple[int | None, int | None]], reasons: Reasons
) -> list[Cell]:
    def why(figure: str) -> str | None:
        return reasons.find(make_path("straggler.by_rank", {"rank": row.rank}, figure))

    wait, transfer = split.get(row.rank, (None, None))
    last_in = Cell(text=f"{row.last_in:,} of {row.countable:,}", value=row.last_in)
    no_split = reasons.find(make_path("ranks", {"rank": row.rank}, "exposed_wait_ns"))
    return [
        Cell(text=str(row.rank), value=row.rank),
        text_cell(report.run.host.get(row.rank, "")),
        duration_cell(row.cost_ns_per_step, why("cost_ns_per_step")),
        duration_cell(row.lateness_ns_per_step, why("lateness_ns_per_step")),
        last_in,
        duration_cell(wait, no_split),
        duration_cell(transfer, no_split),
    ]


def _add_split(report: Report) -> dict[int, tuple[int | None, int | None]]:
    """Rank -> (exposed wait, exposed transfer) over its devices; None if unknown on one."""
    split: dict[int, tuple[int | None, int | None]] = {}
    for row in report.ranks:
        wait, transfer = split.get(row.rank, (0, 0))
        split[row.rank] = (_add(wait, row.exposed_wait_ns), _add(transfer, row.exposed_transfer_ns))
    return split


def _add(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def build_evidence_table(report: Report, limit: int) -> Table:
    """What took the late rank longer than its peers, per step."""
    straggler = report.straggler
    evidence = [] if straggler is None else straggler.evidence
    rows = [
        (
            text_cell(_EVIDENCE_WORDS.get(item.kind, item.kind)),
            text_cell(item.name, _LONGEST_NAME),
            duration_cell(item.own_ns),
            duration_cell(item.peers_ns),
            duration_cell(item.excess_ns),
        )
        for item in evidence[:limit]
    ]
    notes = ["Times: median over the steps; its peers: median over them."] if rows else []
    return finish_table(f"Why {name_culprit(straggler)} is late", _EVIDENCE_COLUMNS, rows, notes)


_WORTH_SAYING = 0.1
"""Share of the cost by which what is really saved must differ to be told."""

_LONGEST_NAME = 64
_EVIDENCE_WORDS = {"compute": "compute", "memory": "copies", "idle": "device idle, host in"}


def name_culprit(straggler: Straggler | None) -> str:
    """The rank or ranks that are named, for the middle of a sentence; "nobody" if none is."""
    if straggler is None or not straggler.ranks:
        return "nobody"
    return name_ranks(straggler.ranks)


def explain_verdict(report: Report) -> tuple[str, ...]:
    """What the verdict on stragglers rests on, and the cause; inert sentences, () if it says so itself."""
    straggler = report.straggler
    if straggler is None or straggler.verdict == "inconclusive":
        return ()
    sentences = [_sentence(straggler.reason)] if straggler.reason else []
    saved, cost = straggler.saved_ns_per_step, straggler.cost_ns_per_step
    if (
        straggler.verdict == "found"
        and saved is not None
        and cost
        and abs(saved - cost) > _WORTH_SAYING * cost
    ):
        sentences.append(
            f"In this run a step would really get {format_duration(saved)} shorter: hosts of other ranks are slow too, "
            "unseen behind the wait."
        )
    if straggler.verdict == "found" and straggler.slowdown is not None:
        sentences.append(f"The run is {straggler.slowdown:.3g} times as slow as it would be then.")
    if straggler.verdict == "found" and straggler.cause_reason:
        sentences.append(_explain_cause(straggler))
    return tuple(make_inert(sentence, MESSAGE_LIMIT) for sentence in sentences)


def _explain_cause(straggler: Straggler) -> str:
    if straggler.cause is None:
        return f"No single cause: {straggler.cause_reason}."
    lost = (
        ""
        if straggler.cause_ns_per_step is None
        else f", {format_duration(straggler.cause_ns_per_step)} per step"
    )
    stage = straggler.cause_stage
    place = "" if not stage else f", {stage}" if stage.startswith("outside") else f", in {stage}"
    name = f" ({straggler.cause_name})" if straggler.cause_name else ""
    return f"Cause: {straggler.cause}{lost}{place}{name}: {straggler.cause_reason}."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def build_late_table(report: Report, limit: int) -> Table:
    """The collectives that waited longest for their last rank."""
    late = pick_late(report.collectives, limit)
    countable = sum(row.countable and bool(row.lateness_ns) for row in report.collectives)
    notes = []
    if len(late) < countable:
        notes.append(f"Shown: the {len(late):,} of {countable:,} with the greatest lateness.")
    reasons = Reasons(report.undefined)
    rows = [_late_cells(row, reasons) for row in late]
    return finish_table("Collectives that waited longest for their last rank", _LATE_COLUMNS, rows, notes)


def _late_cells(row: CollectiveRow, reasons: Reasons) -> list[Cell]:
    def why(figure: str) -> str | None:
        return reasons.find(make_path("collectives", {"index": row.index}, figure))

    step = Cell(text="outside") if row.step is None else Cell(text=str(row.step), value=row.step)
    return [
        count_cell(row.index),
        step,
        text_cell(row.op),
        text_cell(row.group),
        size_cell(row.size_bytes, why("size_bytes")),
        number_cell(row.last_rank, lambda rank: f"{rank:g}", why("last_rank")),
        duration_cell(row.lateness_ns, why("lateness_ns")),
        duration_cell(None if row.wait_ns is None else row.wait_ns.max, why("wait_ns")),
        duration_cell(row.transfer_ns, why("transfer_ns")),
    ]


def build_clock_table(report: Report, limit: int) -> Table:
    """What was subtracted from each rank's clock; above `limit` the ranks of greatest uncertainty."""
    clock = report.run.clock
    ranks = sorted(clock.offsets_ns) if len(clock.offsets_ns) > 1 else []
    kept, left_out = keep_worst(ranks, lambda rank: clock.uncertainty_ns.get(rank) or 0, limit)
    rows = []
    for rank in kept:
        drift = clock.drift_ppm.get(rank)
        rows.append(
            [
                Cell(text=str(rank), value=rank),
                text_cell(report.run.host.get(rank, "")),
                duration_cell(clock.offsets_ns[rank]),
                number_cell(
                    clock.uncertainty_ns.get(rank),
                    lambda ns: f"±{format_duration(int(ns))}",
                    report.undefined.get(f"run.clock.uncertainty_ns[{rank}]"),
                ),
                Cell(text="none seen" if drift is None else f"{drift:.3g} ppm", value=drift),
            ]
        )
    notes = [] if not rows else list(describe_clocks(report))
    if left_out:
        notes.append(f"Shown: the {len(kept):,} of {len(ranks):,} ranks with the greatest uncertainty.")
    return finish_table("Clocks", *drop_single_host(report, _CLOCK_COLUMNS, rows), notes)


def describe_clocks(report: Report) -> tuple[str, ...]:
    """How the ranks' clocks were brought together, one sentence per item; () for a single rank."""
    clock = report.run.clock
    if len(report.run.ranks) < 2:
        return ()
    if clock.method == "none":
        return ("The clocks of the ranks could not be tied together: arrivals and lateness are unknown.",)
    sentences = [f"The clocks of the ranks were tied together by {_METHODS.get(clock.method, clock.method)}."]
    residual = clock.residual_ns
    if residual.median is not None and residual.max is not None:
        sentences.append(
            f"After that the ends of one collective still lie {format_duration(residual.median)} apart (median; at "
            f"most {format_duration(residual.max)})."
        )
    if clock.untied_ranks:
        sentences.append(_say_untied(clock.untied_ranks))
    return tuple(sentences)


_METHODS = {
    "collective ends": "the ends of collectives, which come at about the same time on all ranks",
    "clock samples": "the collector's clock samples",
}


def _say_untied(ranks: Sequence[int]) -> str:
    share = "shares" if len(ranks) == 1 else "share"
    who = f"{name_ranks(ranks).capitalize()} {share}"
    return f"{who} no collective with them: only figures that need no clock hold there."

"""What a report says in a few sentences, for somebody who sees it for the first time."""

from __future__ import annotations

from rankscope.model.groups import name_ranks
from rankscope.model.report import Advice, Report, Straggler
from rankscope.renderers.advice_tables import find_prediction
from rankscope.renderers.escape import MESSAGE_LIMIT, make_inert
from rankscope.renderers.headline import Headline, measure_headline
from rankscope.renderers.tables import NO_REASON, NOT_AVAILABLE
from rankscope.units import format_duration, format_ratio


def write_verdict(report: Report) -> tuple[str, ...]:
    """The verdict, one statement per item, the most important first; inert text."""
    statements = [
        _say_overlap(measure_headline(report)),
        _say_straggler(report.straggler),
        _say_advice(report.advice),
        _say_missing(report),
        _say_lost(report),
    ]
    return tuple(make_inert(statement, MESSAGE_LIMIT) for statement in statements if statement)


def describe_run(report: Report) -> str:
    """One line that says which run it is; inert text."""
    run = report.run
    ranks = f"{_count(len(run.ranks), 'rank')}"
    if run.world_size is not None and run.world_size != len(run.ranks):
        ranks = f"{len(run.ranks):,} of {_count(run.world_size, 'rank')}"
    facts = [ranks, run.backend, ", ".join(sorted(set(run.devices.values()))) or None]
    hosts = len(set(run.host.values()))
    facts.append(_count(hosts, "host") if hosts > 1 else None)
    if run.ranks:
        facts.append(_count(len(run.steps), "step") if run.steps else "no step markers")
    facts += [f"torch {run.versions['torch']}"] if "torch" in run.versions else []
    facts.append(run.started_at)
    return make_inert(" · ".join(fact for fact in facts if fact), MESSAGE_LIMIT)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _say_overlap(headline: Headline | None) -> str:
    if headline is None:
        return "Nothing was measured: the run holds no trace that could be analysed."
    if headline.overlap_ratio is None:
        reason = headline.overlap_reason or NO_REASON
        return f"How much communication hides behind compute: {NOT_AVAILABLE} ({reason})."
    hidden = f"{format_ratio(headline.overlap_ratio)} of the communication time is hidden behind compute."
    each = "In an average steady step a rank" if headline.is_steady else "On average a rank"
    share = ""
    if headline.base_ns is not None and headline.exposed_share is not None:
        whole = "of" if headline.is_steady else "of its recording of"
        share = f", {format_ratio(headline.exposed_share)} {whole} {format_duration(headline.base_ns)}"
    exposed = format_duration(headline.exposed_ns)
    return f"{hidden} {each} spends {exposed} on communication that nothing hides{share}."


def _say_straggler(straggler: Straggler | None) -> str:
    if straggler is None:
        return ""
    if straggler.verdict == "none":
        return "No rank holds the others up."
    if straggler.verdict == "inconclusive":
        return f"Whether one rank holds the others up cannot be told: {straggler.reason.rstrip('.')}."
    ranks = straggler.ranks or ([] if straggler.rank is None else [straggler.rank])
    who = name_ranks(ranks)
    if len(ranks) > 1 and straggler.scope not in (None, "rank"):
        who = f"{straggler.scope} ({who})"
    cost = (
        ""
        if straggler.cost_ns_per_step is None
        else f", {format_duration(straggler.cost_ns_per_step)} per step"
    )
    cause = f"; cause: {straggler.cause}" if straggler.cause else ""
    confidence = f" (confidence {straggler.confidence})" if straggler.confidence else ""
    return f"The other ranks wait for {who}{cost}{cause}{confidence}."


def _say_advice(advice: Advice | None) -> str:
    if advice is None or advice.verdict != "change" or advice.bucket_cap_mb.best is None:
        return ""
    cap = advice.bucket_cap_mb
    best = find_prediction(cap, cap.best)
    now = find_prediction(cap, cap.current)
    instead = "" if cap.current is None else f" instead of {cap.current:g}"
    gain = ""
    if best is not None:
        gain = f": the step is predicted to take {format_duration(best.step_ns)}"
        gain += "" if now is None else f" instead of {format_duration(now.step_ns)}"
    return f"Set bucket_cap_mb={cap.best:g}{instead}{gain}."


def _say_missing(report: Report) -> str:
    missing = report.run.missing_ranks
    if not missing:
        return ""
    have = "has" if len(missing) == 1 else "have"
    return f"{name_ranks(missing).capitalize()} {have} no trace: the figures hold for the others only."


def _say_lost(report: Report) -> str:
    errors = [problem for problem in report.problems if problem.severity == "error"]
    files = len({problem.file for problem in errors})
    if not files:
        return ""
    return f"{_count(files, 'file')} could not be read in full: see the problems below."

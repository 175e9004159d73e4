"""The verdict on limits, and a comparison, as strict JSON."""

from __future__ import annotations

from typing import Any

from rankscope.model.comparison import ChangedPart, ComparedFigure, Comparison, Side
from rankscope.model.json_text import write_json
from rankscope.model.verdict import Outcome, Verdict
from rankscope.renderers.check_tables import say_verdict
from rankscope.renderers.comparison_tables import say_comparison

FORMAT = {"name": "rankscope-verdict", "version": "1.0"}


def render_check_json(verdict: Verdict, comparison: Comparison | None = None) -> str:
    """The verdict as strict JSON, ending with a line break. Keys: docs/formats.md.

    Args:
        verdict: the verdict.
        comparison: of the run with its baseline, or of head with base.
    """
    tree = {
        "format": FORMAT,
        "run": {"name": verdict.run, "source": verdict.source},
        "passed": not verdict.failed,
        "summary": say_verdict(verdict),
        "limits": [_outcome(outcome) for outcome in verdict.outcomes],
        "warnings": list(verdict.warnings),
        "comparison": None if comparison is None else _comparison(comparison),
    }
    return write_json(tree, indent=2) + "\n"


def _outcome(outcome: Outcome) -> dict[str, Any]:
    worst = outcome.worst
    return {
        "name": outcome.name,
        "scope": outcome.suite,
        "limit": outcome.limit,
        "status": outcome.status,
        "fails": outcome.fails,
        "message": outcome.message,
        "checked": outcome.checked,
        "worst": None if worst is None else {"place": worst.place, "value": worst.value, "text": worst.text},
        "broken": [{"place": m.place, "value": m.value, "text": m.text} for m in outcome.broken],
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "summary": say_comparison(comparison),
        "base": _side(comparison.base),
        "head": _side(comparison.head),
        "figures": [_figure(row) for row in comparison.figures],
        "parts": [_part(part) for part in comparison.parts],
        "parts_left_out": comparison.parts_left_out,
        "notes": list(comparison.notes),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "runs": side.runs,
        "ranks": side.ranks,
        "world_size": side.world_size,
        "steps": side.steps,
        "started_at": side.started_at,
        "overlap_by_step": list(side.overlap_by_step),
    }


def _figure(row: ComparedFigure) -> dict[str, Any]:
    judgement = row.judgement
    return {
        "name": row.name,
        "unit": row.figure.unit,
        "better": row.figure.better,
        "base": row.base,
        "head": row.head,
        "change": row.change,
        "relative_change": row.relative_change,
        "direction": row.direction,
        "significant": row.is_significant,
        "headline": row.is_headline,
        "per_step": row.is_per_step,
        "reason": row.reason,
        "steps": None
        if judgement is None
        else {
            "base_mean": judgement.base_mean,
            "head_mean": judgement.head_mean,
            "base_steps": judgement.base_steps,
            "head_steps": judgement.head_steps,
            "p_value": judgement.p_value,
            "smallest_that_counts": judgement.smallest,
            "basis": judgement.basis,
        },
    }


def _part(part: ChangedPart) -> dict[str, Any]:
    return {
        "class": part.part_class,
        "name": part.name,
        "group": part.group or None,
        "change": part.change,
        "base_ns": part.base_ns,
        "head_ns": part.head_ns,
        "change_ns": part.change_ns,
        "base_exposed_ns": part.base_exposed_ns,
        "head_exposed_ns": part.head_exposed_ns,
        "base_count": part.base_count,
        "head_count": part.head_count,
    }

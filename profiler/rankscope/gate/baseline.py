"""Baselines: a few runs of one state of the code as a small JSON file to commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from rankscope.errors import FormatVersionError, InputError
from rankscope.gate.parts import LONGEST_NAME, shorten_name
from rankscope.model.json_text import write_json
from rankscope.model.snapshot import (
    BASELINE_NAME,
    BASELINE_VERSION,
    Baseline,
    BaselineFormat,
    Part,
    Parts,
    Snapshot,
)

MOST_RUNS = 4
MOST_STEPS = 24
MOST_COLLECTIVES = 12
MOST_KERNELS = 20
_MOST_LABELS = 4
_DIGITS = 6


def join_baselines(baselines: Sequence[Baseline]) -> Baseline:
    """All runs of several baselines in their order, with the parts of the newest.

    Args:
        baselines: at least one, the oldest first.
    """
    newest = baselines[-1]
    return replace(
        newest, format=BaselineFormat(), runs=[run for baseline in baselines for run in baseline.runs]
    )


def shrink_baseline(baseline: Baseline) -> Baseline:
    """The baseline with what fits into 20 KB: the newest 4 runs, 24 steps of each, the largest parts.

    Steps are thinned out evenly. Figures are kept exactly, so that a run equals its own baseline; values per step
    and parts are rounded to six digits.
    """
    runs = [_shrink_run(run) for run in baseline.runs[-MOST_RUNS:]]
    return replace(baseline, runs=runs, parts=_shrink_parts(baseline.parts))


def _shrink_run(run: Snapshot) -> Snapshot:
    return replace(
        run,
        name=run.name[:LONGEST_NAME],
        labels={
            key[:LONGEST_NAME]: text[:LONGEST_NAME] for key, text in list(run.labels.items())[:_MOST_LABELS]
        },
        devices=run.devices[:_MOST_LABELS],
        figures={name: value for name, value in run.figures.items() if value is not None},
        undefined={},
        samples={name: _thin([_round(v) for v in values]) for name, values in run.samples.items()},
    )


def _thin(values: Sequence[float | None]) -> list[float | None]:
    """At most 24 of the values, evenly spread.

    >>> len(_thin([0.5] * 100))
    24
    """
    if len(values) <= MOST_STEPS:
        return list(values)
    return [values[index * len(values) // MOST_STEPS] for index in range(MOST_STEPS)]


def _round(value: float | None) -> float | None:
    if value is None:
        return None
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


def _shrink_parts(parts: Parts) -> Parts:
    collectives = [part for part in parts.rows if part.part_class == "collective"]
    kernels = [part for part in parts.rows if part.part_class != "collective"]
    kept = [*collectives[:MOST_COLLECTIVES], *kernels[:MOST_KERNELS]]
    return Parts(
        rows=[_shrink_part(part) for part in kept],
        has_kernels=parts.has_kernels,
        left_out_collective_ns=_largest(collectives[MOST_COLLECTIVES:], parts.left_out_collective_ns),
        left_out_kernel_ns=_largest(kernels[MOST_KERNELS:], parts.left_out_kernel_ns),
    )


def _largest(left_out: Sequence[Part], before: float) -> float:
    return max([before, *(part.time_ns for part in left_out)])


def _shrink_part(part: Part) -> Part:
    return replace(
        part,
        name=shorten_name(part.name),
        group=shorten_name(part.group),
        count=_round(part.count) or 0,
        time_ns=_round(part.time_ns) or 0,
        exposed_ns=_round(part.exposed_ns),
    )


def render_baseline(baseline: Baseline) -> str:
    """The baseline as strict JSON, ending with a line break; a line per run and part, so that diffs are read."""
    tree: dict[str, Any] = msgspec.to_builtins(baseline, str_keys=True)
    runs = ",\n".join(f"  {write_json(run)}" for run in tree["runs"])
    rows = ",\n".join(f"   {write_json(_without_nulls(row))}" for row in tree["parts"].pop("rows"))
    parts = write_json(tree["parts"])[1:]
    return (
        f'{{"format": {write_json(tree["format"])},\n "tool_version": {write_json(tree["tool_version"])},\n "runs": [\n'
        f'{runs}\n ],\n "parts": {{"rows": [\n{rows}\n  ],{parts}}}\n'
    )


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value not in (None, "")}


class _Head(msgspec.Struct):
    format: Any = None


def is_baseline(text: str | bytes) -> bool:
    """Whether a JSON text says that it is a baseline."""
    try:
        head = msgspec.json.decode(text, type=_Head)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return isinstance(head.format, dict) and head.format.get("name") == BASELINE_NAME


def read_baseline(text: str | bytes) -> Baseline:
    """The baseline that `render_baseline` wrote, in this version or another minor one; unknown keys are ignored.

    Raises:
        FormatVersionError: if it was written in another major version.
        InputError: if it is no baseline, or holds no run.
    """
    if not is_baseline(text):
        raise _not_a_baseline(f'its key "format" does not say {{"name": "{BASELINE_NAME}"}}')
    head = msgspec.json.decode(text, type=_Head)
    version = head.format.get("version")
    major = version.partition(".")[0] if isinstance(version, str) else ""
    if not major.isdigit():
        raise _not_a_baseline(f'"format.version" is {version!r} and should be text like "{BASELINE_VERSION}"')
    if int(major) != int(BASELINE_VERSION.partition(".")[0]):
        raise FormatVersionError(
            f"the baseline is written in format version {version}, and this rankscope reads version "
            f"{BASELINE_VERSION} and others with the same first number. Write it again with "
            "`rankscope baseline update RUN`."
        )
    try:
        baseline = msgspec.json.decode(text, type=Baseline)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise _not_a_baseline(f"{error}") from error
    if not baseline.runs:
        raise _not_a_baseline("it holds no run")
    return baseline


def _not_a_baseline(reason: str) -> InputError:
    return InputError(
        f"not a rankscope baseline: {reason}. Expected is what `rankscope baseline update RUN` writes."
    )

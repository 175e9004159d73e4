"""No None without a reason in the reports of the real runs, whatever section it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rankscope.model.report import Report
from rankscope.pipeline import analyze
from rankscope.pipeline.undefined import UNKNOWN_REASON, figures_of, sections_of_rows
from rankscope.renderers.undefined import Reasons, make_path

KEYS = ("rank", "window", "device", "step", "group", "op")
SETS = (
    "amd_resnet_ddp_4rank",
    "gloo_ddp_caps/cap1",
    "many_allreduces_1of2",
    "megatron_tp2_2rank",
    "mi300_resnet_1of8",
    "nanogpt_before_after/after",
    "nanogpt_h100_8rank",
    "nccl_ddp_buckets_1of2",
    "param_dlrm_8rank",
    "torchrec_resnet18_2rank",
    "torchrec_straggler_4rank",
)


def paths_without_value(report: Report) -> Iterator[str]:
    """Path of every figure of a report that is None, each row by all the keys it has."""
    for section, rows in sections_of_rows(report):
        for name in figures_of(rows[0]):
            for row in rows:
                if getattr(row, name) is None:
                    yield make_path(section, _keys(row), name)
    for name in ("run", "steady", "outside_steps"):
        measures = getattr(report.totals, name)
        if measures is None:
            yield f"totals.{name}"
        else:
            yield from (f"totals.{name}.{f}" for f in figures_of(measures) if getattr(measures, f) is None)
    for name in ("matched", "sized", "named", "in_steps"):
        if getattr(report.coverage, name) is None:
            yield f"coverage.{name}"
    for name in ("median", "max"):
        if getattr(report.run.clock.residual_ns, name) is None:
            yield f"run.clock.residual_ns.{name}"
    if report.straggler is not None:
        for name in figures_of(report.straggler):
            if getattr(report.straggler, name) is None:
                yield f"straggler.{name}"


def _keys(row: Any) -> dict[str, object]:
    keys = {key: getattr(row, key) for key in KEYS if hasattr(row, key)}
    return {key: value for key, value in keys.items() if value is not None or key == "step"}


@pytest.mark.parametrize(("name", "detail"), [*((name, "full") for name in SETS), (SETS[0], "summary")])
def test_every_figure_without_a_value_has_a_reason(shared_traces: Path, name: str, detail: Any) -> None:
    report = analyze(shared_traces / name, detail=detail)
    reasons = Reasons(report.undefined)
    silent = {path for path in paths_without_value(report) if reasons.find(path) in (None, UNKNOWN_REASON)}
    assert silent == set()

"""Inputs from public bug reports (../shared/cases): each must be answered as its expected.json says.

Messages and keys of ours are worded freely; the numbers may not differ. Every key of an `expect` block has a
check here: an unknown one fails, so nothing expected goes unread.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rankscope.analyses.timeline import build_whole_timeline
from rankscope.model.report import Measures, ProblemRow, Report
from rankscope.pipeline import analyze, read_run
from rankscope.renderers.to_csv import CSV_TABLES, render_csv
from rankscope.renderers.to_html import render_html
from rankscope.renderers.to_json import render_json
from rankscope.renderers.to_markdown import render_markdown
from support.cases import Case, compare_sides, peak_memory_mib
from support.command import rankscope, strict_json

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"

US = 1000
FIGURES = {
    "compute_us": "compute_ns",
    "comm_us": "communication_ns",
    "overlap_us": "overlap_ns",
    "exposed_comm_us": "exposed_communication_ns",
    "memory_us": "memory_ns",
}
KIND_OF_WARNING = (
    (r"control character", "control-character"),
    (r"overruns the next kernel", "overrun"),
    (r"has no GPU events", "no-gpu-events"),
    (r"no ProfilerStep", "no-steps"),
    (r"no GPU events", "cpu-only"),
    (r"no communication kernels", "no-communication"),
)


def case_names() -> list[str]:
    return sorted(p.name for p in CASES.iterdir() if p.is_dir()) if CASES.is_dir() else []


def expected_of(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CASES / name / "expected.json").read_text())
    return loaded


def load(name: str) -> Case:
    folder = CASES / name
    report = None if (folder / "baseline").is_dir() else analyze(folder, detail="full")
    return Case(folder, expected_of(name)["expect"], report)


def test_the_folder_is_here_or_skipped() -> None:
    if not CASES.is_dir():
        pytest.skip("../shared/cases is not here: the cases are not part of the repository")
    assert len(case_names()) == 46


@pytest.mark.parametrize("name", [n for n in case_names() if n != "68-ci-baseline-and-candidate"])
def test_figures(name: str) -> None:
    """Compute, communication, overlap and exposed communication of each rank, in all cases that give them."""
    case = load(name)
    for rank, figures in case.expect.get("per_rank", {}).items():
        check_figures(row_of(case, rank=int(rank)), figures)


@pytest.mark.parametrize("name", case_names())
def test_case(name: str) -> None:
    """Everything else that the case expects."""
    case = load(name)
    for key, value in case.expect.items():
        CHECKS[key](case, value)


def check_figures(row: Measures, figures: dict[str, Any]) -> None:
    for key, value in figures.items():
        if key in FIGURES:
            assert getattr(row, FIGURES[key]) == round(value * US), key
        elif key == "overlap_pct":
            check_percent(row.overlap_ratio, value)
        elif key == "comm_comm_overlap_us":
            assert getattr(row, "communication_self_overlap_ns") == value * US  # noqa: B009 - not on every row
        elif key == "device":
            assert getattr(row, "device") == value  # noqa: B009
        else:
            assert key == "scope", f"no check for {key}"


def check_percent(ratio: float | None, percent: float | None) -> None:
    if percent is None:
        assert ratio is None
    else:
        assert ratio is not None
        assert 100 * ratio == pytest.approx(percent, abs=0.001)


def row_of(case: Case, *, rank: int) -> Measures:
    assert case.report is not None
    (row,) = [row for row in case.report.ranks if row.rank == rank]
    return row


def report_of(case: Case) -> Report:
    assert case.report is not None
    return case.report


def check_nothing(_case: Case, _value: Any) -> None:
    """Checked elsewhere (figures) or a text for people."""


def check_errors(case: Case, errors: list[dict[str, Any]]) -> None:
    for error in errors:
        (problem,) = [
            p for p in report_of(case).problems if p.file == error["file"] and p.severity == "error"
        ]
        if "byte_offset" in error:
            assert problem.offset == error["byte_offset"]
        if "byte_offset_range" in error:
            low, high = error["byte_offset_range"]
            assert problem.offset is not None
            assert low <= problem.offset <= high
        for text in error.get("must_contain", []):
            assert text in problem.message
    assert rankscope("analyze", case.folder).returncode == 2


def check_exit_nonzero(case: Case, expected: bool) -> None:
    assert (rankscope("analyze", case.folder).returncode != 0) == expected


def check_ranks_analysed(case: Case, ranks: list[int]) -> None:
    assert [row.rank for row in report_of(case).ranks] == ranks


def check_ranks_failed(case: Case, ranks: list[int]) -> None:
    assert report_of(case).run.missing_ranks == ranks


def check_warnings(case: Case, warnings: list[str]) -> None:
    kinds = {problem.kind for problem in report_of(case).problems}
    for warning in warnings:
        kind = next(kind for pattern, kind in KIND_OF_WARNING if re.search(pattern, warning))
        assert kind in kinds
    if "byte" in warnings[0]:
        (problem,) = [p for p in report_of(case).problems if p.kind == "control-character"]
        assert problem.offset == int(re.findall(r"byte (\d+)", warnings[0])[0])
    if "overruns" in warnings[0]:
        (problem,) = [p for p in report_of(case).problems if p.kind == "overrun"]
        assert "4.90 ms" in problem.message  # "by 4900 us"
        assert "stream 7" in problem.message


def check_strict_json(case: Case, _value: bool) -> None:
    strict_json(render_json(report_of(case), detail="full"))


def check_rank_source(case: Case, source: str) -> None:
    assert set(report_of(case).run.rank_source.values()) == {source}


def check_world_size(case: Case, world_size: int | None) -> None:
    assert report_of(case).run.world_size == world_size


def check_dropped_events(case: Case, number: int) -> None:
    (problem,) = [p for p in report_of(case).problems if p.kind == "negative-duration"]
    assert problem.message.startswith(f"{number} event")


def check_op_of_kernel(case: Case, ops: dict[str, str]) -> None:
    found = {row.name: row.op for row in report_of(case).communications}
    assert {name: found[name] for name in ops} == ops


def check_collective_count(case: Case, number: int) -> None:
    assert len(report_of(case).communications) == number


def check_config(case: Case, _text: str) -> None:
    report = analyze(case.folder, communication_patterns=["gemm"])
    assert (
        report.ranks[0].communication_kernels
        == case_row_count(case) + report_of(case).ranks[0].compute_kernels
    )


def case_row_count(case: Case) -> int:
    return report_of(case).ranks[0].communication_kernels


def check_per_collective(case: Case, percents: list[float]) -> None:
    rows = report_of(case).communications
    assert [row.started_ns for row in rows] == sorted(row.started_ns for row in rows)
    assert len(rows) == len(percents)
    for row, percent in zip(rows, percents, strict=True):
        check_percent(row.overlap_ratio, percent)


def check_ranks(case: Case, ranks: list[int]) -> None:
    assert report_of(case).run.ranks == ranks


def check_windows(case: Case, windows: Any) -> None:
    rows = report_of(case).windows
    if isinstance(windows, int):
        assert len(rows) == windows
        return
    for rank, percents in windows.items():
        mine = [row for row in rows if row.rank == int(rank)]
        assert [row.window for row in mine] == list(range(len(percents)))
        for row, percent in zip(mine, percents, strict=True):
            check_percent(row.overlap_ratio, percent)


def check_gap_is_no_idle(case: Case, counted: bool) -> None:
    assert not counted
    for rank in report_of(case).ranks:
        mine = [w for w in report_of(case).windows if w.rank == rank.rank and w.window_ns is not None]
        assert rank.window_ns == sum(w.window_ns or 0 for w in mine)
        assert rank.window_ns is not None
        assert rank.window_ns < 10_000 * US  # the gap alone is 8 s


def check_per_step_overlap(case: Case, percents: dict[str, float]) -> None:
    for step, percent in percents.items():
        (row,) = [row for row in report_of(case).steps if row.step == int(step)]
        check_percent(row.overlap_ratio, percent)


def check_per_step(case: Case, steps: dict[str, dict[str, Any]]) -> None:
    for step, figures in steps.items():
        (row,) = [row for row in report_of(case).steps if row.step == int(step)]
        check_figures(row, figures)


def check_steps(case: Case, number: int) -> None:
    assert len(report_of(case).run.steps) == number


def check_gpu_overlap(case: Case, value: None) -> None:
    assert value is None
    assert [row.device for row in report_of(case).ranks] == ["cpu"]


def check_kernel_count(case: Case, number: int) -> None:
    (row,) = report_of(case).ranks
    assert row.compute_kernels + row.communication_kernels == number


def check_outside_steps(case: Case, figures: dict[str, Any]) -> None:
    outside = report_of(case).totals.outside_steps
    assert outside is not None
    check_figures(outside, figures)


def check_per_device(case: Case, devices: dict[str, dict[str, Any]]) -> None:
    rows = {str(row.device): row for row in report_of(case).ranks}
    assert set(rows) == set(devices)
    for device, figures in devices.items():
        check_figures(rows[device], figures)


def check_straggler(case: Case, rank: int | None) -> None:
    straggler = report_of(case).straggler
    assert straggler is not None
    assert straggler.rank == rank
    assert (straggler.verdict == "found") == (rank is not None)


def check_straggler_group(case: Case, ranks: list[int]) -> None:
    straggler = report_of(case).straggler
    assert straggler is not None
    mine = [g for g in report_of(case).groups if straggler.rank in g.ranks]
    assert [g.ranks for g in mine] == [ranks]


def check_waits(case: Case, waits: dict[str, float]) -> None:
    sums = dict.fromkeys(waits, 0)
    for row in report_of(case).collectives:
        for rank, wait in (row.waits_ns or {}).items():
            sums[str(rank)] += wait
    assert sums == {rank: wait * US for rank, wait in waits.items()}


def check_transfer(case: Case, transfer: float) -> None:
    assert sum(row.transfer_ns or 0 for row in report_of(case).collectives) == transfer * US


def check_clock_offset(case: Case, offsets: dict[str, float]) -> None:
    assert report_of(case).run.clock.offsets_ns == {0: 0, 1: offsets["1_minus_0"] * US}


def check_point_to_point(case: Case, ends: dict[str, dict[str, Any]]) -> None:
    for rank, figures in ends.items():
        (row,) = [row for row in report_of(case).p2p if row.rank == int(rank)]
        assert row.wait_ns == figures["wait_us"] * US
        assert row.transfer_ns == figures["transfer_us"] * US
        assert row.peer == figures["peer"]
    assert report_of(case).collectives == []


def check_steady_overlap(case: Case, percent: float) -> None:
    steady = report_of(case).totals.steady
    assert steady is not None
    check_percent(steady.overlap_ratio, percent)


def check_buckets_per_step(case: Case, numbers: dict[str, int]) -> None:
    found = [str(row.step) for row in report_of(case).buckets]
    assert {step: found.count(step) for step in numbers} == numbers
    assert len(found) == sum(numbers.values())


def check_bucket_bytes_steady(case: Case, sizes: list[int]) -> None:
    (layout,) = [row for row in report_of(case).bucket_layouts if not row.before_rebuild]
    assert [bucket.size_bytes for bucket in layout.buckets] == sizes
    assert {row.layout for row in report_of(case).buckets if row.steady} == {layout.layout}


def check_bucket_bytes_first(case: Case, sizes: list[int]) -> None:
    assert [row.size_bytes for row in report_of(case).buckets if row.step == 0] == sizes


def check_flag(case: Case, text: str) -> None:
    assert text == "step 0 is before the bucket rebuild"
    assert {row.step for row in report_of(case).buckets if not row.steady} == {0}
    (problem,) = [p for p in report_of(case).problems if p.kind == "before-rebuild"]
    assert "0" in problem.message


def check_baseline(case: Case, figures: dict[str, Any]) -> None:
    (row,) = analyze(case.folder / "baseline").ranks
    check_figures(row, figures)


def check_candidate(case: Case, figures: dict[str, Any]) -> None:
    (row,) = analyze(case.folder / "candidate").ranks
    check_figures(row, figures)


def find_change(case: Case, name: str) -> float:
    _, tree = compare_sides(case)
    (row,) = [row for row in tree["comparison"]["figures"] if row["name"] == name]
    change: float = row["change"]
    return change


def check_change_of_overlap(case: Case, points: float) -> None:
    assert 100 * find_change(case, "overlap_ratio") == pytest.approx(points, abs=0.001)


def check_change_of_exposed(case: Case, microseconds: float) -> None:
    assert find_change(case, "exposed_communication") == microseconds * US


def check_gate(case: Case, gate: dict[str, Any]) -> None:
    status, tree = compare_sides(case, "--max-regression", f"overlap_ratio={gate['max_drop_points']}pp")
    assert (status, tree["passed"]) == ((1, False) if gate["result"] == "fail" else (0, True))


def check_any_error(case: Case, errors: list[dict[str, Any]]) -> None:
    assert any(is_answered(case, error) for error in errors)


def is_answered(case: Case, error: dict[str, Any]) -> bool:
    messages = [
        p.message for p in report_of(case).problems if p.file == error["file"] and p.severity != "note"
    ]
    said = any(all(text in message for text in error["must_contain"]) for message in messages)
    limit = error.get("peak_memory_below_MiB")
    return said and (limit is None or peak_memory_mib(case.folder) < limit)


def check_pages(case: Case, texts: list[str]) -> None:
    """No format of the report holds the text; the browser tests look at the dashboard's own pages."""
    report = report_of(case)
    timeline = build_whole_timeline(read_run(case.folder))
    for page in (render_html(report, timeline), render_markdown(report)):
        assert [text for text in texts if text in page] == []


def check_csv_cells(case: Case, begins: list[str]) -> None:
    """No row of the report names a kernel, so those of the case are put where a message would quote one."""
    report = report_of(case)
    names = {name for window in read_run(case.folder).windows for name in window.table.names}
    hostile = sorted(name for name in names if name.startswith(tuple(begins)))
    assert hostile
    quotes = [ProblemRow(file=n, offset=None, kind="k", message=n, severity="info") for n in hostile]
    report = replace(report, problems=[*report.problems, *quotes])
    cells = [
        cell
        for table in CSV_TABLES
        for row in csv.reader(io.StringIO(render_csv(report, table)))
        for cell in row
    ]
    assert [cell for cell in cells if cell.startswith(tuple(begins))] == []
    for name in hostile:
        assert f"'{name}" in cells


def check_files_written(case: Case, number: int) -> None:
    """Everything that is written lies in the output directory, whatever the names in the trace are."""
    with tempfile.TemporaryDirectory() as place:
        inside = Path(place) / "deep" / "out"
        inside.mkdir(parents=True)
        outputs = ["-o", str(inside / "report.html"), "--tables", str(inside / "tables")]
        assert rankscope("analyze", case.folder, *outputs, cwd=Path(place)).returncode == 0
        written = [path for path in Path(place).rglob("*") if path.is_file()]
        assert written
        assert len([path for path in written if inside not in path.parents]) == number


CHECKS: dict[str, Callable[[Case, Any], None]] = {
    "per_rank": check_nothing,
    "naive_wrong_answers": check_nothing,
    "acceptable_alternative": check_nothing,
    "collector_rule": check_nothing,  # tests/distributed: each rank has a path of its own
    "errors": check_errors,
    "errors_any_of": check_any_error,
    "exit_nonzero": check_exit_nonzero,
    "ranks_analysed": check_ranks_analysed,
    "ranks_failed": check_ranks_failed,
    "warnings": check_warnings,
    "report_is_strict_json": check_strict_json,
    "rank_source": check_rank_source,
    "world_size": check_world_size,
    "tolerance_us": check_nothing,
    "dropped_events": check_dropped_events,
    "op_of_kernel": check_op_of_kernel,
    "collective_count": check_collective_count,
    "config": check_config,
    "per_collective_overlap_pct": check_per_collective,
    "ranks": check_ranks,
    "windows": check_windows,
    "gap_counted_as_idle": check_gap_is_no_idle,
    "per_step_overlap_pct": check_per_step_overlap,
    "per_step": check_per_step,
    "steps": check_steps,
    "gpu_overlap_pct": check_gpu_overlap,
    "kernel_count": check_kernel_count,
    "outside_steps": check_outside_steps,
    "per_device": check_per_device,
    "straggler_rank": check_straggler,
    "straggler_group": check_straggler_group,
    "wait_us": check_waits,
    "transfer_us": check_transfer,
    "clock_offset_us": check_clock_offset,
    "missing_ranks": check_ranks_failed,
    "p2p": check_point_to_point,
    "steady_state_overlap_pct": check_steady_overlap,
    "buckets_per_step": check_buckets_per_step,
    "bucket_bytes_steady": check_bucket_bytes_steady,
    "bucket_bytes_step0": check_bucket_bytes_first,
    "flag": check_flag,
    "html_must_not_contain": check_pages,
    "csv_cell_must_not_start_with": check_csv_cells,
    "files_outside_output_dir": check_files_written,
    "baseline": check_baseline,
    "candidate": check_candidate,
    "delta_pct_points": check_change_of_overlap,
    "delta_exposed_us": check_change_of_exposed,
    "gate": check_gate,
}

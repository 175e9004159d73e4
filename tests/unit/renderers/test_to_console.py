from __future__ import annotations

import os
import re

import pytest

from rankscope.model.report import Finding, GroupRow, ProblemRow
from rankscope.renderers.console_drawing import draw_table, print_sections
from rankscope.renderers.tables import Cell, Column, finish_table
from rankscope.renderers.to_console import render_console

from .conftest import MakeRank, MakeReport, MakeStep

ESCAPE = "\x1b"


def test_nothing_measured(make_report: MakeReport) -> None:
    text = render_console(make_report(run={"name": "broken", "ranks": []}, ranks=[]))
    assert text == (
        "rankscope  broken\n0 of 1 rank\n\n"
        "Nothing was measured: the run holds no trace that could be analysed.\n"
    )


def test_the_verdict_comes_first(make_report: MakeReport) -> None:
    lines = render_console(make_report()).splitlines()
    assert lines[0] == "rankscope  run"
    assert lines[3].startswith("50.0 % of the communication time is hidden behind compute.")


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_no_line_is_longer_than_the_terminal_and_no_number_is_cut(
    width: int, make_report: MakeReport, make_rank: MakeRank, make_step: MakeStep
) -> None:
    ns = 123_000_000
    times = {
        "compute_ns": ns,
        "communication_ns": ns,
        "exposed_communication_ns": ns,
        "exposed_memory_ns": ns,
    }
    ranks = [make_rank(rank, window_ns=8 * ns, idle_ns=ns, overlap_ratio=1.0, **times) for rank in (0, 1023)]
    steps = [make_step(12345, duration_ns=8 * ns, exposed_communication_ns=ns, communication_ns=ns)]
    group = GroupRow(group="mesh_tp_and_fsdp [0-1023] " + "x" * 50, ranks=[], op="reduce_scatter", count=99_999,
                     size_bytes=999 << 30, communication_ns=ns, exposed_communication_ns=ns, overlap_ratio=1.0,
                     bus_bandwidth_gbps=123.4)  # fmt: skip
    text = render_console(make_report(ranks=ranks, steps=steps, groups=[group]), width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    if width >= 80:
        assert "…" not in text
        (row,) = [line for line in text.splitlines() if line.split()[:1] == ["1023"]]
        assert row.count("123 ms") == 5
        assert "100.0 %" in row


@pytest.mark.parametrize("width", [24, 40, 55, 69, 70, 80, 100, 120])
def test_a_number_is_whole_or_its_column_is_named(width: int) -> None:
    """None can be spared: 7 for the longest word, 9 + 5 x 8 for numbers, 6 narrow gaps of 2 and the indent: 70."""
    numbers = ["12.7 GB/s", "1.01 MiB", "3.00 ms", "87.0 us", "11.6 %", "100 ms"]
    labels = [f"Figure {letter}" for letter in "ABCDEF"]
    columns = [Column(label="What", numeric=False), *(Column(label=label) for label in labels)]
    cells = [Cell(text="a long name of several words"), *(Cell(text=number) for number in numbers)]
    table = finish_table("Buckets", columns, [cells, cells])
    text = print_sections([draw_table(table, width)], width=width, color=False)
    assert max(len(line) for line in text.splitlines()) <= width
    grid, _, note = text.partition("No room for: ")
    for label, number in zip(labels, numbers, strict=True):
        is_shown = label in grid
        assert grid.count(number) == 2 * is_shown
        assert (label in " ".join(note.split())) != is_shown
    assert ("Figure F" in grid) == (width >= 70)


def test_columns_are_left_out_where_there_is_no_room(make_report: MakeReport) -> None:
    assert "Exposed share" not in render_console(make_report(), width=80)
    assert "Exposed share" in render_console(make_report(), width=120)


def test_many_ranks_are_shortened(make_report: MakeReport, make_rank: MakeRank) -> None:
    ranks = [make_rank(rank, exposed_communication_ns=200_000 + rank) for rank in range(100)]
    text = render_console(make_report(ranks=ranks))
    assert re.search(r"^ +99 ", text, re.MULTILINE)
    assert not re.search(r"^ +83 ", text, re.MULTILINE)
    assert re.search(r"^ +median ", text, re.MULTILINE)
    assert text.count("rank 9") == 10
    assert "the 16 of 100 rows with the most exposed communication" in text


def test_the_bar_is_as_long_as_the_window(make_report: MakeReport, make_rank: MakeRank) -> None:
    """1 ms fills the 88 columns that are left of 100: 400, 200, 200, 50 and 150 us; half a window fills half."""
    half = {"window_ns": 500_000, "idle_ns": 500_000}
    nothing = {"compute_ns": 0, "overlap_ns": 0, "exposed_communication_ns": 0, "exposed_memory_ns": 0}
    text = render_console(make_report(ranks=[make_rank(0), make_rank(1, **half, **nothing)]), width=100)
    full, short = [line for line in text.splitlines() if line.startswith("  rank ")]
    bar = full.removeprefix("  rank 0 ")
    assert len(bar) == 90
    assert [bar.count(block) for block in "█▓#▒░"] == [36, 18, 18, 4, 14]
    assert short == "  rank 1 " + "░" * 45


def test_undefined_figures_say_why(make_report: MakeReport, make_rank: MakeRank) -> None:
    ranks = [make_rank(0), make_rank(1, overlap_ratio=None)]
    undefined = {"ranks[rank=1,device=0].overlap_ratio": "no communication kernels"}
    text = render_console(make_report(ranks=ranks, undefined=undefined))
    assert "Hidden of rank 1: n/a (no communication kernels)" in text


def test_findings_and_problems(make_report: MakeReport) -> None:
    finding = Finding(
        rule="r", severity="warning", rank=3, step=5, message="It is slow.", hint="Make it fast."
    )
    problems = [
        ProblemRow(file=f"{i}.json", offset=1234, kind="k", message="Cut.", severity="error")
        for i in range(30)
    ]
    text = render_console(make_report(findings=[finding], problems=problems))
    assert "  warning  rank 3, step 5: It is slow.\n           → Make it fast.\n" in text
    assert "  error  0.json, byte 1,234\n         Cut.\n" in text
    assert "10 more are in the JSON report." in text


def test_names_cannot_act_on_the_terminal_or_the_runner(make_report: MakeReport) -> None:
    evil = "\x1b[2J\r\n::error::boo \u202e[bold]x[/bold] :smile:"
    report = make_report(
        run={"name": evil, "devices": {0: evil}},
        groups=[GroupRow(group=evil, ranks=[], op=evil, count=1, size_bytes=None, communication_ns=1,
                         exposed_communication_ns=1, overlap_ratio=None)],
        findings=[Finding(rule="r", severity="info", rank=None, step=None, message=evil, hint=evil)],
        problems=[ProblemRow(file=evil, offset=None, kind="k", message=evil, severity=evil)],
        undefined={"groups[*].overlap_ratio": evil},
    )  # fmt: skip
    text = render_console(report, width=80)
    assert not set("\x1b\r\u202e") & set(text)
    assert not re.search(r"^\s*::", text, re.MULTILINE)
    assert "[bold]" in text
    assert ":smile:" in text


def test_color_is_the_callers_choice_alone(make_report: MakeReport, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, colored = render_console(make_report()), render_console(make_report(), color=True)
    assert ESCAPE not in plain
    assert ESCAPE in colored
    environments = (
        {"NO_COLOR": "1"},
        {"FORCE_COLOR": "1"},
        {"TERM": "dumb"},
        {"COLUMNS": "40", "LINES": "9"},
    )
    for environment in environments:
        with monkeypatch.context() as patch:
            for key, value in environment.items():
                patch.setitem(os.environ, key, value)
            assert render_console(make_report()) == plain
            assert render_console(make_report(), color=True) == colored


def test_lines_do_not_end_in_blanks(make_report: MakeReport) -> None:
    text = render_console(make_report())
    assert not re.search(r"[ \t]$", text, re.MULTILINE)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")

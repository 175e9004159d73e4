from __future__ import annotations

from rankscope.model.report import Finding, GroupRow, ProblemRow
from rankscope.renderers.report_tables import (
    build_group_table,
    build_problem_table,
    build_rank_table,
    build_step_table,
    name_place,
    name_rank,
    sort_findings,
)
from rankscope.renderers.tables import Table

from .conftest import MakeRank, MakeReport, MakeStep


def read(table: Table) -> list[dict[str, str]]:
    """The rows as heading -> text."""
    return [
        {column.label: cell.text for column, cell in zip(table.columns, row, strict=True)}
        for row in table.rows
    ]


def make_group(**changed: object) -> GroupRow:
    known: dict[str, object] = {
        "group": "dp",
        "ranks": [0, 1],
        "op": "all_reduce",
        "count": 3,
        "size_bytes": 2048,
        "communication_ns": 4_000,
        "exposed_communication_ns": 1_000,
        "overlap_ratio": 0.75,
        "bus_bandwidth_gbps": 1.234,
    }
    return GroupRow(**{**known, **changed})  # type: ignore[arg-type]


def test_no_rows(make_report: MakeReport) -> None:
    report = make_report(ranks=[])
    for build in (build_rank_table, build_step_table, build_group_table, build_problem_table):
        table = build(report, 10)
        assert table.rows == ()
        assert table.notes == ()


def test_a_row_per_rank(make_report: MakeReport, make_rank: MakeRank) -> None:
    table = build_rank_table(make_report(ranks=[make_rank(0), make_rank(3)]), 10)
    assert read(table)[1] == {
        "Rank": "3",
        "Window": "1.00 ms",
        "Compute": "600 us",
        "Communication": "400 us",
        "Hidden": "50.0 %",
        "Exposed": "200 us",
        "Exposed share": "20.0 %",
        "Exposed memory": "50.0 us",
        "Idle": "150 us",
    }


def test_hosts_are_shown_where_there_are_several(make_report: MakeReport, make_rank: MakeRank) -> None:
    ranks = [make_rank(0, host="a"), make_rank(1)]
    assert "Host" not in read(build_rank_table(make_report(ranks=ranks), 10))[0]
    table = build_rank_table(make_report(ranks=ranks, run={"host": {0: "a", 1: "b\n"}}), 10)
    assert [row["Host"] for row in read(table)] == ["a", r"b\n"]


def test_devices_are_named_where_a_rank_has_several(make_report: MakeReport, make_rank: MakeRank) -> None:
    ranks = [make_rank(0, device=1), make_rank(0, device=2)]
    report = make_report(ranks=ranks)
    assert [name_rank(report, row) for row in ranks] == ["0 (GPU 1)", "0 (GPU 2)"]


def test_many_ranks_are_cut_to_the_worst_and_the_median(make_report: MakeReport, make_rank: MakeRank) -> None:
    """Exposed 100, 300, 200, 500, 400 us: the two worst are ranks 3 and 4, the median 300 us."""
    exposed = [100_000, 300_000, 200_000, 500_000, 400_000]
    ranks = [make_rank(rank, exposed_communication_ns=ns) for rank, ns in enumerate(exposed)]
    table = build_rank_table(make_report(ranks=ranks), 2)
    assert [(row["Rank"], row["Exposed"]) for row in read(table)] == [
        ("3", "500 us"),
        ("4", "400 us"),
        ("median", "300 us"),
    ]
    assert table.notes == (
        "Shown: the 2 of 5 rows with the most exposed communication, and the median of all.",
    )


def test_undefined_figures_carry_the_reason_of_their_row(
    make_report: MakeReport, make_rank: MakeRank
) -> None:
    table = build_rank_table(
        make_report(
            ranks=[make_rank(0), make_rank(1, overlap_ratio=None)],
            undefined={"ranks[rank=1,device=0].overlap_ratio": "no communication kernels"},
        ),
        10,
    )
    assert table.notes == ("Hidden of rank 1: n/a (no communication kernels)",)


def test_a_row_per_step(make_report: MakeReport, make_step: MakeStep) -> None:
    steps = [make_step(1, steady=False), make_step(2), make_step(None, steady=False, duration_ns=None)]
    first, second, outside = read(build_step_table(make_report(steps=steps), 10))
    assert (first["Step"], first["Steady"]) == ("1", "no")
    assert second == {
        "Step": "2",
        "Steady": "yes",
        "Duration": "500 us",
        "Communication": "400 us",
        "Hidden": "50.0 %",
        "Hidden, worst rank": "50.0 %",
        "Exposed": "200 us",
        "Exposed share": "40.0 %",
    }
    assert (outside["Step"], outside["Duration"]) == ("outside steps", "n/a")


def test_many_steps_are_cut_to_the_worst(make_report: MakeReport, make_step: MakeStep) -> None:
    steps = [make_step(step, exposed_communication_ns=1000 * step) for step in range(9)]
    table = build_step_table(make_report(steps=steps), 3)
    assert [row["Step"] for row in read(table)] == ["6", "7", "8"]
    assert table.notes[-1] == "Shown: the 3 of 9 steps with the most exposed communication."


def test_groups_stand_in_order_of_what_they_expose(make_report: MakeReport) -> None:
    groups = [
        make_group(),
        make_group(op="broadcast", exposed_communication_ns=2_000),
        make_group(op="barrier"),
    ]
    table = build_group_table(make_report(groups=groups), 2)
    assert [row["Operation"] for row in read(table)] == ["broadcast", "all_reduce"]
    assert read(table)[1] == {
        "Group": "dp",
        "Operation": "all_reduce",
        "Count": "3",
        "Bytes": "2 KiB",
        "Time": "4.00 us",
        "Hidden": "75.0 %",
        "Exposed": "1.00 us",
        "Bus bandwidth": "1.23 GB/s",
    }
    assert table.notes[-1] == "Shown: the 2 of 3 rows with the most exposed communication."


def test_a_group_says_why_it_has_no_size(make_report: MakeReport) -> None:
    name = "default_pg [0-1], x].y"
    table = build_group_table(
        make_report(
            groups=[make_group(group=name, size_bytes=None), make_group()],
            undefined={f"groups[group={name},op=all_reduce].size_bytes": "no sizes in the trace"},
        ),
        10,
    )
    assert f"Bytes of group {name}: n/a (no sizes in the trace)" in table.notes


def test_the_gravest_problems_come_first(make_report: MakeReport) -> None:
    problems = [
        ProblemRow(file="", offset=None, kind="k", message="note", severity="note"),
        ProblemRow(file="a\x1b.json", offset=1234, kind="k", message="lost", severity="error"),
        ProblemRow(file="c", offset=None, kind="k", message="odd", severity="warning"),
    ]
    table = build_problem_table(make_report(problems=problems), 2)
    assert read(table) == [
        {"Severity": "error", "File": r"a\x1b.json", "Byte": "1,234", "What": "lost"},
        {"Severity": "warning", "File": "c", "Byte": "", "What": "odd"},
    ]
    assert table.notes == ("1 more are in the JSON report.",)


def test_findings(make_report: MakeReport) -> None:
    findings = [
        Finding(rule="a", severity="info", rank=None, step=None, message="m", hint=""),
        Finding(rule="b", severity="critical", rank=3, step=5, message="m", hint=""),
    ]
    ordered = sort_findings(make_report(findings=findings))
    assert [finding.rule for finding in ordered] == ["b", "a"]
    assert [name_place(finding) for finding in ordered] == ["rank 3, step 5", "all ranks"]

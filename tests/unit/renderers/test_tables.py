from __future__ import annotations

from rankscope.renderers.tables import (
    Cell,
    Column,
    count_cell,
    duration_cell,
    finish_table,
    keep_worst,
    ratio_cell,
    size_cell,
    take_median,
    text_cell,
    undefined_cell,
)

COLUMNS = (Column(label="Rank"), Column(label="Hidden"), Column(label="Bandwidth"))


def test_no_rows() -> None:
    table = finish_table("Ranks", COLUMNS, [])
    assert table.rows == ()
    assert table.notes == ()
    assert [column.label for column in table.columns] == ["Rank", "Hidden", "Bandwidth"]


def test_cells_show_text_and_keep_the_number() -> None:
    assert duration_cell(1_500_000) == Cell(text="1.50 ms", value=1_500_000)
    assert duration_cell(0) == Cell(text="0 ns", value=0)
    assert ratio_cell(0.25) == Cell(text="25.0 %", value=0.25)
    assert size_cell(26_214_400) == Cell(text="25 MiB", value=26_214_400)
    assert count_cell(12_345) == Cell(text="12,345", value=12_345)
    assert text_cell("a\nb") == Cell(text=r"a\nb")


def test_an_undefined_figure_is_neither_zero_nor_blank() -> None:
    assert ratio_cell(None, "no communication") == Cell(text="n/a", reason="no communication")
    assert duration_cell(None) == Cell(text="n/a", reason="the report gives no reason")
    assert undefined_cell("two\nlines").reason == r"two\nlines"


def test_a_note_tells_which_rows_are_undefined_and_why() -> None:
    rows = [
        (Cell(text="0"), ratio_cell(0.5), ratio_cell(0.5)),
        (Cell(text="1"), undefined_cell("no communication"), undefined_cell("no communication")),
        (Cell(text="2"), undefined_cell("no communication"), undefined_cell("not matched")),
    ]
    table = finish_table("Ranks", COLUMNS, rows, ["A last line."])
    assert table.notes == (
        "Hidden of rank 1, 2: n/a (no communication)",
        "Bandwidth of rank 1, 2: n/a (no communication; not matched)",
        "A last line.",
    )


def test_columns_with_the_same_gap_share_a_note() -> None:
    rows = [
        (Cell(text="0"), ratio_cell(0.5), ratio_cell(0.5)),
        (Cell(text="1"), undefined_cell("x"), undefined_cell("x")),
    ]
    assert finish_table("Ranks", COLUMNS, rows).notes == ("Hidden, Bandwidth of rank 1: n/a (x)",)


def test_a_column_that_is_undefined_for_one_reason_becomes_a_note() -> None:
    rows = [(Cell(text=str(i)), ratio_cell(0.5), undefined_cell("not matched")) for i in range(3)]
    table = finish_table("Ranks", COLUMNS, rows)
    assert [column.label for column in table.columns] == ["Rank", "Hidden"]
    assert table.notes == ("Bandwidth: n/a (not matched)",)


def test_many_undefined_rows_are_counted() -> None:
    rows = [(Cell(text="ok"), ratio_cell(0.5), ratio_cell(0.5))]
    rows += [(Cell(text=str(i)), undefined_cell("x"), ratio_cell(0.5)) for i in range(9)]
    assert finish_table("Ranks", COLUMNS, rows).notes == (
        "Hidden of rank 0, 1, 2, 3, 4, 5 and 3 more: n/a (x)",
    )


def test_the_worst_rows_keep_their_order() -> None:
    assert keep_worst([5, 1, 9, 7], lambda row: row, 2) == ((9, 7), 2)
    assert keep_worst([5, 1], lambda row: row, 2) == ((5, 1), 0)
    assert keep_worst([], lambda row: row, 2) == ((), 0)


def test_of_equal_rows_the_first_are_kept() -> None:
    assert keep_worst(["a", "b", "c"], lambda row: 0, 2) == (("a", "b"), 1)


def test_medians_leave_out_what_is_unknown() -> None:
    assert take_median([]) is None
    assert take_median([None]) is None
    assert take_median([10, None, 20, 90]) == 20
    assert take_median([9_007_199_254_740_993]) == 9_007_199_254_740_993

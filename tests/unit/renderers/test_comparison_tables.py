from __future__ import annotations

from dataclasses import replace

from rankscope.gate.compare import compare
from rankscope.renderers.comparison_tables import build_figure_table
from support.gate_reports import MS, make_side, make_snapshot


def test_figures_undefined_for_one_reason_share_a_note_and_no_column_is_lost() -> None:
    head = make_snapshot([0.5] * 4)
    known: dict[str, float | None] = {"idle": 3.0 * MS, "window": 9.0 * MS}
    base = replace(head, figures={}, undefined=dict.fromkeys([*head.figures, *known], "lost"), samples={})
    head = replace(head, figures=known)
    table = build_figure_table(compare(make_side(base), make_side(head)), "run")
    assert [column.label for column in table.columns][:4] == ["Figure", "Base", "Head", "Change"]
    assert [[cell.text for cell in row][:4] for row in table.rows] == [
        ["idle", "n/a", "3.000 ms", "n/a"],
        ["recorded window", "n/a", "9.000 ms", "n/a"],
    ]
    assert table.notes[0] == "idle, recorded window: n/a (base: lost)"

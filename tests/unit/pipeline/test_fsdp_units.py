"""FSDP's all-gathers and reduce-scatters, by module, in the table of buckets."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankscope.pipeline import analyze
from rankscope.renderers.to_console import render_console
from rankscope.testing.synth import ddp_run, fsdp_run, write_run


def test_units_of_a_step_in_order(tmp_path: Path) -> None:
    """Three layers: gathers 0, 1, 2 forward; backward gathers 1 and 0 ahead and reduces 2, 1, 0 (2 stays gathered).

    All-gather 600 us and reduce-scatter 800 us of 25,165,824 bytes over 4 ranks: bus bandwidth 3/4 x size / time. Only
    the first all-gather and the last reduce-scatter have nothing beside them.
    """
    write_run(fsdp_run(layers=3, steps=2, gather_ns=600_000, scatter_ns=800_000), tmp_path)
    report = analyze(tmp_path)
    (layout,) = report.bucket_layouts
    assert (layout.module, layout.parameters_from) == ("FSDP", "annotations")
    assert [(b.op, *b.parameters) for b in layout.buckets] == [
        ("all_gather", "layers.0"),
        ("all_gather", "layers.1"),
        ("all_gather", "layers.2"),
        ("all_gather", "layers.1"),
        ("reduce_scatter", "layers.2"),
        ("all_gather", "layers.0"),
        ("reduce_scatter", "layers.1"),
        ("reduce_scatter", "layers.0"),
    ]
    rows = [b for b in report.buckets if (b.rank, b.step) == (1, 1)]
    assert [b.index for b in sorted(rows, key=lambda b: b.index)] == list(range(8))
    for row in rows:
        time_ns = 600_000 if row.op == "all_gather" else 800_000
        assert row.size_bytes == 25_165_824
        assert row.transfer_ns == time_ns
        assert row.bus_bandwidth_gbps == pytest.approx(0.75 * 25_165_824 / time_ns)
        assert row.exposed_ns == (time_ns if row.index in (0, 7) else 0)
        assert (row.ready_ns is None) == (row.op == "all_gather")
    assert report.advice is None


def test_the_table_names_units(tmp_path: Path) -> None:
    write_run(fsdp_run(layers=3, steps=2), tmp_path)
    text = render_console(analyze(tmp_path), width=140)
    assert "7 layers.0 reduce_scatter" in text
    assert "DDP sends" not in text


def test_without_annotations_there_are_none(tmp_path: Path) -> None:
    write_run(ddp_run(), tmp_path)
    assert {layout.module for layout in analyze(tmp_path).bucket_layouts} != {"FSDP"}

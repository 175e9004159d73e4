"""What a table of events answers about its rows."""

from __future__ import annotations

from rankscope.model.categories import Category, EventClass
from rankscope.model.table import CPU_DEVICE, empty_table
from support.reading import table_of
from support.trace_text import annotation, cpu_op, kernel, memcpy, nccl


def test_empty_table() -> None:
    table = empty_table()
    assert len(table) == 0
    assert table.gpu_devices() == ()
    assert table.rows_of_class(EventClass.COMPUTE, 0).tolist() == []
    assert table.rows_of_category(Category.KERNEL).tolist() == []
    assert table.rows_named(frozenset({"gemm"})).tolist() == []
    assert len(table.shifted(5)) == 0


def test_rows_by_class_device_category_and_name() -> None:
    table = table_of(
        [
            kernel("gemm", 0, 10),
            kernel("gemm", 1, 10, device=1),
            nccl(2, 10),
            memcpy(3, 10),
            cpu_op("gemm", 4, 10),
            annotation("mark", 5, 10),
        ]
    )
    assert table.rows_of_class(EventClass.COMPUTE, 0).tolist() == [0]
    assert table.rows_of_class(EventClass.COMPUTE, 1).tolist() == [1]
    assert table.rows_of_class(EventClass.COMMUNICATION, 0).tolist() == [2]
    assert table.rows_of_class(EventClass.MEMORY, 0).tolist() == [3]
    assert table.rows_of_class(EventClass.HOST, CPU_DEVICE).tolist() == [4]
    assert table.rows_of_category(Category.KERNEL).tolist() == [0, 1, 2]
    assert table.rows_named(frozenset({"gemm", "mark", "absent"})).tolist() == [0, 1, 4, 5]
    assert table.gpu_devices() == (0, 1)
    assert table.end_ns.tolist() == [10_000, 11_000, 12_000, 13_000, 14_000, 15_000]


def test_shifted_moves_every_row() -> None:
    table = table_of([kernel("a", 1, 2), kernel("b", 5, 2)]).shifted(-1_000)
    assert table.start_ns.tolist() == [0, 4_000]
    assert table.duration_ns.tolist() == [2_000, 2_000]

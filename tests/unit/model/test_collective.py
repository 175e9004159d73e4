"""Sizes and bandwidth factors of collectives, with the numbers of DESIGN.md section 2."""

from __future__ import annotations

import pytest

from rankscope.model.collective import (
    algorithm_bandwidth_gbps,
    bus_factor,
    dtype_name,
    element_size_bytes,
    sized_elements,
)


@pytest.mark.parametrize(
    ("spellings", "name", "size"),
    [
        (("Float", "float", "float32", "c10::float32"), "float32", 4),
        (("Half", "float16", "c10::Half"), "float16", 2),
        (("BFloat16", "bfloat16", "c10::BFloat16"), "bfloat16", 2),
        (("Double", "float64"), "float64", 8),
        (("Int", "int", "int32"), "int32", 4),
        (("Long", "long int", "int64"), "int64", 8),
        (("Byte", "unsigned char", "uint8"), "uint8", 1),
        (("Char", "signed char", "int8"), "int8", 1),
        (("Float8_e4m3fn",), "float8_e4m3fn", 1),
        (("Bool",), "bool", 1),
    ],
)
def test_spellings_of_a_dtype(spellings: tuple[str, ...], name: str, size: int) -> None:
    assert {dtype_name(text) for text in spellings} == {name}
    assert {element_size_bytes(text) for text in spellings} == {size}


def test_an_unknown_dtype_keeps_its_name_and_has_no_size() -> None:
    assert dtype_name("Posit16") == "Posit16"
    assert element_size_bytes("Posit16") is None
    assert dtype_name(None) is None
    assert element_size_bytes(None) is None


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        ("all_reduce", 64),
        ("all_gather", 512),
        ("reduce_scatter", 64),
        ("all_to_all", 64),
        ("broadcast", 64),
        ("reduce", 64),
        ("send", 64),
        ("recv", 64),
    ],
)
def test_size_is_in_except_for_all_gather(op: str, wanted: int) -> None:
    assert sized_elements(op, 64, 512) == wanted


def test_size_without_the_number_that_counts_is_unknown() -> None:
    assert sized_elements("all_gather", 64, None) is None
    assert sized_elements("all_reduce", None, 64) is None
    assert sized_elements("all_reduce", -1, 64) is None
    assert sized_elements("all_reduce", 0, 0) == 0


@pytest.mark.parametrize(
    ("op", "factor"),
    [
        ("all_reduce", 1.75),  # 2 x 7 / 8
        ("all_gather", 0.875),  # 7 / 8
        ("reduce_scatter", 0.875),
        ("all_to_all", 0.875),
        ("gather", 0.875),
        ("scatter", 0.875),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("send", 1.0),
        ("recv", 1.0),
        ("barrier", None),
        ("unknown", None),
    ],
)
def test_bus_factor_of_eight_ranks(op: str, factor: float | None) -> None:
    assert bus_factor(op, 8) == factor


def test_bus_factor_of_few_ranks() -> None:
    assert bus_factor("all_reduce", 2) == 1.0
    assert bus_factor("all_reduce", 1) == 0.0
    assert bus_factor("all_reduce", 0) is None


def test_algorithm_bandwidth() -> None:
    """25 MiB in 1 ms: 26,214,400 B / 1,000,000 ns = 26.2144 B/ns = 26.2144e9 B/s."""
    assert algorithm_bandwidth_gbps(26_214_400, 1_000_000) == 26.2144
    assert algorithm_bandwidth_gbps(1, 0) is None

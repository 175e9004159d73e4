"""Times and sizes as a person reads them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankscope.units import NS_PER_MS, NS_PER_S, NS_PER_US, format_duration, format_size

_NS_OF = {"ns": 1, "us": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S}
_BYTES_OF = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 us"),
        (9_994, "9.99 us"),
        (9_996, "10.0 us"),
        (99_960, "100 us"),
        (999_499, "999 us"),
        (999_999, "1.00 ms"),
        (-999_999, "-1.00 ms"),
        (999_999_999, "1.00 s"),
        (1_234_567_890_123, "1235 s"),
    ],
)
def test_durations(ns: int, text: str) -> None:
    assert format_duration(ns) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1048, "1.02 KiB"),
        (1_047_000, "1022 KiB"),
        ((1 << 20) - 1, "1.00 MiB"),
        ((1 << 30) - 1, "1.00 GiB"),
        (5 << 40, "5120 GiB"),
        (-26_214_400, "-25 MiB"),
    ],
)
def test_sizes(size_bytes: int, text: str) -> None:
    assert format_size(size_bytes) == text


@given(st.integers(0, 10**15))
def test_a_duration_reads_back_to_three_digits(ns: int) -> None:
    assert _read(format_duration(ns), _NS_OF) == pytest.approx(ns, rel=0.00501)


@given(st.integers(0, 1 << 45))
def test_a_size_reads_back_to_three_digits(size_bytes: int) -> None:
    assert _read(format_size(size_bytes), _BYTES_OF) == pytest.approx(size_bytes, rel=0.00501)


@given(st.integers(0, NS_PER_S - 1))
def test_no_duration_below_a_second_takes_four_digits(ns: int) -> None:
    assert len(re.sub(r"\D", "", format_duration(ns))) <= 3


def _read(text: str, units: dict[str, int]) -> float:
    number, unit = text.split()
    return float(number) * units[unit]

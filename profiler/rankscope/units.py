"""Units: the only place that converts between ns, us, ms and s, and the text of times and sizes.

Inside, a time is an int64 count of nanoseconds and a size a count of bytes; names carry the unit.
"""

from __future__ import annotations

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_DURATION_STEPS = ((NS_PER_US, "us"), (NS_PER_MS, "ms"))
_SIZE_STEPS = ((1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"))


def us_to_ns(us: float) -> int:
    """Nanoseconds of `us` microseconds, to the nearest.

    >>> us_to_ns(1.5)
    1500
    """
    return round(us * NS_PER_US)


def ns_to_us(ns: float) -> float:
    """Microseconds of `ns` nanoseconds.

    >>> ns_to_us(1500)
    1.5
    """
    return ns / NS_PER_US


def ns_to_ms(ns: float) -> float:
    """Milliseconds of `ns` nanoseconds.

    >>> ns_to_ms(1_500_000)
    1.5
    """
    return ns / NS_PER_MS


def ms_to_ns(ms: float) -> int:
    """Nanoseconds of `ms` milliseconds, to the nearest.

    >>> ms_to_ns(1.5)
    1500000
    """
    return round(ms * NS_PER_MS)


def ns_to_s(ns: float) -> float:
    """Seconds of `ns` nanoseconds.

    >>> ns_to_s(1_500_000_000)
    1.5
    """
    return ns / NS_PER_S


def s_to_ns(s: float) -> int:
    """Nanoseconds of `s` seconds, to the nearest.

    >>> s_to_ns(1.5)
    1500000000
    """
    return round(s * NS_PER_S)


def format_duration(ns: int) -> str:
    """Text of a duration with three significant digits and a unit a person reads.

    >>> format_duration(41_067_730)
    '41.1 ms'
    >>> format_duration(980)
    '980 ns'
    >>> format_duration(-2_500)
    '-2.50 us'
    >>> format_duration(999_999)
    '1.00 ms'
    """
    if abs(ns) < NS_PER_US:
        return f"{ns} ns"
    for divisor, unit in _DURATION_STEPS:
        # As shown, not as it is: 999.9996 us would become "1000 us".
        if round(abs(ns) / divisor) < 1000:
            return f"{_three_digits(ns / divisor)} {unit}"
    return f"{_three_digits(ns / NS_PER_S)} s"


def format_size(size_bytes: int) -> str:
    """Text of a size in binary units, as PyTorch counts buckets.

    >>> format_size(26_214_400)
    '25 MiB'
    >>> format_size(1_050_624)
    '1.00 MiB'
    >>> format_size(17)
    '17 B'
    >>> format_size((1 << 20) - 1)
    '1.00 MiB'
    """
    if abs(size_bytes) < _SIZE_STEPS[0][0]:
        return f"{size_bytes} B"
    # As shown, not as it is, as for durations.
    step, unit = next((s for s in _SIZE_STEPS if round(abs(size_bytes) / s[0]) < 1024), _SIZE_STEPS[-1])
    is_whole = size_bytes % step == 0
    return f"{size_bytes // step if is_whole else _three_digits(size_bytes / step)} {unit}"


def format_ratio(ratio: float) -> str:
    """Text of a ratio as a percentage with one decimal.

    >>> format_ratio(0.363008)
    '36.3 %'
    """
    return f"{100 * ratio:.1f} %"


def _three_digits(value: float) -> str:
    size = abs(value)
    if round(size, 1) >= 100:
        return f"{value:.0f}"
    if round(size, 2) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"

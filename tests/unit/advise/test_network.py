"""The network behind transfers: latency, time per byte, protocol steps, and when it cannot be told."""

from __future__ import annotations

import random

import pytest

from rankscope.advise.network import Network, change_network, fit_network

KIB = 1 << 10


def line(latency_ns: float, ns_per_byte: float, sizes: list[int]) -> list[tuple[int, float]]:
    return [(size, latency_ns + ns_per_byte * size) for size in sizes]


def test_an_exact_line_is_found() -> None:
    """56 Gb/s InfiniBand, 16 GPUs (FACTS.md): a = 236 us, b = 4.1e-10 s/byte = 0.41 ns/byte."""
    sizes = [64 * KIB << i for i in range(8)]
    network = fit_network(line(236_000, 0.41, sizes), ranks=16, source="calibration")
    assert network is not None
    assert network.latency_ns == pytest.approx(236_000)
    assert network.transfer_ns(10_000_000) == pytest.approx(236_000 + 4_100_000)
    assert network.bus_bandwidth_gbps == pytest.approx(2 * 15 / 16 / 0.41)
    assert (network.confidence, len(network.pieces)) == ("high", 1)


def test_noise_of_ten_percent_moves_the_line_little() -> None:
    random.seed(5)
    exact = line(50_000, 0.1, [64 * KIB << i for i in range(9)] * 9)
    noisy = [(size, t * random.uniform(0.9, 1.1)) for size, t in exact]
    network = fit_network(noisy, ranks=4, source="calibration")
    assert network is not None
    for size, t in exact:
        assert network.transfer_ns(size) == pytest.approx(t, rel=0.1)


def test_a_protocol_step_makes_two_pieces() -> None:
    """Up to 1 MiB 20 us + 1 ns/byte, from 2 MiB on 800 us + 0.1 ns/byte."""
    small = line(20_000, 1.0, [64 * KIB << i for i in range(5)])
    large = line(800_000, 0.1, [2048 * KIB << i for i in range(5)])
    network = fit_network([*small, *large], ranks=2, source="calibration")
    assert network is not None
    assert len(network.pieces) == 2
    assert network.transfer_ns(100 * KIB) == pytest.approx(20_000 + 100 * KIB)
    assert network.transfer_ns(16 << 20) == pytest.approx(800_000 + 0.1 * (16 << 20))


@pytest.mark.parametrize("sizes", [[], [1000], [1000, 1000, 1000], [1000, 1500, 1900]])
def test_sizes_too_much_alike_tell_nothing(sizes: list[int]) -> None:
    assert fit_network(line(10, 1, sizes), ranks=2, source="run") is None


def test_nothing_is_negative() -> None:
    """Times that grow faster than the sizes: the line would start below zero."""
    network = fit_network([(1000, 500.0), (2000, 2000.0), (4000, 4400.0)], ranks=2, source="run")
    assert network is not None
    assert network.latency_ns == 0
    assert network.transfer_ns(1) > 0
    falling = fit_network([(1000, 900.0), (4000, 500.0)], ranks=2, source="run")
    assert falling is not None
    assert falling.bus_bandwidth_gbps is None
    assert falling.transfer_ns(10**9) >= 500


def two_ranks() -> Network:
    network = fit_network(line(100_000, 1.0, [1_000_000, 4_000_000]), ranks=2, source="run")
    assert network is not None
    return network


def test_more_ranks_by_the_ring_formula() -> None:
    """2 -> 8 ranks: 7 times the rounds, and 2*7/8 instead of 2*1/2 of the size over each link."""
    network = change_network(two_ranks(), world_size=8)
    assert network.latency_ns == pytest.approx(700_000)
    assert network.transfer_ns(1_000_000) == pytest.approx(700_000 + 1_750_000)


def test_a_given_network() -> None:
    """12 GB/s on the bus of 4 ranks: 1.5 x size / 12 bytes per ns."""
    network = change_network(two_ranks(), bandwidth_gbps=12, latency_us=30, world_size=4)
    assert network.transfer_ns(8_000_000) == pytest.approx(30_000 + 1_000_000)
    assert network.source == "given"
    assert network.bus_bandwidth_gbps == pytest.approx(12)

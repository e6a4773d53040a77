"""Compare energies for the journal's Table I (1 GHz, 8 FLOPs/cycle, 1e-28, 100 mW, 200 mW) with hand computations."""

import pytest

from edgefl.channel.energy import compute_energy_j, compute_time_s, transfer_energy_j

CPU = {"clock_hz": 1e9, "flops_per_cycle": 8.0}
# the SVHN model has 667,178 parameters x 91.04 FLOPs, trained in 5 iterations of 128 samples
SVHN_FLOPS = 667_178 * 91.04


def test_a_transfer_costs_its_airtime_its_waiting_and_its_bits() -> None:
    assert transfer_energy_j(0.1, 2.0, 0.0, 5.0, 0.0) == 0.1 * 2.0
    assert transfer_energy_j(4.0, 2.0, 0.5, 5.0, 0.25) == 4.0 * 2.0 + 0.5 * 5.0 + 0.25


def test_compute_time_and_energy_of_svhn() -> None:
    # 60,739,885.12 FLOPs x 5 x 128 = 3.88735264768e10 FLOPs = 4.8591908096e9 cycles
    cycles = 4.8591908096e9
    assert compute_time_s(SVHN_FLOPS, 5 * 128, **CPU) == pytest.approx(cycles / 1e9, rel=1e-12)
    energy_j = compute_energy_j(SVHN_FLOPS, 5 * 128, capacitance=1e-28, **CPU)
    # 1e-28 x cycles x (1e9)^2
    assert energy_j == pytest.approx(0.48591908096, rel=1e-12)


def test_twice_the_clock_halves_the_time_and_quadruples_the_energy() -> None:
    fast = {**CPU, "clock_hz": 2e9}
    assert compute_time_s(1e6, 5 * 128, **fast) == compute_time_s(1e6, 5 * 128, **CPU) / 2
    slow_j = compute_energy_j(1e6, 5 * 128, capacitance=1e-28, **CPU)
    assert compute_energy_j(1e6, 5 * 128, capacitance=1e-28, **fast) == pytest.approx(4 * slow_j, rel=1e-15)


def test_no_work_costs_nothing() -> None:
    assert compute_time_s(1e6, 0, **CPU) == 0
    assert compute_energy_j(1e6, 0, capacitance=1e-28, **CPU) == 0

"""SNR of a link from its large-scale gain, by hand."""

from typing import Any

import numpy as np
import pytest
import simpy

from edgefl.engine.gains import Survey
from edgefl.engine.radio import Radio
from edgefl.engine.settings import RadioSettings
from edgefl.rng import Streams

GAINS_DB = np.array([-90.0, -110.0])
OTHERS = np.array([1e-11, 4e-11])  # linear gain to all other sites together
NOISE_W = 10 ** ((-174 - 30) / 10) * 100e6
SERVER_W, DEVICE_W = 10 ** (43 / 10) / 1000, 0.2


def snr(**options: Any) -> dict[str, np.ndarray]:
    radio = Radio(
        simpy.Environment(),
        settings=RadioSettings(**options),
        device_power_w=DEVICE_W,
        speeds_m_s=np.zeros(2),
        gains=None,  # type: ignore[arg-type]  # not asked here
        streams=Streams(1),
    )
    found: dict[str, np.ndarray] = radio.snr(Survey([0, 1], GAINS_DB, np.array([50.0, 90.0]), OTHERS))
    return found


def test_journal_powers_over_thermal_noise() -> None:
    found = snr()
    gains = 10 ** (GAINS_DB / 10)
    assert found["downlink"] == pytest.approx(SERVER_W * gains / NOISE_W)
    assert found["uplink"] == pytest.approx(DEVICE_W * gains / NOISE_W)


def test_noise_figure_and_margin_raise_the_noise() -> None:
    plain, noisy = snr(), snr(noise_figure_db=7.0, interference_margin_db=3.0)
    for direction in ("downlink", "uplink"):
        assert noisy[direction] == pytest.approx(plain[direction] / 10)


def test_neighbours_interfere_in_the_downlink_by_their_load() -> None:
    """SINR = P g / (N + load P sum of the other sites' gains)."""
    load = 0.4
    plain, loaded = snr(), snr(neighbour_load=load)
    gains = 10 ** (GAINS_DB / 10)
    assert loaded["downlink"] == pytest.approx(SERVER_W * gains / (NOISE_W + load * SERVER_W * OTHERS))
    assert loaded["uplink"] == pytest.approx(plain["uplink"])

"""Compare the SNR of a link with its derivation from the large-scale gain."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import simpy

from edgefl.engine.air.gains import LargeScaleState
from edgefl.engine.air.links import Links
from edgefl.engine.air.radio import Radio
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.rng import Streams

GAINS_DB = np.array([-90.0, -110.0])
OTHERS = np.array([1e-11, 4e-11])  # linear gain to all other sites together
NOISE_W = 10 ** ((-174 - 30) / 10) * 100e6
SERVER_W, DEVICE_W = 10 ** (43 / 10) / 1000, 0.2


def radio_of(**options: Any) -> Radio:
    return Radio(
        simpy.Environment(),
        settings=RadioSettings(**{"preset": "journal", **options}),
        device_power_w=DEVICE_W,
        speeds_m_s=np.zeros(2),
        gains=Mock(),  # not used here
        streams=Streams(1),
    )


SURVEY = LargeScaleState([0, 1], GAINS_DB, np.array([50.0, 90.0]), OTHERS)


def snr(**options: Any) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = radio_of(**options).budget.snr(SURVEY)
    return found


def opened(down_bits: list[int], **options: Any) -> Links:
    """Return the links of a round in which both devices upload."""
    return radio_of(**options).open_round(SURVEY, 0, {"downlink": down_bits, "uplink": [1, 1]}).links


def test_journal_powers_over_thermal_noise() -> None:
    found = snr()
    gains = 10 ** (GAINS_DB / 10)
    assert found["downlink"] == pytest.approx(SERVER_W * gains / NOISE_W)
    assert found["uplink"] == pytest.approx(DEVICE_W * gains / NOISE_W)


def test_noise_figure_and_margin_raise_the_noise() -> None:
    plain, noisy = snr(), snr(budget={"noise_figure_db": 7.0, "interference_margin_db": 3.0})
    for direction in ("downlink", "uplink"):
        assert noisy[direction] == pytest.approx(plain[direction] / 10)


def test_neighbours_interfere_in_the_downlink_by_their_load() -> None:
    """SINR = P g / (N + load P sum of the other sites' gains)."""
    load = 0.4
    plain, loaded = snr(), snr(neighbour_load=load)
    gains = 10 ** (GAINS_DB / 10)
    assert loaded["downlink"] == pytest.approx(SERVER_W * gains / (NOISE_W + load * SERVER_W * OTHERS))
    assert loaded["uplink"] == pytest.approx(plain["uplink"])


@pytest.mark.parametrize("down_bits", [[1, 1], [1, 0]])
def test_neighbours_send_as_many_shares_as_this_cell(down_bits: list[int]) -> None:
    """Under `full`, K shares of a neighbour radiate K times the site's power, like the K shares of this cell."""
    load, gains = 0.4, 10 ** (GAINS_DB / 10)
    links = opened(down_bits, neighbour_load=load)
    noise_w = NOISE_W + sum(down_bits) * load * SERVER_W * OTHERS
    assert links.snr["downlink"] == pytest.approx(SERVER_W * gains / noise_w)
    assert links.snr["uplink"] == pytest.approx(DEVICE_W * gains / NOISE_W)
    assert not links.neighbours.any()


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_power_per_resource_block_is_once_the_neighbours_power(sharing: str) -> None:
    load, gains = 0.4, 10 ** (GAINS_DB / 10)
    links = opened(
        [1, 1], neighbour_load=load, budget={"power_over_share": "per_resource_block"}, sharing=sharing
    )
    assert links.snr["downlink"] == pytest.approx(SERVER_W * gains / (NOISE_W + load * SERVER_W * OTHERS))
    assert not links.neighbours.any()


def test_a_dynamic_band_is_told_what_each_share_of_the_neighbours_adds() -> None:
    load, gains = 0.4, 10 ** (GAINS_DB / 10)
    links = opened([1, 1], neighbour_load=load, sharing="dynamic", budget={"noise_figure_db": 7.0})
    floor_w = NOISE_W * 10**0.7
    assert links.snr["downlink"] == pytest.approx(SERVER_W * gains / floor_w)
    assert links.neighbours == pytest.approx(load * SERVER_W * OTHERS / floor_w)


def test_the_next_slots_of_many_times_are_those_of_each() -> None:
    """At slot boundaries, one rounding error away from them, and in between, both functions agree to the last bit."""
    air, slot_s = radio_of().air, RadioSettings(preset="journal").slot_s
    on = np.array([0.0, *(slot * slot_s for slot in (1, 7, 1000, 123_457, 10**8))])
    times_s = np.concatenate(
        [on, np.nextafter(on, np.inf), np.nextafter(on, 0.0), on + 20 * np.spacing(on), on + 0.3 * slot_s]
    )
    assert air.next_slots(times_s).tolist() == [air.next_slot(time_s) for time_s in times_s.tolist()]


def test_a_link_at_the_lowest_rates_snr_carries_and_one_below_it_does_not() -> None:
    air = radio_of(preset="nr").air
    lowest = air.monitoring.lowest_snr["uplink"]
    assert lowest > 0
    no_limit = np.full(3, np.inf)
    found_s = air.seconds_alone("uplink", 1_000_000, lowest * np.array([1 - 1e-9, 1.0, 2.0]), no_limit)
    assert np.isinf(found_s).tolist() == [True, False, False]
    # power control keeps the first two links below the lowest rate on every block, even if it allows more than `snr`
    on_block = air.carriers["uplink"].steps.whole.lowest_snr  # type: ignore[union-attr]
    most = on_block * np.array([0.5, 0.99, 1.01])
    found_s = air.seconds_alone("uplink", 1_000_000, on_block * np.array([0.25, 0.5, 0.5]), most)
    assert np.isinf(found_s).tolist() == [True, True, False]

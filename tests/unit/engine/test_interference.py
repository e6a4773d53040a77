"""Interference slot by slot, against the closed form of transmitters that send or do not."""

import math

import numpy as np
import pytest

from channel.carrier import Carrier
from channel.fading import BLOCK, LinkFading
from channel.interference import Heard, Interfered, TransmitterActivity
from channel.path_loss.umi import UMi
from channel.transfer import Flow
from edgefl.engine.records import DeviceRound
from edgefl.testing import Scripted, SmallWorld, small_world

SLOT_S, SERVER_W, DEVICE_W = 0.5e-3, 10 ** (43 / 10) / 1000, 10 ** (23 / 10) / 1000
NOISE_W = 10 ** ((-174 - 30) / 10) * 10e6
BITS, SLOTS = 20_000_000, 40_000


@pytest.mark.parametrize("load", [0.1, 0.5])
def test_the_mean_rate_is_that_of_sending_or_not(load: float) -> None:
    """p log2(1 + S/(1 + I)) + (1 - p) log2(1 + S), to within its error; the mean-noise shortcut is below it."""
    snr, level = 100.0, 50.0
    fading = LinkFading(3, 1.0)
    signal = snr * fading.mean_power
    heard = Heard(TransmitterActivity(9, 1, load), [np.array([level])])
    link = Interfered(fading, heard)
    assert heard.mean == pytest.approx(load * level)
    carrier = Carrier(1.0, 1.0)
    found = Flow(carrier, snr, link, 1000).bits_carried(SLOTS) / SLOTS
    high, low = math.log2(1 + signal), math.log2(1 + signal / (1 + level))
    error = (high - low) * math.sqrt(load * (1 - load) / SLOTS)
    assert abs(found - (load * low + (1 - load) * high)) < 4 * error
    assert math.log2(1 + snr * link.mean_power) < found - 100 * error


def test_interference_is_a_function_of_the_slot() -> None:
    levels = [np.array([2.0]), np.empty(0), np.array([1.0, 5.0])]
    whole = Heard(TransmitterActivity(9, 3, 0.5), levels).over_noise(0, 5000)
    part = Heard(TransmitterActivity(9, 3, 0.5), levels).over_noise(2000, 100)
    assert part.tolist() == whole[2000:2100].tolist()
    assert set(whole.tolist()) == {0.0, 1.0, 2.0, 3.0, 5.0, 7.0}


@pytest.mark.parametrize("transmitters", [1, 7, 19])
def test_sums_that_are_looked_up_are_those_of_who_sends(transmitters: int) -> None:
    """Against one transmitter after the other; to the last bit where one table has all of them."""
    activity = TransmitterActivity(9, transmitters, 0.4)
    levels = np.random.default_rng(5).exponential(3.0, (4, transmitters))
    levels[:, 0] = 0.0  # the own cell
    first, count = 2 * BLOCK - 100, BLOCK + 300
    sends = np.concatenate([activity._uniform(block, 0) < activity.load for block in (1, 2, 3)], axis=1)
    sends = sends[:, first - BLOCK :][:, :count]
    assert abs(sends.mean() - 0.4) < 4 * math.sqrt(0.24 / sends.size)
    for row, heard in zip(levels, Heard.each(activity, levels), strict=True):
        total = np.zeros(count)
        for level, sending in zip(row, sends, strict=True):
            total = total + level * sending
        found = heard.over_noise(first, count)
        rounding = 0.0 if transmitters <= 7 else transmitters * np.finfo(float).eps
        assert (np.abs(found - total) <= rounding * total).all()
        alone = Heard(activity, list(row[:, None]))
        assert alone.over_noise(first, count).tolist() == found.tolist()
        assert alone.mean == heard.mean
        assert heard.over_noise(first + 7, 5).tolist() == found[7:12].tolist()


def world(load: float, interference: str, sharing: str = "static") -> SmallWorld:
    """Two sites 200 m apart; the first's device is at 60 m, the other's at 160 m, 40 m from its own."""
    return small_world(
        [(60.0, 0.0), (160.0, 0.0)],
        learner=Scripted(work=(1, 0, BITS, BITS)),
        layout={"sites": [[0.0, 0.0], [200.0, 0.0]], "radius_m": 300.0},
        radio={
            "shadowing": "spatial",
            "power_over_share": "per_resource_block",
            "neighbour_load": load,
            "interference": interference,
            "sharing": sharing,
        },
    ).run()


def gain(distance_m: float) -> float:
    return float(10 ** (-float(UMi().path_loss_db(distance_m, carrier_hz=3.5e9)) / 10))


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_neighbours_that_always_send_are_noise_in_both_directions(sharing: str) -> None:
    """At load 1 the downlink is that of the mean; the uplink hears the other cell's device, at 160 m."""
    small = world(1.0, "slot", sharing)
    (row,) = small.rows.of[DeviceRound]
    (mean,) = world(1.0, "mean", sharing).rows.of[DeviceRound]
    assert row.downlink_end_s == mean.downlink_end_s
    h2 = float(small.simulation.radio.fading(0, 0).power(0, 1)[0])
    for power_w, other_m, start_s, end_s in (
        (SERVER_W, 140.0, row.downlink_start_s, row.downlink_end_s),
        (DEVICE_W, 160.0, row.uplink_start_s, row.uplink_end_s),
    ):
        sinr = power_w * gain(60.0) * h2 / (NOISE_W + power_w * gain(other_m))
        slots = math.ceil(BITS / (10e6 * SLOT_S * math.log2(1 + sinr)))
        assert (end_s or 0.0) - (start_s or 0.0) == pytest.approx(slots * SLOT_S, abs=1e-9)


def test_a_transfer_takes_its_bits_over_the_mean_rate_and_by_the_shortcut_longer() -> None:
    load = 0.3
    small = world(load, "slot")
    (row,), (mean,) = small.rows.of[DeviceRound], world(load, "mean").rows.of[DeviceRound]
    signal = SERVER_W * gain(60.0) * float(small.simulation.radio.fading(0, 0).power(0, 1)[0]) / NOISE_W
    level = SERVER_W * gain(140.0) / NOISE_W
    high, low = math.log2(1 + signal), math.log2(1 + signal / (1 + level))
    rate, spread = load * low + (1 - load) * high, (high - low) * math.sqrt(load * (1 - load))
    slots = BITS / (10e6 * SLOT_S) / rate
    found = (row.downlink_end_s or 0.0) / SLOT_S
    # n slots carry n rate +- sqrt(n) spread: the number of slots errs by that over the rate, and is rounded up
    assert abs(found - slots) < 4 * math.sqrt(slots) * spread / rate + 1
    by_mean = BITS / (10e6 * SLOT_S) / math.log2(1 + signal / (1 + load * level))
    assert (mean.downlink_end_s or 0.0) / SLOT_S == pytest.approx(math.ceil(by_mean), abs=1e-6)
    assert by_mean > slots

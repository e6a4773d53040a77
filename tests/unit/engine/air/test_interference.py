"""Compare interference slot by slot with the closed form for transmitters that are on or off."""

import math
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from edgefl.channel.carrier import Carrier
from edgefl.channel.fading import BLOCK, LinkFading
from edgefl.channel.interference import Heard, Interfered, TransmitterActivity
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.transfer import Flow
from edgefl.engine.air.gains import LargeScaleState
from edgefl.engine.air.slot_interference import SlotInterference
from edgefl.engine.records import DeviceRound
from edgefl.rng import Streams
from edgefl.testing import Scripted, SmallWorld, small_world
from edgefl.testing.cell import within

SLOT_S, SERVER_W, DEVICE_W = 0.5e-3, 10 ** (43 / 10) / 1000, 10 ** (23 / 10) / 1000
NOISE_W = 10 ** ((-174 - 30) / 10) * 10e6
BITS, FEW_BITS, SLOTS = 20_000_000, 1_000_000, 40_000


@pytest.mark.parametrize("load", [0.1, 0.5])
def test_the_mean_rate_is_that_of_sending_or_not(load: float) -> None:
    """The mean rate is p log2(1 + S/(1 + I)) + (1 - p) log2(1 + S), which exceeds the rate at mean interference."""
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


def test_a_long_transfer_amid_interference_is_drawn_slot_by_slot() -> None:
    """A draw by renewal would ignore the interferer, and the transfer would take only as long as without one."""
    carrier, fading = Carrier(1.0, 1.0), LinkFading(3, 0.9)
    heard = Heard(TransmitterActivity(9, 1, 0.5), [np.array([1000.0])])
    bits = 5000 * float(carrier.mean_efficiency(100.0))
    amid = Flow(carrier, 100.0, Interfered(fading, heard), 0)
    assert Flow(carrier, 100.0, fading, 0).by_renewal(bits)
    assert amid.slots(bits) == amid.slots_exact(bits) > 1.5 * Flow(carrier, 100.0, fading, 0).slots(bits)


def test_interference_is_a_function_of_the_slot() -> None:
    levels = [np.array([2.0]), np.empty(0), np.array([1.0, 5.0])]
    whole = Heard(TransmitterActivity(9, 3, 0.5), levels).over_noise(0, 5000)
    part = Heard(TransmitterActivity(9, 3, 0.5), levels).over_noise(2000, 100)
    assert part.tolist() == whole[2000:2100].tolist()
    assert set(whole.tolist()) == {0.0, 1.0, 2.0, 3.0, 5.0, 7.0}


@pytest.mark.parametrize("transmitters", [1, 7, 19])
def test_sums_that_are_looked_up_are_those_of_who_sends(transmitters: int) -> None:
    """Interference from look-up tables equals a sum over transmitters, exactly if one table has all of them."""
    activity = TransmitterActivity(9, transmitters, 0.4)
    levels = np.random.default_rng(5).exponential(3.0, (4, transmitters))
    levels[:, 0] = 0.0  # the serving cell does not interfere
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
        assert alone.mean == pytest.approx(heard.mean, rel=1e-14)  # sums of few terms round differently
        assert heard.over_noise(first + 7, 5).tolist() == found[7:12].tolist()


def world(load: float, interference: str, sharing: str = "static") -> SmallWorld:
    """Run two sites 200 m apart: site 0 has a device at 60 m, and site 1 has a device at 40 m, 160 m from site 0."""
    return small_world(
        [(60.0, 0.0), (160.0, 0.0)],
        learner=Scripted(work=(1, 0, BITS, BITS)),
        layout={"sites": [[0.0, 0.0], [200.0, 0.0]], "radius_m": 300.0},
        radio={
            "propagation": {"shadowing": "spatial"},
            "budget": {"power_over_share": "per_resource_block"},
            "neighbour_load": load,
            "interference": interference,
            "sharing": sharing,
        },
    ).run()


class Neighbours:
    """Two sites 200 m apart: site 0 has devices at 60 and 30 m, site 1 has devices at 20 and 55 m.

    Site 0 receives the devices of site 1 from 180 and 145 m. Links do not fade.
    """

    places = ((60.0, 0.0), (-30.0, 0.0), (180.0, 0.0), (145.0, 0.0))
    own_m, others_m, their_own_m = (60.0, 30.0), (180.0, 145.0), (20.0, 55.0)

    def __init__(self, **radio: Any) -> None:
        given = {
            "propagation": {"shadowing": "spatial"},
            "budget": {"power_over_share": "per_resource_block", "uplink_power_over_share": "full"},
            "neighbour_load": 1.0,
            "interference": "slot",
        }
        self.settings = within(given, radio)
        self.small = small_world(
            list(self.places),
            learner=Scripted(work=(1, 0, 0, FEW_BITS)),
            layout={"sites": [[0.0, 0.0], [200.0, 0.0]], "radius_m": 300.0},
            radio=self.settings,
        )


def power_w(distance_m: float, share: float, p0_w: float | None) -> float:
    """Return the open-loop power of 38.213 with alpha = 0.8, or full power if p0_w is None."""
    if p0_w is None:
        return DEVICE_W
    blocks = share * 10e6 / 360e3
    return min(DEVICE_W, p0_w * 2 * blocks * gain(distance_m) ** -0.8)


@pytest.mark.parametrize("p0_dbm", [None, -75.0])
@pytest.mark.parametrize("rule", ["full", "per_resource_block"])
def test_an_interferer_in_the_uplink_obeys_the_rule_of_its_own_uplink(
    rule: str, p0_dbm: float | None
) -> None:
    """An interferer sends at full power on half the band, which doubles its power per Hz, or with power control."""
    small = Neighbours(budget={"uplink_power_over_share": rule, "uplink_p0_dbm": p0_dbm}).small.run()
    p0_w = None if p0_dbm is None else 10 ** (p0_dbm / 10) / 1000
    rows = [row for row in small.rows.of[DeviceRound] if row.device < 2]
    assert len(rows) == 2
    share = 0.5 if rule == "full" else 1.0  # the share over which the power is spread
    levels = [
        power_w(own_m, share, p0_w) * gain(m) / (NOISE_W * share)
        for m, own_m in zip(Neighbours.others_m, Neighbours.their_own_m, strict=True)
    ]
    slots, which = small.simulation.radio._interference._activity("uplink", 2).turns(0)[1]
    assert slots.tolist() == list(range(BLOCK))  # at load 1 one of the interferers sends in every slot
    for row in rows:
        own_m = Neighbours.own_m[row.device]
        h2 = float(small.simulation.radio.fading(row.device, 0).power(0, 1)[0])
        signal = power_w(own_m, share, p0_w) * gain(own_m) * h2 / (NOISE_W * share)
        bits, slot = 0.0, 0
        while bits < FEW_BITS:
            level = levels[int(which[slot] * 2)]
            bits += 5e6 * SLOT_S * math.log2(1 + signal / (1 + level))
            slot += 1
        assert (row.uplink_end_s or 0.0) - (row.uplink_start_s or 0.0) == pytest.approx(
            slot * SLOT_S, abs=1e-9
        )


def test_in_a_dynamic_band_the_interferer_is_on_a_share_as_large_as_there_are_now() -> None:
    """In a dynamic band, an interferer uses the share of a currently active device: half, then the whole band."""
    small = Neighbours(sharing="dynamic").small.run()
    ends = {row.device: (row.uplink_end_s or 0.0) / SLOT_S for row in small.rows.of[DeviceRound]}
    which = small.simulation.radio._interference._activity("uplink", 2).turns(0)[1][1]
    levels = [DEVICE_W * gain(m) / NOISE_W for m in Neighbours.others_m]
    left, slot, expected = {0: float(FEW_BITS), 1: float(FEW_BITS)}, 0, {}
    while left:
        many, level = len(left), levels[int(which[slot] * 2)]
        slot += 1
        for device in list(left):
            own_m = Neighbours.own_m[device]
            h2 = float(small.simulation.radio.fading(device, 0).power(0, 1)[0])
            sinr = DEVICE_W * gain(own_m) * h2 / NOISE_W * many / (1 + many * level)
            left[device] -= 10e6 / many * SLOT_S * math.log2(1 + sinr)
            if left[device] <= 0:
                expected[device] = slot
                del left[device]
    assert expected[0] != expected[1]
    assert {device: round(ends[device]) for device in (0, 1)} == expected


@pytest.mark.parametrize("server", ["synchronous", "fedasync"])
def test_an_interferers_part_of_the_band_counts_devices_of_all_open_rounds(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With resource blocks, the interferer of a cell with K devices at work uses 1/K of the band.

    With `fedasync` a device is dispatched alone while the other three work.
    """
    parts: list[float] = []
    heard_by_site = SlotInterference._heard_by_site

    def noted(self: SlotInterference, positions_m: np.ndarray, cell: int, share: float) -> Heard:
        parts.append(share)
        return heard_by_site(self, positions_m, cell, share)

    monkeypatch.setattr(SlotInterference, "_heard_by_site", noted)
    small = small_world(
        [60.0, 50.0, 40.0, 30.0, (180.0, 0.0)],
        learner=Scripted(work=(1, 1, 0, FEW_BITS), of={0: (1, 500, 0, FEW_BITS)}),
        layout={"sites": [[0.0, 0.0], [200.0, 0.0]], "radius_m": 300.0},
        radio={
            "propagation": {"shadowing": "spatial"},
            "sharing": "dynamic",
            "link": {"rates": "cqi"},
            "budget": {"power_over_share": "per_resource_block", "uplink_power_over_share": "full"},
            "neighbour_load": 1.0,
            "interference": "slot",
            "monitoring": {"t310_s": 1.0},
        },
        policy={"name": "schedule", "count": 1, "rounds": 5},
        rules={"server": server},
    ).run()
    assert len({row.uplink_end_s for row in small.rows.of[DeviceRound]}) > 4
    assert len(parts) >= 5
    assert parts == [0.25] * len(parts)


def test_the_rise_over_thermal_is_that_of_a_monte_carlo_of_its_own() -> None:
    """The rise over thermal (mean 10 log10(1 + I/N)) of seven cells at load 0.3 equals the rise in a Monte Carlo."""
    sites = [(0.0, 0.0)] + [(500 * math.cos(a), 500 * math.sin(a)) for a in np.arange(6) * math.pi / 3]
    rng, load, slots = np.random.default_rng(11), 0.3, 20 * BLOCK
    places = [(x + 200 * c, y + 200 * s) for x, y in sites for c, s in rng.uniform(-0.7, 0.7, (10, 2))]
    small = small_world(
        places,
        learner=Scripted(work=(1, 0, 0, FEW_BITS)),
        layout={"sites": [list(site) for site in sites], "radius_m": 900.0},
        radio={
            "propagation": {"shadowing": "spatial"},
            "budget": {"power_over_share": "per_resource_block", "uplink_power_over_share": "full"},
            "neighbour_load": load,
            "interference": "slot",
        },
    )
    radio, all_m = small.simulation.radio, np.array(places)
    state = radio.gains.of_round(all_m, list(range(10)), 0, (1, "train", 1))
    loss = np.array([[gain(math.dist(place, site)) for site in sites] for place in places])
    assert (loss.argmax(axis=1) == np.repeat(range(7), 10)).all()
    rises_db = {}
    for share in (1.0, 0.1):
        fading = [radio.fading(device, 0) for device in range(10)]
        links = radio._interference.of_links(state, 0, fading, np.full(10, share))("uplink")
        found = 10 * np.log10(1 + links[0].heard.over_noise(0, slots))
        level = DEVICE_W * loss[:, 0].reshape(7, 10) / (NOISE_W * share)
        drawn = np.zeros(slots)
        for cell in range(1, 7):
            drawn += (rng.random(slots) < load) * level[cell][rng.integers(10, size=slots)]
        expected = 10 * np.log10(1 + drawn)
        error = math.hypot(found.std(), expected.std()) / math.sqrt(slots)
        assert abs(found.mean() - expected.mean()) < 4 * error
        rises_db[share] = expected.mean(), error
    assert rises_db[0.1][0] > rises_db[1.0][0] + 100 * rises_db[1.0][1]


def test_a_direction_that_nobody_asks_for_is_not_worked_out() -> None:
    """Reading the downlink's interference does not compute the uplink's, which needs the gains of all devices."""
    budget, none = Mock(), np.zeros(1)
    budget.downlink_levels.return_value = np.ones((1, 2))
    state = LargeScaleState([0], none, none, none, everywhere_m=np.zeros((1, 2)))
    sending = SlotInterference(0.3, budget, Mock(), Streams(1))
    links = sending.of_links(state, 0, [LinkFading(1, 0.9)], np.ones(1))
    assert budget.mock_calls == []
    assert links("downlink") is links("downlink")
    budget.downlink_levels.assert_called_once()
    budget.uplink_levels.assert_not_called()


def gain(distance_m: float) -> float:
    return float(10 ** (-float(UMi().path_loss_db(distance_m, carrier_hz=3.5e9)) / 10))


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_neighbours_that_always_send_are_noise_in_both_directions(sharing: str) -> None:
    """At load 1 downlinks take as long as at mean interference; the uplink hears the other cell's device at 160 m."""
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
    # the bits of n slots have standard deviation sqrt(n) spread; bits / rate are slots; the 1 is for rounding up
    assert abs(found - slots) < 4 * math.sqrt(slots) * spread / rate + 1
    by_mean = BITS / (10e6 * SLOT_S) / math.log2(1 + signal / (1 + load * level))
    assert (mean.downlink_end_s or 0.0) / SLOT_S == pytest.approx(math.ceil(by_mean), abs=1e-6)
    assert by_mean > slots

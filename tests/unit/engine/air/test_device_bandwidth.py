"""Test devices with less bandwidth than the cell: shares in a round, hand-derived times, and refused settings."""

import math
from typing import Any

import numpy as np
import pytest
import simpy

from edgefl.channel.modulation import EFFICIENCIES
from edgefl.channel.path_loss.umi import UMi
from edgefl.engine.records import DeviceRound
from edgefl.testing import Scripted, small_world
from tests.refusals import refused_at
from tests.unit.engine.air.worlds import world_of

HZ, SLOT_S, N0_W_HZ, BITS = 100e6, 0.5e-3, 10 ** ((-174 - 30) / 10), 40_000_000
SERVER_W, DEVICE_W = 10 ** (43 / 10) / 1000, 10 ** (23 / 10) / 1000
PLACE_M = 60.0
ELEMENTS = 273 * 12 * 14  # of a slot at 100 MHz: 38.101-1, Table 5.3.2-1; 38.211, 4.3.2 and 4.4.4.1


def opened(count: int, narrow: int, radio: dict[str, Any] | None = None) -> dict[Any, list[float]]:
    """Return the shares of a round's devices; the first `narrow` devices have 20 MHz each."""
    classes: dict[str, Any] = {"redcap": {"count": narrow, "max_bandwidth_hz": 20e6}}
    if narrow < count:
        classes["phone"] = {}
    settings = {"preset": "nr", "bandwidth_hz": HZ, "sharing": "static", **(radio or {})}
    one = world_of(devices={"count": count, "classes": classes, "classes_by": "ids"}, radio=settings)
    air = one.radio(simpy.Environment())
    ids = list(range(count))
    state = air.gains.of_round(one.movement.positions_m(0.0), ids, 0, (1, "train", 1))
    round_ = air.open_round(state, 0, {"downlink": [BITS] * count, "uplink": [BITS] * count})
    return {direction: share.tolist() for direction, share in round_.links.share.items()}


@pytest.mark.parametrize(
    ("count", "narrow", "expected"),
    [
        (3, 1, [0.2, 0.4, 0.4]),  # a third exceeds one device's limit, and the other devices get the excess
        (3, 3, [0.2, 0.2, 0.2]),  # all are limited, and two fifths stay unused
        (2, 1, [0.2, 0.8]),
        (10, 4, [0.1] * 10),  # no limit binds
    ],
)
def test_a_narrow_radio_has_at_most_its_part_and_the_others_the_rest(
    count: int, narrow: int, expected: list[float]
) -> None:
    for shares in opened(count, narrow).values():
        assert shares == pytest.approx(expected)


def test_a_transfer_takes_the_slots_of_20_mhz() -> None:
    """Alone in a cell of 100 MHz, a 20 MHz device uses a fifth of the band, at full power in both directions."""
    small = small_world(
        [PLACE_M],
        learner=Scripted(work=(1, 0, BITS, BITS)),
        devices={"max_bandwidth_hz": 20e6},
        radio={"bandwidth_hz": HZ},
    ).run()
    (row,) = small.rows.of[DeviceRound]
    h2 = float(small.simulation.radio.fading(0, 0).power(0, 1)[0])
    gain = 10 ** (-float(UMi().path_loss_db(PLACE_M, carrier_hz=3.5e9)) / 10) * h2
    for power_w, start_s, end_s in (
        (SERVER_W, row.downlink_start_s, row.downlink_end_s),
        (DEVICE_W, row.uplink_start_s, row.uplink_end_s),
    ):
        rate = 20e6 * math.log2(1 + power_w * gain / (N0_W_HZ * 20e6))
        slots = math.ceil(BITS / (rate * SLOT_S))
        assert (end_s or 0.0) - (start_s or 0.0) == pytest.approx(slots * SLOT_S, abs=1e-9)


def test_a_dynamic_band_of_real_shares_does_not_know_narrow_radios() -> None:
    classes = {"redcap": {"share": 0.5, "max_bandwidth_hz": 20e6}, "phone": {}}
    radio = {"sharing": "dynamic", "link": {"rates": "shannon"}}
    with refused_at("devices.classes.redcap.max_bandwidth_hz", "sharing: static"):
        world_of(devices={"count": 4, "classes": classes}, radio=radio)
    world_of(devices={"count": 4, "classes": classes}, radio={**radio, "bandwidth_hz": 20e6})


@pytest.mark.parametrize("layers", [1, 2])
def test_two_layers_of_an_uplink_share_its_power(layers: int) -> None:
    """Two layers carry twice the table's rate at half the SNR; the link uses the better number of layers."""
    small = small_world(
        [15.0],
        learner=Scripted(work=(1, 0, BITS, BITS)),
        radio={
            "bandwidth_hz": HZ,
            "link": {"rates": "cqi", "uplink_layers": layers},
            "monitoring": {"t310_s": 1.0},
        },
    ).run()
    (row,) = small.rows.of[DeviceRound]
    h2 = float(small.simulation.radio.fading(0, 0).power(0, 1)[0])
    gain = 10 ** (-float(UMi().path_loss_db(15.0, carrier_hz=3.5e9)) / 10) * h2
    snr, gap = DEVICE_W * gain / (N0_W_HZ * HZ), 10**0.2
    rate = max(
        times * max((rate for rate in EFFICIENCIES if gap * (2**rate - 1) <= snr / times), default=0.0)
        for times in [1 / 16, 1 / 8, 1 / 4, 1 / 2, *range(1, layers + 1)]
    )
    slots = math.ceil(BITS / (rate * ELEMENTS) * (1 - 1e-12))
    took_s = (row.uplink_end_s or 0.0) - (row.uplink_start_s or 0.0)
    assert took_s == pytest.approx(slots * SLOT_S, abs=1e-9)
    if layers == 2:
        assert rate > max(EFFICIENCIES)  # the device is so near that two layers exceed one layer's peak rate


def test_power_class_2_radiates_twice_the_power() -> None:
    """38.101-1, Table 6.2.1-1: 26 dBm raise the SNR by 3 dB in the uplink, and not in the downlink."""
    snr = []
    for power_dbm in (23.0, 26.0):
        one = world_of(devices={"count": 3, "transmit_power_dbm": power_dbm})
        air = one.radio(simpy.Environment())
        state = air.gains.of_round(one.movement.positions_m(0.0), [0, 1, 2], 0, (1, "train", 1))
        snr.append(air.budget.snr(state))
    assert 10 * np.log10(snr[1]["uplink"] / snr[0]["uplink"]) == pytest.approx(np.full(3, 3.0), abs=1e-9)
    assert snr[1]["downlink"] == pytest.approx(snr[0]["downlink"])

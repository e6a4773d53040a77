"""Derive a network's link budget by hand: antennas, beams, layers, power control and a TDD frame, slot by slot."""

import math
from typing import Any

import pytest

from edgefl.channel.modulation import EFFICIENCIES
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.tdd import Pattern
from edgefl.engine.records import DeviceRound
from edgefl.testing import Scripted, SmallWorld, small_world
from edgefl.testing.cell import within

SLOT_S, HZ, N0_W_HZ = 0.5e-3, 100e6, 10 ** ((-174 - 30) / 10)
SERVER_W, DEVICE_W = 10 ** (43 / 10) / 1000, 10 ** (23 / 10) / 1000
BITS = 40_000_000
ELEMENTS = 273 * 12 * 14  # of a slot at 100 MHz: 38.101-1, Table 5.3.2-1; 38.211, 4.3.2 and 4.4.4.1
FRAME = Pattern("DDDSU", "10:2:2")
# no shadowing, and line of sight everywhere, so that only the effects under test remain
RADIO: dict[str, Any] = {
    "bandwidth_hz": HZ,
    "link": {"rates": "cqi", "downlink_layers": 4},
    "monitoring": {"t310_s": 1.0},
    "budget": {
        "power_over_share": "per_resource_block",
        "uplink_power_over_share": "full",
        "noise_figure_db": 9.0,
        "site_noise_figure_db": 5.0,
        "array_gain_db": 12.0,
        "uplink_p0_dbm": -80.0,
        "uplink_alpha": 0.8,
    },
    "tdd": {"pattern": "DDDSU"},
}


def world(place_m: float, *, layout: dict[str, Any] | None = None, **radio: Any) -> tuple[SmallWorld, Any]:
    small = small_world(
        [place_m],
        learner=Scripted(work=(1, 0, BITS, BITS // 40)),
        radio=within(RADIO, radio),
        layout=layout or {"antenna_gain_dbi": 5.0},
    ).run()
    (row,) = small.rows.of[DeviceRound]
    return small, row


def table(snr: float, times: list[float]) -> float:
    """Return the best rate over all l in `times` (layers, or shares of the band): l times the rate at SNR / l."""
    gap = 10**0.2
    return max(
        time * max((rate for rate in EFFICIENCIES if gap * (2**rate - 1) <= snr / time), default=0.0)
        for time in times
    )


def end_slot(direction: str, first: int, rate: float, bits: int) -> int:
    """Return the slot boundary by which a frame's slots have carried the bits at a constant rate."""
    weights = FRAME.weights(direction)  # type: ignore[arg-type]
    slot, carried = first, 0.0
    while carried < bits * (1 - 1e-12):
        carried += weights[slot % len(weights)] * rate * ELEMENTS
        slot += 1
    return slot


@pytest.mark.parametrize("place_m", [30.0, 120.0, 245.0])
def test_both_directions_slot_by_slot(place_m: float) -> None:
    small, row = world(place_m)
    h2 = float(small.simulation.radio.fading(0, 0).power(0, 1)[0])
    coupling_db = float(UMi().path_loss_db(place_m, carrier_hz=3.5e9)) - 5.0
    down_snr = SERVER_W * 10 ** ((12 - coupling_db) / 10) * h2 / (N0_W_HZ * HZ * 10**0.9)
    first = round((row.downlink_start_s or 0.0) / SLOT_S)
    ends = end_slot("downlink", first, table(down_snr, [1, 2, 3, 4]), BITS)
    assert row.downlink_end_s == pytest.approx(ends * SLOT_S, abs=1e-9)
    # P0 is per 180 kHz, so it is scaled to the band; the path loss is measured without the beam
    wanted_w = 10 ** ((-80 - 30) / 10) * HZ / 180e3 * 10 ** (0.8 * coupling_db / 10)
    up_snr = min(DEVICE_W, wanted_w) * 10 ** ((12 - coupling_db) / 10) * h2 / (N0_W_HZ * HZ * 10**0.5)
    first = round((row.uplink_start_s or 0.0) / SLOT_S)
    ends = end_slot("uplink", first, table(up_snr, [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1]), BITS // 40)
    assert row.uplink_end_s == pytest.approx(ends * SLOT_S, abs=1e-9)


def test_ddds_u_leaves_each_direction_its_symbols() -> None:
    """Of five slots, the downlink has 3 slots and 10 of 14 symbols, and the uplink 1 slot and 2 of 14 symbols."""
    down, up = (sum(FRAME.weights(direction)) / 5 for direction in ("downlink", "uplink"))
    assert down == pytest.approx((3 + 10 / 14) / 5)
    assert up == pytest.approx((1 + 2 / 14) / 5)
    # a long transfer, of 25 Mbit at a constant rate, takes longer by the inverse of the downlink's share of the time
    _, with_tdd = world(30.0)
    _, without = world(30.0, tdd=None)

    def took_s(row: DeviceRound) -> float:
        return (row.downlink_end_s or 0.0) - (row.downlink_start_s or 0.0)

    slots = took_s(without) / SLOT_S
    assert took_s(with_tdd) / SLOT_S == pytest.approx(slots / down, abs=3)


def test_beams_are_for_the_wanted_signal_only() -> None:
    """A beam of 10 dB raises the SINR by 10 dB; 5 dBi at all sites raise the SINR less, as interference grows."""
    layout = {"sites": [[0, 0], [400, 0]], "radius_m": 300.0}
    sinr = {}
    for name, keys, gain in (
        ("plain", {}, 0.0),
        ("array", {"array_gain_db": 10.0}, 0.0),
        ("antenna", {}, 5.0),
    ):
        small = small_world(
            [150.0],
            radio=within(
                RADIO,
                {
                    "budget": {"array_gain_db": 0.0} | keys,
                    "propagation": {"shadowing": "spatial"},
                    "neighbour_load": 1.0,
                },
            ),
            layout={**layout, "antenna_gain_dbi": gain},
        )
        radio, network = small.simulation.radio, small.simulation.network
        state = radio.gains.of_round(network.positions_m(), [0], 0, (1, "train", 1))
        sinr[name] = math.log10(radio.budget.mean_snr(state, 1)["downlink"][0]) * 10
    assert sinr["array"] - sinr["plain"] == pytest.approx(10.0, abs=1e-9)
    loss_db = [float(UMi().path_loss_db(m, carrier_hz=3.5e9)) for m in (150.0, 250.0)]
    noise_w = N0_W_HZ * HZ * 10**0.9

    def by_hand(gain_db: float) -> float:
        own, other = (SERVER_W * 10 ** ((gain_db - loss) / 10) for loss in loss_db)
        return 10 * math.log10(own / (noise_w + other))

    assert sinr["plain"] == pytest.approx(by_hand(0.0), abs=1e-4)
    assert sinr["antenna"] == pytest.approx(by_hand(5.0), abs=1e-4)

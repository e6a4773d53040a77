"""Compare uplink power control in a round, over links of constant fading, with hand-derived slots and energies."""

import math

import pytest

from edgefl.channel.path_loss.umi import UMi
from edgefl.engine.records import DeviceRound
from edgefl.testing import Scripted, small_world

SLOT_S, DEVICE_W, N0_W_HZ = 0.5e-3, 10 ** (23 / 10) / 1000, 10 ** ((-174 - 30) / 10)
BITS, PLACES = 2_000_000, [30.0, 240.0]


@pytest.mark.parametrize("rule", ["full", "per_resource_block"])
@pytest.mark.parametrize("deadline_s", [None, 1e6])
def test_a_device_sends_with_the_power_that_its_path_loss_requires(
    rule: str, deadline_s: float | None
) -> None:
    """With P0 = -68 dBm per 180 kHz and alpha = 0.8, the far device has too little power for the whole band.

    A deadline that is never reached makes the round run by processes; without a deadline it runs by its plan.
    """
    radio = {"budget": {"uplink_p0_dbm": -68.0, "uplink_power_over_share": rule}}
    small = small_world(
        PLACES, learner=Scripted(work=(1, 0, 1, BITS)), radio=radio, rules={"deadline_s": deadline_s}
    ).run()
    for row in small.rows.of[DeviceRound]:
        loss_db = float(UMi().path_loss_db(PLACES[row.device], carrier_hz=3.5e9))
        h2 = float(small.simulation.radio.fading(row.device, 0).power(0, 1)[0])
        hz = 5e6 if rule == "full" else 10e6  # the band over which the power is spread
        wanted_w = 10**-9.8 * hz / 180e3 * 10 ** (0.8 * loss_db / 10)
        sent_w = min(DEVICE_W, wanted_w)
        assert (wanted_w < DEVICE_W) == (row.device == 0 or rule == "full")
        rate = math.log2(1 + sent_w * 10 ** (-loss_db / 10) / (N0_W_HZ * hz) * h2)
        slots = math.ceil(BITS / (5e6 * SLOT_S * rate))
        start_s, end_s = row.uplink_start_s or 0.0, row.uplink_end_s or 0.0
        assert end_s - start_s == pytest.approx(slots * SLOT_S, abs=1e-9)
        assert row.energy_tx_j == pytest.approx(sent_w * slots * SLOT_S)

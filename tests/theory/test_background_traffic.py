"""Compare background traffic with queueing theory. A correct program fails for at most one seed in 1,000."""

import numpy as np
import pytest

from edgefl.engine.backgrounds import Background
from edgefl.engine.records import DeviceRound
from edgefl.testing import Scripted, small_world

SLOT_S, ROUNDS, STANDARD_ERRORS = 2e-3, 150, 4


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_a_transfer_is_slowed_by_the_load_of_other_users(
    load: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Round robin approaches processor sharing. Among files of any size that arrive as a Poisson process with load
    rho, a transfer that takes x alone takes x / (1 - rho) on average (Kleinrock, Queueing Systems II, 4.4)."""

    monkeypatch.setattr(Background, "speed_m_s", 30.0)

    def uplinks_s(background: dict[str, float] | None) -> np.ndarray:
        world = small_world(
            [60.0],
            learner=Scripted(work=(1, 1, 1, 6_000_000)),
            policy={"name": "schedule", "count": 1, "rounds": ROUNDS},
            doppler_speed_m_s=30.0,
            radio={
                "slot_s": SLOT_S,
                "carrier_hz": 1e9,
                "link": {
                    "max_efficiency": 4.0
                },  # links almost always reach this cap, so rates do not depend on the order of service
                "sharing": "dynamic",
                "scheduler": "round_robin",
                "budget": {"power_over_share": "per_resource_block"},
                "background": background,
            },
            rules={"pause_s": 3.0},  # long enough for the transfer to have no effect later
        ).run()
        return np.array([row.uplink_end_s - row.uplink_start_s for row in world.rows.of[DeviceRound]])

    alone_s = float(uplinks_s(None).mean())
    took_s = uplinks_s({"uplink_load": load, "file_bits": 1_000_000})
    error_s = took_s.std() / np.sqrt(ROUNDS)
    expected_s = alone_s / (1 - load)
    assert error_s < 0.05 * expected_s
    # allow a slot for rounding up the transfer, and a slot for rounding up other users' files
    assert abs(took_s.mean() - expected_s) < STANDARD_ERRORS * error_s + 2 * SLOT_S

"""Compare background traffic with queueing theory. A correct program fails for at most one seed in 1,000."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import simpy

from edgefl.channel.fading import LinkFading
from edgefl.engine.air.background import BackgroundTraffic
from edgefl.engine.air.background_users import UserLinks
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.air.radio import Radio
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.backgrounds import Background
from edgefl.engine.backgrounds.load import Load
from edgefl.engine.records import DeviceRound
from edgefl.rng import Streams
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


def shared_radio(**settings: Any) -> Radio:
    """Return the radio of one device, with a shared band and these settings."""
    own = RadioSettings(preset="journal", sharing="dynamic", **settings)
    env, speeds_m_s = simpy.Environment(), np.zeros(1)
    return Radio(
        env, settings=own, device_power_w=1.0, speeds_m_s=speeds_m_s, gains=Mock(), streams=Streams(1)
    )


@pytest.mark.parametrize("slots", [0.2, 1.4, 5.8])  # the size of a file, in full slots at the links' rate
@pytest.mark.parametrize("tdd", [None, {"pattern": "DDDSU", "special": "10:2:2"}])
def test_the_load_is_the_share_of_the_slots_in_use(slots: float, tdd: dict[str, str] | None) -> None:
    """Poisson arrivals that occupy the band for a time x each, at a rate of load / x, occupy a share `load` of it.

    With n files the standard error of this share is load / sqrt(n). A file of 0.2 slots has the band for a whole
    slot, since a scheduler decides once per slot. At a low load such a file begins in the first D twice as often as
    in S: it uses 0.4 + 0.2 + 0.2 + 0.2 x 5/7 slots on average, 1.5 % more than (3 + 5/7) / 4, the mean over all slots
    that serve the downlink.
    """
    load, cap, width_hz, until_s = 0.6, 4.0, 1e7, 20.0
    radio = shared_radio(
        bandwidth_hz=width_hz,
        slot_s=SLOT_S,
        tdd=tdd,
        scheduler="round_robin",
        link={"max_efficiency": cap},
        budget={"power_over_share": "per_resource_block"},
        background=Load(downlink_load=load, file_bits=round(slots * cap * width_hz * SLOT_S)),
    )
    air = radio.air
    snr = {direction: np.full(3, 1e6) for direction in DIRECTIONS}  # the cap holds in every slot
    files = []
    band = air.band(0, "downlink")
    begin = band.begin
    band.begin = lambda *how, **options: files.append(how) or begin(*how, **options)  # type: ignore[method-assign]
    for process in BackgroundTraffic(air, [0], lambda cell: UserLinks(snr, snr), Streams(5)).processes():
        radio.env.process(process)
    radio.env.run(until=until_s)
    band.catch_up(air.next_slot(until_s))
    share = band.band.sent_slots / (until_s / SLOT_S * air.carriers["downlink"].frame.mean)
    assert share == pytest.approx(load, abs=(STANDARD_ERRORS / np.sqrt(len(files)) + 0.016) * load)
    assert len(files) > 400
    # the queue of a processor-sharing server has load / (1 - load) = 1.5 files on average
    assert len(band._ends) < 30


@pytest.mark.parametrize("snr_db", [-11.0, -9.5, -6.0, 5.0])
def test_a_files_expected_time_alone_is_what_it_takes_on_resource_blocks(snr_db: float) -> None:
    """A weak user concentrates its power on any number of blocks; its load follows from the time that this takes.

    With fading that is independent from slot to slot, the mean rate over n slots has a standard error of its standard
    deviation over sqrt(n); the standard deviation of a rate that is about proportional to the power is its mean.
    """
    slots = 8000
    radio = shared_radio(
        bandwidth_hz=1e7,
        link={"rates": "cqi"},
        budget={"power_over_share": "per_resource_block", "uplink_power_over_share": "full"},
        monitoring={"t310_s": 1.0},
    )
    air, snr = radio.air, 10 ** (snr_db / 10)
    one_s = float(air.seconds_alone("uplink", 10**9, np.array([snr]), np.array([np.inf]))[0]) / 10**9
    bits = round(slots * air.slot_s / one_s)
    band = air.band(0, "uplink").band
    band.add("file", bits, snr_whole_band=snr, fading=LinkFading(3, 0.0), slot=0, background=True)
    due = band.next_end()
    assert due is not None
    assert due[0] == pytest.approx(slots, rel=STANDARD_ERRORS / np.sqrt(slots))

"""Test rounds in progress on the radio: energy of shared slots, and transfers that are cut off."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import simpy

from edgefl.engine.air.gains import LargeScaleState
from edgefl.engine.air.radio import Radio
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.air.sent_time import server_energy_j
from edgefl.engine.parts import Cause, Span
from edgefl.rng import Streams

GAIN_DB, SERVER_W, SLOT_S = -90.0, 10 ** (43 / 10) / 1000, 0.5e-3


def opened_by(radio: Radio, ids: list[int], bits: int) -> RadioRound:
    many, zeros = len(ids), np.zeros(len(ids))
    state = LargeScaleState(ids, np.full(many, GAIN_DB), zeros, zeros)
    return radio.open_round(state, 0, {"downlink": [bits] * many, "uplink": [1] * many})


def radio_of(**options: Any) -> Radio:
    return Radio(
        simpy.Environment(),
        settings=RadioSettings(preset="journal", fidelity="slot", **options),
        device_power_w=0.2,
        speeds_m_s=np.zeros(4),
        gains=Mock(),  # not used here
        streams=Streams(1),
    )


def test_two_rounds_of_one_cell_are_open_at_once_and_each_pays_for_its_own_broadcast() -> None:
    radio = radio_of(downlink="broadcast")
    first, second = opened_by(radio, [0, 1], 8_000_000), opened_by(radio, [2, 3], 1_000_000)
    assert first.broadcast is not None
    assert second.broadcast is not None
    assert first.broadcast.airtime_s > second.broadcast.airtime_s
    for opened in (second, first, second):
        assert opened.broadcast is not None
        lasts_s = opened.broadcast.airtime_s
        heard = Span(0.0, lasts_s, 0.0, airtime_s=lasts_s)
        assert server_energy_j(opened, [heard, heard]) == pytest.approx(SERVER_W * lasts_s)


def test_slots_sent_in_a_shared_band_are_billed_once_whichever_round_asks_first() -> None:
    """Overlapping rounds in a dynamic band are charged for exactly the slots that the band has sent."""
    radio = radio_of(sharing="dynamic")
    rounds = [opened_by(radio, [0, 1], 8_000_000), opened_by(radio, [2], 1_000_000)]
    processes = [
        radio.env.process(link.transfer("downlink", 4_000_000)) for opened in rounds for link in opened
    ]
    radio.env.run(until=radio.env.all_of(processes))
    spans = [process.value.span(0.0) for process in processes]
    sent_j = [server_energy_j(rounds[1], spans[2:], 0.0)]
    sent_j.append(server_energy_j(rounds[0], spans[:2], billed_slots=rounds[1].sent_slots))
    assert sum(sent_j) == pytest.approx(SERVER_W * radio.air.band(0, "downlink").band.sent_slots * SLOT_S)
    assert server_energy_j(rounds[1], spans[2:], 0.0) == sent_j[0], "reading the energy does not change it"


def test_a_transfer_that_is_cut_off_keeps_the_bits_of_its_whole_slots() -> None:
    """On fixed shares and static links, a transfer that is cut off has sent whole slots; other transfers continue."""
    radio = radio_of()
    opened = opened_by(radio, [0, 1], 8_000_000)
    kept, cut = (radio.env.process(link.transfer("downlink", 8_000_000)) for link in opened)

    def interrupt() -> Any:
        yield radio.env.timeout(10.5 * SLOT_S)
        cut.interrupt(Cause.LEFT)

    radio.env.process(interrupt())
    radio.env.run(until=kept)
    carrier, link = radio.air.carriers["downlink"], list(opened)[1]
    on_share = carrier.share_snr(link.share("downlink"), link.snr("downlink"))
    rate = float(carrier.efficiency(on_share * link.power("downlink").power(0, 1)[0]))
    bits = 10 * rate * carrier.part(link.share("downlink")).unit_bits
    assert (cut.value.bits, cut.value.cut) == (int(bits), Cause.LEFT)
    assert (kept.value.bits, kept.value.cut) == (8_000_000, None)

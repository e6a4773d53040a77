"""Power of a radio in the states of TR 38.840: sending, receiving, listening, and three depths of sleep."""

import math
from typing import ClassVar, Literal, NamedTuple

from pydantic import Field

from edgefl.channel.units import dbm_to_watt
from edgefl.engine.power_models import CIRCUITS, Connection, Draws, Equipment, PowerModel

# TR 38.840, Table 18 (FR1: 100 MHz, 30 kHz, 4 receive antennas): relative power
RECEIVE = 300.0  # PDCCH and PDSCH
LISTEN = 100.0  # PDCCH only
SEND_0_DBM, SEND_23_DBM = 250.0, 700.0
# Table 21, for reception: in a band of X MHz the power is multiplied by 0.4 + 0.6 (X - 20) / 80, but is at least
# `NARROWEST`; for each halving of the antennas it is multiplied by `HALF_THE_ANTENNAS`
NARROWEST = 50.0
HALF_THE_ANTENNAS = 0.7


class _Sleep(NamedTuple):
    """A depth of sleep, with its relative power and the cost of entering and leaving it."""

    units: float
    transition_s: float
    transition_unit_s: float  # energy of entering and leaving this sleep, in addition to the energy during it


# Tables 18 and 19: transitions take 450 units x ms for deep sleep, 100 for light sleep and 0 for micro sleep
SLEEPS = (_Sleep(1.0, 20e-3, 0.45), _Sleep(20.0, 6e-3, 0.1), _Sleep(45.0, 0.0, 0.0))


class TR38840(PowerModel):
    """NR's reference power model, with states of a radio and their power relative to deep sleep.

    Receiving takes 300 units. Sending takes 250 units at 0 dBm and 700 at 23 dBm; between and beyond these points, it
    is linear in radiated mW, as in an amplifier; 5G-LENA interpolates in dBm (475 units at 11.5 dBm instead of 280).
    In the other direction's slots of a TDD frame, and after a transfer until the inactivity timer expires, the radio
    listens, which takes 100 units. Then comes connected-mode DRX until the network releases the connection: in each
    cycle the radio listens for the on-duration and sleeps as deeply as the rest of the cycle allows, including
    transitions. After the release, `idle_power_w` applies. Receiving and listening take less power in a narrower band
    and with fewer antennas; `bandwidth_hz` is the width of the device's bandwidth part, not of the band. Times are
    the report's for file transfers (8.2: cycle 160 ms, timer 100 ms, on-duration 8 ms), and typical for the release.

    The report does not say how many watts a unit is. With 6 mW per unit, 700 units are 4.2 W, as measured on a phone
    that sends in a standalone 5G network (SIGCOMM21-5G/artifact).

    Source: 3GPP TR 38.840 V16.0.0, 8.1, Tables 18, 19 and 21, and 8.2; 5G-LENA's UE energy model
    (`nr-ue-energy-model.cc`, `nr-ue-drx-model.cc`) has the same figures. Left out: FR2 (Table 20: listen 175, receive
    or send 350), carrier aggregation, BWP switching, cross-slot scheduling, paging, micro sleep in uplink slots.
    """

    ignores: ClassVar[frozenset[str]] = CIRCUITS
    unit_w: ClassVar[float] = 0.006  # power of one relative unit, W
    inactivity_s: float = Field(
        0.1, ge=0, le=60, description="inactivity timer: the radio listens for this time after a transfer"
    )
    drx_cycle_s: float = Field(0.16, ge=0.01, le=10.24, description="cycle of connected-mode DRX")
    on_duration_s: float = Field(
        0.008, ge=0.001, le=0.01, description="part of each cycle in which the radio listens"
    )
    release_s: float = Field(
        10.0, ge=0, le=3600, description="time from the last transfer to the release of the connection"
    )
    bandwidth_hz: float = Field(
        100.0e6, ge=10e6, le=100e6, description="bandwidth of the bandwidth part in which the radio listens"
    )
    receive_antennas: Literal[1, 2, 4] = Field(4, description="receive antennas in use")

    def draws(self, equipment: Equipment) -> Draws:
        per_mw = (SEND_23_DBM - SEND_0_DBM) / (1e3 * dbm_to_watt(23.0) - 1.0)
        listen_w = self.received_units(LISTEN) * self.unit_w
        sleeping_s = max(0.0, self.release_s - self.inactivity_s)
        listening_s = min(self.inactivity_s, self.release_s)
        tail = (listening_s, listen_w), (sleeping_s, self.drx_units() * self.unit_w)
        return Draws(
            receive_w=self.received_units(RECEIVE) * self.unit_w,
            send_w=(SEND_0_DBM - per_mw) * self.unit_w,
            amplifier_w=1e3 * equipment.transmit_w * per_mw * self.unit_w,
            wait_w=listen_w,
            tail=tuple((lasts_s, power_w) for lasts_s, power_w in tail if lasts_s and power_w),
            connection=Connection(self.inactivity_s, self.drx_cycle_s, self.on_duration_s, self.release_s),
        )

    def received_units(self, reference: float) -> float:
        """Return the relative power of a receiving state, scaled by bandwidth and number of antennas."""
        share = 0.4 + 0.6 * (self.bandwidth_hz / 1e6 - 20.0) / 80.0
        narrowed = reference if self.bandwidth_hz == 100e6 else max(NARROWEST, reference * share)
        return narrowed * HALF_THE_ANTENNAS ** math.log2(4 / self.receive_antennas)

    def drx_units(self) -> float:
        """Return the mean relative power of connected-mode DRX."""
        rest_s = self.drx_cycle_s - self.on_duration_s
        slept = min(
            one.units * rest_s + one.transition_unit_s for one in SLEEPS if one.transition_s <= rest_s
        )
        return (self.received_units(LISTEN) * self.on_duration_s + slept) / self.drx_cycle_s

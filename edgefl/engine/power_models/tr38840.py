"""Power by the states of TR 38.840: sending, receiving, listening, and three depths of sleep."""

from typing import ClassVar, NamedTuple

from pydantic import Field

from channel.units import dbm_to_watt
from edgefl.engine.power_models import CIRCUITS, Draws, Equipment, PowerModel

# TR 38.840, 8.1 (FR1: 100 MHz, 30 kHz, 4 receive antennas): relative power
RECEIVE = 300.0  # PDCCH and PDSCH
LISTEN = 100.0  # PDCCH only
SEND_0_DBM, SEND_23_DBM = 250.0, 700.0


class Sleep(NamedTuple):
    """A depth of sleep: relative power, and what it takes to go there and come back."""

    units: float
    transition_s: float
    transition_unit_s: float  # on top


# there and back, deep sleep takes 450 units times ms, light sleep 100, micro sleep none
SLEEPS = (Sleep(1.0, 20e-3, 0.45), Sleep(20.0, 6e-3, 0.1), Sleep(45.0, 0.0, 0.0))


class TR38840(PowerModel):
    """NR's reference power model: a state for each thing a radio does, relative to deep sleep.

    Receiving is 300 units, sending 250 at 0 dBm to 700 at 23 dBm (on a line in mW; beyond, the line goes on). In the
    other direction's slots of a TDD frame, and after a transfer until the inactivity timer runs out, the radio
    listens: 100. Then comes connected-mode DRX until the network releases the connection: each cycle it listens for
    the on-duration and sleeps as deep as the rest allows, transitions counted. What follows is `idle_power_w`.
    The times are those that the report has for file transfers (cycle 160 ms, timer 100 ms, on-duration 8 ms), and a
    usual release.

    A unit is stated by whoever uses the model: 6 mW makes 700 units 4.2 W, measured on a phone that sends in a
    standalone 5G network (SIGCOMM21-5G/artifact).

    Source: 3GPP TR 38.840, 8.1. Left out: fewer carriers or antennas, BWP switches, cross-slot
    scheduling, paging.
    """

    ignores: ClassVar[frozenset[str]] = CIRCUITS
    unit_w: float = Field(0.006, ge=0, le=1, description="power of one relative unit, W")
    inactivity_s: float = Field(
        0.1, ge=0, le=60, description="inactivity timer: listens all the time after a transfer, s"
    )
    drx_cycle_s: float = Field(0.16, ge=0.01, le=10.24, description="cycle of connected-mode DRX, s")
    on_duration_s: float = Field(
        0.008, ge=0.001, le=0.01, description="of each cycle, in which it listens, s"
    )
    release_s: float = Field(
        10.0, ge=0, le=3600, description="from the last transfer until the connection is released, s"
    )

    def draws(self, equipment: Equipment) -> Draws:
        per_mw = (SEND_23_DBM - SEND_0_DBM) / (1e3 * dbm_to_watt(23.0) - 1.0)
        sleeping_s = max(0.0, self.release_s - self.inactivity_s)
        listening_s = min(self.inactivity_s, self.release_s)
        tail = (listening_s, LISTEN * self.unit_w), (sleeping_s, self.drx_units() * self.unit_w)
        return Draws(
            receive_w=RECEIVE * self.unit_w,
            send_w=(SEND_0_DBM - per_mw) * self.unit_w,
            amplifier_w=1e3 * equipment.transmit_w * per_mw * self.unit_w,
            wait_w=LISTEN * self.unit_w,
            tail=tuple((lasts_s, power_w) for lasts_s, power_w in tail if lasts_s and power_w),
        )

    def drx_units(self) -> float:
        """Return the mean relative power of connected-mode DRX."""
        rest_s = self.drx_cycle_s - self.on_duration_s
        slept = min(
            one.units * rest_s + one.transition_unit_s for one in SLEEPS if one.transition_s <= rest_s
        )
        return (LISTEN * self.on_duration_s + slept) / self.drx_cycle_s

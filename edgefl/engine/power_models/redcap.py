"""Power of a RedCap device in 20 MHz, by the radio states of TR 38.840."""

from typing import Literal

from pydantic import Field

from edgefl.engine.power_models.tr38840 import TR38840


class RedCap(TR38840):
    """NR's reference power model for a reduced-capability device with 20 MHz and one or two receive antennas.

    With two antennas, receiving takes 84 units instead of a phone's 300, and listening 35 instead of 100; with one
    antenna, 59 and 24.5 units. Sending takes as many units as on a phone that radiates the same power, since the
    amplifier determines them. Also set `devices.max_bandwidth_hz` to 20e6, so that transfers use at most 20 MHz.

    Source: 3GPP TS 38.306, 4.2.21.1 (20 MHz below 7 GHz, one or two antennas); for the power, as in tr38840, TR
    38.840, Tables 18 and 21. Left out: half-duplex FDD, extended DRX, and the limit of one layer with one antenna.
    """

    bandwidth_hz: float = Field(
        20.0e6, ge=10e6, le=20e6, description="bandwidth of the bandwidth part in which the radio listens"
    )
    receive_antennas: Literal[1, 2] = Field(2, description="receive antennas in use")

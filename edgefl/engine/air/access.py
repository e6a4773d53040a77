"""Compute how long work at both ends, radio access, and the path to the server delay a transfer's first bit."""

import math
from typing import NamedTuple

from pydantic import Field

from edgefl.channel.tdd import Direction
from edgefl.config.scenario_fields import Section
from edgefl.engine.power_models import Connection

# RFC 6928: TCP sends ten segments of 1460 bytes before it waits for their acknowledgement
FIRST_WINDOW_BITS = 10 * 1460 * 8
# tolerance, in slots, for rounding errors of times that are whole numbers of slots
WHOLE = 1e-6


class AccessSettings(Section):
    """Settings of the delay between the request for a transfer and the transfer's first bit."""

    setup_s: float = Field(
        0.0,
        ge=0,
        le=60,
        description="time for random access and RRC setup of a device without a connection: before its first"
        " transfer, and after a release (devices.power.release_s), a failed link or a switch-off",
    )
    grant_s: float = Field(
        0.0, ge=0, le=10, description="time for request and grant before an upload of a connected device"
    )
    round_trip_s: float = Field(
        0.0,
        ge=0,
        le=10,
        description="round-trip time to the server: a download begins one round trip after its request, and TCP's"
        " slow start takes additional round trips in both directions",
    )
    before_downlink_s: float = Field(
        0.0,
        ge=0,
        le=3600,
        description="time before a download, during which the radio is not used: for serialisation, or until the "
        "device polls again",
    )
    before_uplink_s: float = Field(
        0.0, ge=0, le=3600, description="time before an upload, during which the radio is not used"
    )


class Lead(NamedTuple):
    """Slots that a device waits before a transfer, first with its radio at rest, then connected and listening."""

    resting: int
    listening: int

    @property
    def slots(self) -> int:
        """Total number of slots that a device waits before the transfer."""
        return self.resting + self.listening


NO_LEAD = Lead(0, 0)


def lead_of(
    rules: AccessSettings | None,
    slot_s: float,
    direction: Direction,
    bits: float,
    since_s: float,
    connection: Connection,
    rate_bit_s: float | None,
) -> Lead:
    """Return the numbers of slots that a device waits before a transfer that is requested now.

    A device whose connection has been released sets up a new one by itself, without paging. A connected device that
    has been silent for longer than the inactivity timer listens only in the on-duration of each DRX cycle, so a
    download waits for the next on-duration. An upload does not wait, since its scheduling request ends the sleep.
    While access does not use the radio, the device stays in the state in which its last transfer left it.

    Args:
        rules: settings of access, or None if access takes no time.
        bits: bits of the transfer; an empty transfer does not wait.
        since_s: time since the end of the device's last transfer; inf without a connection.
        connection: timers of the device's connection.
        rate_bit_s: mean rate of the link, or None for a broadcast, which waits for no acknowledgements.

    Source: 38.321, 5.4.4 (scheduling request), 5.7 (DRX); 38.331, 5.3.3 (setup). Left out: paging, collisions of
    preambles, retransmissions, the power of the device's short messages, and data sent during slow start.
    """
    if rules is None or not bits:
        return NO_LEAD
    down = direction == "downlink"
    resting_s = rules.before_downlink_s if down else rules.before_uplink_s
    silent_s = resting_s if math.isinf(connection.release_s) else since_s + resting_s
    listening_s = 0.0 if down else rules.grant_s
    if silent_s >= connection.release_s:
        listening_s = rules.setup_s
    elif down and silent_s > connection.inactivity_s:
        in_cycle_s = (silent_s - connection.inactivity_s) % connection.drx_cycle_s
        if in_cycle_s >= connection.on_duration_s:
            resting_s += connection.drx_cycle_s - in_cycle_s
    if rate_bit_s is not None:
        listening_s += down * rules.round_trip_s + slow_start_s(bits, rate_bit_s, rules.round_trip_s)
    return Lead(math.ceil(resting_s / slot_s - WHOLE), math.ceil(listening_s / slot_s - WHOLE))


def slow_start_s(bits: float, rate_bit_s: float, round_trip_s: float) -> float:
    """Return the time for which TCP's slow start leaves a link of the given rate idle.

    The sender waits for an acknowledgement after each window. The first window has ten segments (RFC 6928), and the
    windows double (RFC 5681) until sending a window takes as long as the round trip, or nothing is left to send.
    Every transfer begins with slow start, as after an idle time of a few hundred milliseconds (RFC 5681, 4.1).
    """
    window_bits, stalled_s = float(FIRST_WINDOW_BITS), 0.0
    while bits > window_bits < rate_bit_s * round_trip_s:
        bits -= window_bits
        stalled_s += round_trip_s - window_bits / rate_bit_s
        window_bits *= 2.0
    return stalled_s

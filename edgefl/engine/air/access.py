"""What passes before a transfer's first bit: work at its two ends, access to the radio, and the way to the server."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic import Field

from edgefl.channel.carrier import Carrier
from edgefl.channel.fading import Fading
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.config.scenario_fields import Section
from edgefl.engine.power_models import Draws

# RFC 6928: TCP sends ten segments of 1460 bytes before it waits for their acknowledgement
FIRST_WINDOW_BITS = 10 * 1460 * 8
# a share of a slot; a time of whole slots may miss them by a rounding error
WHOLE = 1e-6


class AccessSettings(Section):
    """Time before a transfer in which none of its bits move."""

    setup_s: float = Field(
        0.0,
        ge=0,
        le=60,
        description="random access and RRC setup of a device without a connection: at its first transfer, after its"
        " release (devices.power.release_s), a failed link, or a time switched off",
    )
    grant_s: float = Field(
        0.0, ge=0, le=10, description="scheduling request and grant before the upload of a connected device"
    )
    round_trip_s: float = Field(
        0.0,
        ge=0,
        le=10,
        description="round trip to the server: one before a download, for the request and its answer; in both"
        " directions TCP's slow start takes some more",
    )
    before_downlink_s: float = Field(
        0.0,
        ge=0,
        le=3600,
        description="time before a download that is not the radio's: serialisation, or until a device asks again",
    )
    before_uplink_s: float = Field(0.0, ge=0, le=3600, description="the same before an upload")


@dataclass(frozen=True)
class Lead:
    """Slots [n] before each transfer: at first the radio stays as it was, then it is connected and listens."""

    resting: npt.NDArray[np.int64]
    listening: npt.NDArray[np.int64]

    @property
    def slots(self) -> npt.NDArray[np.int64]:
        """All slots, [n]."""
        return self.resting + self.listening


def leads(
    rules: AccessSettings,
    slot_s: float,
    direction: Direction,
    bits: Sequence[int] | FloatArray,
    since_s: FloatArray,
    draws: Sequence[Draws],
    rate_bit_s: FloatArray | None,
) -> Lead:
    """Return what passes before transfers [n] that could begin now.

    A device whose connection has been released sets up a new one; it calls the server itself, without paging. A
    connected device that has been silent for longer than the inactivity timer listens in the on-duration of each DRX
    cycle only: a download waits for the next one. An upload does not: its scheduling request ends the sleep. Before,
    in the time that is not the radio's, the radio is as it was after its last transfer.

    Args:
        bits: a transfer without bits has no lead.
        since_s: time since the end of each device's last transfer; inf without a connection.
        rate_bit_s: mean rate; None for a broadcast, which waits for no answers.

    Source: 38.321, 5.4.4 (scheduling request), 5.7 (DRX); 38.331, 5.3.3 (setup). Left out: paging, collisions of
    preambles, retransmissions, the power of the device's own short messages, and data sent during slow start.
    """
    down = direction == "downlink"
    before_s = rules.before_downlink_s if down else rules.before_uplink_s
    timers = np.array([one.connection for one in draws]).reshape(-1, 4).T
    inactivity_s, cycle_s, on_duration_s, release_s = timers
    silent_s = np.where(np.isfinite(release_s), since_s, 0.0) + before_s
    idle = silent_s >= release_s
    resting_s, listening_s = np.full(len(bits), before_s), np.where(idle, rules.setup_s, 0.0)
    if down:
        asleep_s = np.where(idle, 0.0, silent_s - inactivity_s)
        in_cycle_s = np.mod(np.maximum(asleep_s, 0.0), cycle_s)
        resting_s = resting_s + np.where(in_cycle_s < on_duration_s, 0.0, cycle_s - in_cycle_s)
    else:
        listening_s = np.where(idle, listening_s, rules.grant_s)
    if rate_bit_s is not None:
        own_s = rules.round_trip_s if down else 0.0
        listening_s = listening_s + own_s + slow_start_s(bits, rate_bit_s, rules.round_trip_s)
    moves = np.asarray(bits) > 0
    resting, listening = (
        np.where(moves, np.ceil(of_s / slot_s - WHOLE), 0.0).astype(np.int64)
        for of_s in (resting_s, listening_s)
    )
    return Lead(resting, listening)


def slow_start_s(bits: Sequence[int] | FloatArray, rate_bit_s: FloatArray, round_trip_s: float) -> FloatArray:
    """Return the time [n] for which TCP's slow start lets a link of this rate stand still.

    The sender waits for an acknowledgement after each window, from ten segments (RFC 6928) on, each twice as large as
    the last one (RFC 5681), until a window takes the link as long as the round trip, or nothing is left to send. Each
    transfer begins anew, as after a silence of some hundred milliseconds (RFC 5681, 4.1).
    """
    left_bits, window_bits = np.asarray(bits, dtype=float), float(FIRST_WINDOW_BITS)
    stalled_s = np.zeros(len(left_bits))
    while (left_bits > window_bits).any():
        left_bits = left_bits - window_bits
        with np.errstate(divide="ignore"):
            waits_s = np.maximum(0.0, round_trip_s - window_bits / rate_bit_s)
        if not waits_s.any():
            break
        stalled_s += np.where(left_bits > 0, waits_s, 0.0)
        window_bits *= 2.0
    return stalled_s


def mean_rates_bit_s(
    carrier: Carrier, share: FloatArray, snr: FloatArray, fading: Sequence[Fading]
) -> FloatArray:
    """Return the mean rates [n] of shares of a band, bit/s, over a frame and the fading of links that fade."""
    rate = carrier.mean_share_rate(share, snr)
    static = np.array([link.static for link in fading], dtype=bool)
    if static.any():
        held = np.array([link.power(0, 1)[0] if link.static else 1.0 for link in fading])
        rate = np.where(static, carrier.share_rate(share, snr * held), rate)
    return np.asarray(carrier.unit_bits * carrier.frame.mean * rate / carrier.slot_s)

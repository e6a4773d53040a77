"""Compute how long the broadcast of a round's model takes, and how many bits each device receives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgefl.channel.carrier import Carrier
from edgefl.channel.fading import Fading
from edgefl.channel.transfer import Flow
from edgefl.channel.units import FloatArray
from edgefl.errors import EdgeflError


@dataclass(frozen=True)
class Broadcast:
    """Broadcast of a model over the whole band; with an erasure code, only the number of received bits matters.

    The broadcast lasts as long as the payload takes at a single rate, which is a quantile of the devices' mean rates
    over fading. In a slot a device receives the bits that its own SNR allows. A device has the model once it has
    received as many bits as the payload; others download the rest by unicast, on an equal share of the band.

    Units: slots, bits; mean SNR on the whole band, linear. Source: 3GPP TS 23.247 (multicast and broadcast with
    point-to-point repair). Left out: new measurements of gains during the broadcast, which is short; feedback; and
    the cost of one modulation for all devices, a cost that layered and rateless codes nearly remove. A broadcast has
    one layer and no array gain. Without broadcast, rounds take 1.4 times as long, and their slowest devices twice as
    long (90 devices in a cell of 250 m).

    Args:
        received_bits: device -> bits that the device has received when the broadcast ends.
        fading, snr: fading and SNR of each device.
        share: share of the band for each device that downloads missing bits.
    """

    carrier: Carrier
    first_slot: int
    end_slot: int
    received_bits: dict[int, float]
    links: dict[int, tuple[float, Fading]]
    share: float

    @classmethod
    def of_round(
        cls,
        carrier: Carrier,
        devices: Sequence[int],
        snr: FloatArray,
        fading: Sequence[Fading],
        payload_bits: Sequence[int],
        *,
        quantile: float,
        first_slot: int,
        lowest_snr: float = 0.0,
    ) -> "Broadcast":
        """Plan the broadcast of a round.

        Args:
            payload_bits: [devices] bits of the model sent to each device, either 0 or a number common to all devices.
            quantile: quantile of the devices' rates at which to send; 0 is the rate of the worst device.
            lowest_snr: mean SNR below which a device receives nothing; the choice of the rate ignores such a device.
        """
        payload = max(payload_bits, default=0)
        if set(payload_bits) - {0, payload}:
            raise EdgeflError(
                "broadcast sends one model to all, but devices here receive different models: set downlink: unicast",
                ("radio", "downlink"),
            )
        listening = [i for i, bits in enumerate(payload_bits) if bits]
        links = {devices[i]: (float(snr[i]), fading[i]) for i in listening}
        rates = [
            float(carrier.mean_efficiency(mean_snr, own.static))
            for whole_snr, own in links.values()
            if (mean_snr := whole_snr * own.mean_power) >= lowest_snr
        ]
        # use the rate of an actual device instead of interpolating between two
        rate = float(np.quantile(rates, quantile, method="lower")) if rates else 0.0
        # if all devices are below the lowest rate, all bits are sent by unicast
        slots = carrier.frame.slots(first_slot, carrier.need(payload) / rate) if rate else 0
        received = {device: _received(carrier, *link, first_slot, slots) for device, link in links.items()}
        lacking = sum(bits < payload for bits in received.values())
        return cls(carrier, first_slot, first_slot + slots, received, links, 1.0 / max(1, lacking))

    def missing_bits(self, device: int, payload_bits: int) -> int:
        """Return the whole number of bits that a device still lacks when the broadcast ends."""
        return math.ceil(max(0.0, payload_bits - self.received_bits[device]))

    def bits_until(self, device: int, slot: int) -> float:
        """Return the bits that a device has received up to a slot."""
        return _received(self.carrier, *self.links[device], self.first_slot, slot - self.first_slot)

    @property
    def airtime_s(self) -> float:
        """Airtime of the broadcast, s."""
        slots = self.end_slot - self.first_slot
        return self.carrier.frame.airtime(self.first_slot, slots) * self.carrier.slot_s


def _received(carrier: Carrier, snr: float, fading: Fading, first_slot: int, slots: int) -> float:
    # round up slightly, so that the slowest static link receives everything by the last slot
    return Flow(carrier, snr, fading, first_slot, fidelity="slot").bits_carried(slots) * (1.0 + 1e-12)

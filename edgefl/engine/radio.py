"""The radio: links of a round, and transfers as one event each."""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import simpy

from channel.fading import LinkFading, slot_correlation
from channel.ofdma import mean_snr
from channel.transfer import transfer_bits, transfer_slots
from channel.units import db_to_linear, dbm_to_watt
from edgefl.engine.gains import Gains, RoundKey
from edgefl.errors import EdgeflError
from edgefl.rng import Streams
from edgefl.scenario import RadioSettings

Direction = Literal["downlink", "uplink"]
# A stage that ended at a slot boundary may read the clock one rounding below it.
SLOT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Link:
    """A device's share of the band and its large-scale gain, both held for one round."""

    fading: LinkFading
    distance_m: float
    bandwidth_hz: float
    snr: dict[Direction, float]


@dataclass
class Transfer:
    """A transfer under way or ended; `bits` is what has been moved."""

    start_s: float
    end_s: float
    bits: int


class Radio:
    """Times transfers between base stations and devices.

    The large-scale gain is held for a round, fading is a function of link and slot. J's TDD: each device's
    downlink and uplink intervals follow one another, full power over its own share (J 24, 25); no device
    interferes with another of its cell.
    """

    def __init__(
        self,
        env: simpy.Environment,
        *,
        settings: RadioSettings,
        device_power_w: float,
        speeds_m_s: np.ndarray,
        gains: Gains,
        share: Callable[[float, int], float],
        streams: Streams,
    ) -> None:
        self.env = env
        server_power_w = dbm_to_watt(settings.server_power_dbm)
        self.server_draw_w = server_power_w / settings.server_pa_efficiency
        self._settings = settings
        self._power_w = {"downlink": server_power_w, "uplink": device_power_w}
        self._noise_psd_w_hz = dbm_to_watt(settings.noise_dbm_hz)
        self._gains = gains
        self._share = share
        self._streams = streams
        self._correlations = [
            slot_correlation(float(speed), carrier_hz=settings.carrier_hz, slot_s=settings.slot_s)
            for speed in speeds_m_s
        ]
        self._links: dict[tuple[int, int], LinkFading] = {}

    def fading(self, device: int, cell: int) -> LinkFading:
        """The fading of the link between a device and a cell's site."""
        if (device, cell) not in self._links:
            key = self._streams.key("fading", device, cell)
            self._links[device, cell] = LinkFading(key, self._correlations[device])
        return self._links[device, cell]

    def survey(
        self, positions_m: np.ndarray, ids: Sequence[int], cell: int, key: RoundKey
    ) -> tuple[np.ndarray, np.ndarray]:
        """[ids] large-scale gain in dB and [ids] distance in m, for the round named by key."""
        return self._gains.of_round(positions_m, ids, cell, key)

    def open_round(
        self, ids: Sequence[int], gains_db: np.ndarray, distances_m: np.ndarray, cell: int
    ) -> dict[int, Link]:
        """Links of a round's participants, who share the cell's band; gains and distances as surveyed."""
        bandwidth_hz = self._share(self._settings.bandwidth_hz, len(ids))
        gains = db_to_linear(gains_db)
        snr = {
            direction: mean_snr(power_w, gains, self._noise_psd_w_hz, bandwidth_hz)
            for direction, power_w in self._power_w.items()
        }
        return {
            device: Link(
                fading=self.fading(device, cell),
                distance_m=float(distances_m[i]),
                bandwidth_hz=bandwidth_hz,
                snr={"downlink": float(snr["downlink"][i]), "uplink": float(snr["uplink"][i])},
            )
            for i, device in enumerate(ids)
        }

    def transfer(
        self, link: Link, direction: Direction, payload_bits: int, done: Callable[[Transfer], None]
    ) -> Generator[simpy.Event, None, None]:
        """Move payload_bits from the next slot on; `done` gets the transfer, also one that was cut off."""
        slot_s = self._settings.slot_s
        first_slot = math.ceil(self.env.now / slot_s - SLOT_TOLERANCE)
        transfer = Transfer(first_slot * slot_s, first_slot * slot_s, 0)
        how: dict[str, Any] = {
            "fidelity": self._settings.fidelity,
            "bandwidth_hz": link.bandwidth_hz,
            "snr": link.snr[direction],
            "slot_s": slot_s,
            "fading": link.fading,
            "first_slot": first_slot,
            "direction": direction,
        }
        try:
            yield self.env.timeout(max(0.0, transfer.start_s - self.env.now))
            end_s = (first_slot + self._slots(payload_bits, how)) * slot_s
            yield self.env.timeout(max(0.0, end_s - self.env.now))
            transfer.end_s, transfer.bits = end_s, payload_bits
        except simpy.Interrupt:
            # only whole slots have moved bits; the power was spent until the very end
            transfer.end_s = max(self.env.now, transfer.start_s)
            whole_slots = int((transfer.end_s - transfer.start_s) / slot_s + SLOT_TOLERANCE)
            transfer.bits = int(transfer_bits(payload_bits, whole_slots, **how))
            raise
        finally:
            done(transfer)

    def _slots(self, payload_bits: int, how: dict[str, Any]) -> int:
        try:
            return transfer_slots(payload_bits, **how)
        except ValueError as error:  # a transfer that would practically never end
            raise EdgeflError(str(error), ("radio",)) from error

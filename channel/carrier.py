"""The carrier of a transfer, which describes everything except the link: bandwidth, slots, frame and rate rules."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from edgefl.channel.modulation import Steps, diversity_rate
from edgefl.channel.share import (
    PowerRule,
    check_cap,
    check_power_rule,
    ergodic_rate,
    share_snr,
    spectral_efficiency,
)
from edgefl.channel.tdd import Frame, Weights, frame_of
from edgefl.channel.units import FloatArray, Values

__all__ = ["Carrier"]

# 28 hours of 0.5 ms slots; longer transfers raise an error
MAX_SLOTS = 200_000_000


# Cap, steps and frame
Rules = tuple[float | None, Steps | None, Weights | None]


@dataclass(frozen=True)
class Carrier:
    """A band in one direction, or a share of it, with its rate rules; arguments are checked on construction.

    Args:
        bandwidth_hz: bandwidth W, > 0.
        slot_s: length tau of a slot, > 0.
        weights: [period] weights of a TDD frame's slots, see `edgefl.channel.tdd`; None to use every slot in full.
        cap: highest spectral efficiency in bits/s/Hz, > 0, or None for no limit.
        power: how power is spread over a share of the band, see `edgefl.channel.share.PowerRule`.
        steps: NR's CQI table; if None, the rate is Shannon's, up to the cap.
        goodput: payload bits per transmitted bit, in (0, 1]; the other bits are control and reference signals,
            headers and retransmissions.
        taps: number of independent parts of the band over which a slot averages, see `edgefl.channel.diversity`;
            with several parts, rates follow from the band's mean SNR.
        blocks: number of resource blocks of a dynamically shared band, >= 1; None if shares may be any fraction.

    Raises:
        ValueError: an argument is out of range.
    """

    bandwidth_hz: float
    slot_s: float
    weights: Weights | None = None
    cap: float | None = None
    power: PowerRule = "full"
    steps: Steps | None = None
    goodput: float = 1.0
    taps: int = 1
    blocks: int | None = None

    def __post_init__(self) -> None:
        if not (0 < self.bandwidth_hz < math.inf and 0 < self.slot_s < math.inf):
            raise ValueError(
                f"bandwidth_hz and slot_s must be > 0, got {self.bandwidth_hz} Hz and {self.slot_s} s"
            )
        if self.cap is not None:
            check_cap(self.cap)
        check_power_rule(self.power)
        if not (0 < self.goodput <= 1 and self.taps >= 1):
            raise ValueError(
                f"goodput must be above 0 and at most 1, and taps >= 1, got {self.goodput} and {self.taps}"
            )
        frame_of(self.weights)

    @cached_property
    def frame(self) -> Frame:
        """The TDD frame; without weights, a frame that serves in every slot."""
        return frame_of(self.weights)

    @property
    def rules(self) -> Rules:
        """Cap, rate steps and frame weights, which are the same for all shares of a band."""
        return self.cap, self.steps, self.weights

    @property
    def unit_bits(self) -> float:
        """Bits that 1 bit/s/Hz carries in a full slot, W tau."""
        return self.unit_bits_of(1.0)

    def unit_bits_of(self, share: Values) -> Values:
        """Return the bits that 1 bit/s/Hz carries in a full slot on a share b of this band, b W tau, in b's shape."""
        bits = share * self.bandwidth_hz * self.slot_s
        return bits if self.goodput == 1.0 else bits * self.goodput

    @property
    def plain(self) -> bool:
        """Whether rates follow Shannon's formula over Rayleigh fading, without rate steps or frequency diversity."""
        return self.steps is None and self.taps == 1

    def part(self, share: float) -> "Carrier":
        """Return the carrier of a share > 0 of this band; the last result is cached for the next equal share."""
        last = self._last_part.get(share)
        if last is None:
            self._last_part.clear()
            last = self._last_part[share] = replace(self, bandwidth_hz=share * self.bandwidth_hz)
        return last

    @cached_property
    def _last_part(self) -> dict[float, "Carrier"]:
        return {}

    def need(self, payload_bits: float) -> float:
        """Compute the sum of spectral efficiencies over slots that a payload needs, Z / (W tau).

        Raises:
            ValueError: the payload is negative or not finite.
        """
        if not 0 <= payload_bits < math.inf:
            raise ValueError(f"payload_bits must be >= 0 and finite, got {payload_bits}")
        return payload_bits / self.unit_bits

    def needs(self, payload_bits: FloatArray, share: FloatArray) -> FloatArray:
        """Compute the sums of spectral efficiencies [transfers] that payloads need on shares of this band.

        Raises:
            ValueError: a payload is negative or not finite, or a share is not positive.
        """
        if not ((payload_bits >= 0) & (payload_bits < math.inf)).all():
            raise ValueError(f"payload_bits must be >= 0 and finite, got {payload_bits}")
        if not ((share > 0) & (share < math.inf)).all():
            raise ValueError(f"shares of the band must be > 0, got {share}")
        return payload_bits / self.unit_bits_of(share)

    def efficiency(self, snr: npt.ArrayLike) -> FloatArray:
        """Compute min(log2(1 + snr), cap) or the table's rate in one full slot, bits/s/Hz, in the shape of snr."""
        if self.steps is not None:
            return self.steps.efficiency(snr)
        return spectral_efficiency(snr, self.cap)

    def mean_efficiency(self, snr: npt.ArrayLike, static: npt.ArrayLike = False) -> FloatArray:
        """Return the spectral efficiency, bits/s/Hz, averaged over the fading (Rayleigh or taps), in snr's shape.

        Args:
            static: whether the link has a constant SNR, without fading; broadcasts with snr.
        """
        some = static is not False and bool(np.any(static))
        if some and np.all(static):  # avoid importing SciPy
            return self.efficiency(snr)
        if self.steps is not None:
            rate = self.steps.mean_efficiency(snr, self.taps)
        elif self.taps > 1:
            rate = diversity_rate(snr, self.taps, self.cap)
        else:
            rate = ergodic_rate(snr, self.cap)
        return np.where(static, self.efficiency(snr), rate) if some else rate

    def share_snr(self, share: npt.ArrayLike, snr: npt.ArrayLike) -> FloatArray:
        """Compute the SNR on a share of this band from the SNR on the whole band with full power."""
        return share_snr(share, snr, self.power)

    def share_rate(self, share: npt.ArrayLike, snr: npt.ArrayLike) -> FloatArray:
        """Compute the rate of a share in one full slot, in bits/s per Hz of this band.

        Args:
            share: share b of the band, 0 to 1.
            snr: SNR in the slot on this band with full power; broadcasts with share.
        """
        part = np.asarray(share, dtype=float)
        return part * self.efficiency(self.share_snr(part, snr))

    def mean_share_rate(
        self, share: npt.ArrayLike, snr: npt.ArrayLike, static: npt.ArrayLike = False
    ) -> FloatArray:
        """Return the rate of a share averaged over the fading; snr is the mean SNR on this band with full power.

        Args:
            static: whether the link has a constant SNR, without fading.
        """
        part = np.asarray(share, dtype=float)
        return part * self.mean_efficiency(self.share_snr(part, snr), static)

    def mean_slot_bits(
        self, share: npt.ArrayLike, snr: npt.ArrayLike, static: npt.ArrayLike = False
    ) -> FloatArray:
        """Return the bits that shares of this band carry in a slot, averaged over the fading and the frame."""
        return np.asarray(self.unit_bits * self.frame.mean * self.mean_share_rate(share, snr, static))

    def seconds(
        self, payload_bits: Values, share: npt.ArrayLike, snr: npt.ArrayLike, static: npt.ArrayLike = False
    ) -> FloatArray:
        """Return the time in s that payloads take at the mean rate; inf if the rate is 0. Arguments broadcast."""
        with np.errstate(divide="ignore", invalid="ignore"):
            taken_s = payload_bits / self.mean_slot_bits(share, snr, static) * self.slot_s
        return np.where(payload_bits > 0, taken_s, 0.0)

    def refuse_endless(self, need: float, snr: float) -> None:
        """Raise an error, before any slot is read, if a transfer cannot end.

        Raises:
            ValueError: even at an upper bound on the mean rate, the transfer would take more than MAX_SLOTS.
        """
        # log2(1 + snr) is a cheap upper bound on the ergodic rate (Jensen)
        rate = math.log1p(snr) / math.log(2.0)
        rate = self.frame.mean * (rate if self.cap is None else min(rate, self.cap))
        if need > MAX_SLOTS * rate:
            raise ValueError(
                endless(f"at snr {snr:g} it is expected to take {need / rate:.3g} slots", MAX_SLOTS)
            )


def check_snr(snr: float) -> None:
    """Raise if a transfer at a given SNR could never end.

    Raises:
        ValueError: the SNR is not positive and finite.
    """
    if not 0 < snr < math.inf:
        raise ValueError(f"snr must be positive and finite for a transfer to end, got {snr}")


def endless(why: str, max_slots: int) -> str:
    """Return the error message for a transfer that would never end."""
    return (
        f"the transfer does not end within {max_slots} slots ({why}): give it more bandwidth or power, "
        "a smaller payload, or a shorter distance"
    )

"""Compute packet errors by the waterfall model or by an SNR threshold."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgefl.channel.fading import Fading
from edgefl.channel.units import FloatArray

__all__ = ["PacketErrors", "ThresholdErrors", "WaterfallErrors"]

STREAM = 2  # index of the random stream of packet errors, per link and slot; transfers use lower indices


class PacketErrors(ABC):
    """Packet errors with a probability that depends on the mean SNR on the packets' band."""

    @abstractmethod
    def arrives(self, snr: npt.ArrayLike, static: npt.ArrayLike = False) -> FloatArray:
        """Return the probability that packets arrive.

        Args:
            snr: [...] mean SNR on each packet's band, above 0. static: [...] whether the packet's link does not fade.
        """

    def drawn(self, fading: Fading, snr: float, end_slot: int) -> tuple[float, bool]:
        """Return a packet's probability of arrival, and whether it is lost, a function of its link, SNR and end slot.

        Args:
            snr: mean SNR on the packet's band; for a static link the SNR includes |h|^2.
        """
        arrives = float(self.arrives(snr, fading.static))
        return arrives, bool(fading.generator(end_slot, STREAM).random() >= arrives)


@dataclass(frozen=True)
class WaterfallErrors(PacketErrors):
    """Packets arrive with probability E exp(-m / (SNR X)), where X is the power of fading of mean 1.

    X is exponential for one tap, and Gamma(L, 1/L) for the mean of L taps. With c = m / SNR

        E exp(-c / X) = 2 (c L)^(L/2) K_L(2 sqrt(c L)) / Gamma(L).

    Source: Xi, Burr, Wei and Grace, IEEE Trans. Wireless Commun. 10(9), 2011, as used by Chen et al., IEEE Trans.
    Wireless Commun. 20(1), 2021, eq. 7. Ignored: packet length, code rate, and fading changes during a long packet.

    Args:
        waterfall: waterfall threshold m, linear.
        taps: L, number of independent parts of the band.
    """

    waterfall: float
    taps: int = 1

    def arrives(self, snr: npt.ArrayLike, static: npt.ArrayLike = False) -> FloatArray:
        """Return the probability that packets arrive."""
        from scipy import special

        c = self.waterfall / np.asarray(snr, dtype=float)
        root, taps = np.sqrt(c * self.taps), self.taps
        with np.errstate(over="ignore", invalid="ignore"):
            faded = 2.0 * root**taps * special.kv(taps, 2.0 * root) / special.gamma(taps)
        # where K overflows, two terms of the exponential series are exact
        faded = np.where(np.isfinite(faded), faded, 1.0 - c * taps / max(taps - 1, 1))
        return np.asarray(np.where(static, np.exp(-c), np.minimum(faded, 1.0)))


@dataclass(frozen=True)
class ThresholdErrors(PacketErrors):
    """Packets arrive if their SNR, fading included, is above a threshold.

    For one tap, whose fading X is exponential with mean 1, P(SNR X > theta) = exp(-theta / SNR); the mean of
    L taps is Gamma(L, 1/L), and P is its survival function, Q(L, L theta / SNR).

    Source: Yang, Liu, Quek and Poor, IEEE Trans. Commun. 68(1), 2020. Ignored: see `WaterfallErrors`.

    Args:
        threshold: lowest SNR theta at which packets arrive, linear.
        taps: L.
    """

    threshold: float
    taps: int = 1

    def arrives(self, snr: npt.ArrayLike, static: npt.ArrayLike = False) -> FloatArray:
        """Return the probability that packets arrive."""
        from scipy import special

        ratio = self.threshold / np.asarray(snr, dtype=float)
        return np.asarray(np.where(static, ratio < 1.0, special.gammaincc(self.taps, self.taps * ratio)))

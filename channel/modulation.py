"""Compute the rate steps of NR's modulations and codes, and the SNR that each step needs."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from edgefl.channel.units import FloatArray, db_to_linear

__all__ = ["Steps"]

# Bit/s/Hz of CQI 1 to 15, QPSK 78/1024 to 256QAM 948/1024, and the bits per symbol of their modulations. Source: 3GPP
# TS 38.214, Table 5.2.2.1-3.
EFFICIENCIES = (
    *(0.1523, 0.3770, 0.8770, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223),
    *(3.9023, 4.5234, 5.1152, 5.5547, 6.2266, 6.9141, 7.4063),
)
SYMBOL_BITS = (2, 2, 2, 4, 4, 4, 6, 6, 6, 6, 6, 8, 8, 8, 8)

# Least number of SNRs for which steps are looked up by the SNR's leading bits instead of searched for
_MANY = 512
# A float64 has its sign and exponent above bit 52; together with three bits of the fraction, they identify the eighth
# of an octave. Steps of several layers are closer together and need more bits.
_FRACTION_BIT, _FEWEST_BITS = 52, 3

# Points of the integral over a part's rate, and number of bisections for the required SNR
_NODES, _HALVINGS = 64, 60


def _snr_needed(efficiency: npt.ArrayLike, gap_db: float) -> FloatArray:
    """Return the linear SNR that each rate in bit/s/Hz needs, gap * (2^rate - 1), in the rates' shape.

    Args:
        gap_db: SNR that real codes need beyond Shannon's limit, >= 0.
    """
    return float(db_to_linear(gap_db)) * np.expm1(np.asarray(efficiency, dtype=float) * np.log(2.0))


def snr_needed_over_parts(
    efficiency: npt.ArrayLike, symbol_bits: npt.ArrayLike, gap_db: float, parts: int
) -> FloatArray:
    """Return the mean SNR over a band's independent parts that each rate needs with one code over all parts.

    A transport block is coded over all of its resource blocks, so strong parts compensate for weak parts: the block
    arrives if the mean information of its symbols reaches its rate. A part at SNR s conveys min(log2(1 + s / gap), m)
    of a symbol's m bits. Given the mean SNR x of L parts, the SNR of one part is L x B with B ~ Beta(1, L - 1), and

        E[information] = integral_0^m (1 - gap (2^t - 1) / (L x))^(L-1) dt, where the base is at least 0.

    Source: the mean mutual information per coded bit of link-to-system mappings (Brueninghaus et al., PIMRC 2005),
    with Shannon's formula and a gap instead of the constellations' curves. Left out: the spread of the mean
    information around its expectation at a given mean SNR.

    Args:
        efficiency: [n] rates in bit/s/Hz, ascending. symbol_bits: [n] bits m of a symbol, above the rate.
        parts: number L of independent parts, >= 1; with one part the result equals that of `_snr_needed`.

    Returns:
        [n] mean SNR that each rate needs, linear.
    """
    rates = np.asarray(efficiency, dtype=float)
    flat = _snr_needed(rates, gap_db)
    if parts == 1:
        return flat
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    low, high = flat, flat * 2.0**10  # by Jensen's inequality, not below the SNR that a flat band needs
    for _ in range(_HALVINGS):
        mean = np.sqrt(low * high)
        # SNR, divided by the gap, of a part with all of the power
        strongest = parts * mean / float(db_to_linear(gap_db))
        top = np.minimum(symbol_bits, np.log1p(strongest) / np.log(2.0))
        t = top[:, None] * (nodes + 1.0) / 2.0
        above = (1.0 - np.expm1(t * np.log(2.0)) / strongest[:, None]) ** (parts - 1)
        enough = np.einsum("nt,t->n", above, weights) * top / 2.0 >= rates
        low, high = np.where(enough, low, mean), np.where(enough, mean, high)
    return high


@lru_cache(maxsize=64)
def _snr_needed_by_cqis(count: int, gap_db: float, parts: int) -> FloatArray:
    """Return `snr_needed_over_parts` of the CQI table's first rates, which takes 5 ms and which many radios share."""
    needed = snr_needed_over_parts(EFFICIENCIES[:count], SYMBOL_BITS[:count], gap_db, parts)
    needed.flags.writeable = False
    return needed


@dataclass(frozen=True)
class Steps:
    """Rates of the CQI table times layers; a slot has the highest rate that its SNR allows, or 0 if there is none.

    Units: bit/s/Hz. The gap accounts for short blocks, real decoders and the constellation: with a gap of 2 dB, CQI
    15 needs 24.3 dB. Left out: outdated CQI, and errors in reporting it (`goodput` accounts for block errors).
    Without steps, Shannon's formula with a cap of 7.4 would, over Rayleigh fading, carry 1.17 times as many bits at
    20 dB as steps with a gap of 2 dB, 1.55 times at 5 dB, and 2.5 times at -5 dB, and still carry bits below -7.5 dB,
    where steps carry no bits.

    With l layers on one band, each layer has 1/l of the power, and together they have l times the rate of one layer,
    so l times a rate of the table needs l times the SNR of that rate. The same holds for a transmitter that
    concentrates its power on a part l < 1 of its band. The option with the highest rate is used; it corresponds to
    the rank that a device reports, and to the number of resource blocks for which the device's power suffices.
    Without layers, a band would carry at most 7.4 bit/s/Hz, although networks reach four times this rate near a site;
    without parts, a device with little power would have no link in a wide band although a few blocks could serve it.
    Source: TS 38.306, 4.1.2 (the factor v_Layers of a data rate); TS 38.214, 5.2.2.2 (rank). Left out: layers of
    unequal strength that interfere with one another, so the rates are an upper bound in channels with little
    scattering.

    Args:
        gap_db: SNR that real codes need beyond Shannon's limit, >= 0.
        cap: highest rate on one layer, or None for the whole table.
        layers: maximum number of layers at once, >= 1.
        parts: number L >= 1 of independent parts of the band; the SNR of a slot follows from their mean power, and
            each rate needs the mean SNR of `snr_needed_over_parts`.
        smallest_part: smallest part of the band that may be used alone, reached by halving; above 0, and at most 1.
        blocks: number of equal parts of the band, any number of which may be used alone; None for `smallest_part`.

    Raises:
        ValueError: the gap is negative, no rate is left, or an argument is out of range.
    """

    gap_db: float = 2.0
    cap: float | None = None
    layers: int = 1
    smallest_part: float = 1.0
    parts: int = 1
    blocks: int | None = None

    def __post_init__(self) -> None:
        if not self.gap_db >= 0:
            raise ValueError(f"gap_db must be >= 0, got {self.gap_db}")
        if self.cap is not None and not self.cap >= EFFICIENCIES[0]:
            raise ValueError(f"cap {self.cap} is below the lowest rate, {EFFICIENCIES[0]} bit/s/Hz")
        if not (min(self.layers, self.parts) >= 1 and 0 < self.smallest_part <= 1):
            raise ValueError(
                "layers and parts must be >= 1, smallest_part above 0 and at most 1, got"
                f" {self.layers}, {self.parts}, {self.smallest_part}"
            )

    @property
    def rates(self) -> FloatArray:
        """Rates [steps + 1] in bit/s/Hz, ascending, starting with 0."""
        return self._table[0]

    @property
    def needs(self) -> FloatArray:
        """Linear SNR [steps] that each rate needs."""
        return self._table[1]

    @cached_property
    def whole(self) -> "Steps":
        """Return these steps for a transmitter that always spreads its power over the whole band."""
        return replace(self, smallest_part=1.0, blocks=None)

    @property
    def lowest_snr(self) -> float:
        """The linear SNR below which no bits can be sent."""
        return float(self.needs[0])

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        """Rates and required SNRs of the best combinations of rate and layers, or of rate and part of the band."""
        table = np.array([rate for rate in EFFICIENCIES if self.cap is None or rate <= self.cap])
        alone = _snr_needed_by_cqis(len(table), self.gap_db, self.parts)
        if self.blocks is None:
            halves = int(np.floor(-np.log2(self.smallest_part) + 1e-9))
            times = np.array([*(0.5**half for half in range(halves, 0, -1)), *range(1, self.layers + 1)])
        else:
            table, alone = self.whole.rates[1:], self.whole.needs
            times = np.arange(1, self.blocks + 1) / self.blocks
        rates, needs = np.outer(times, table).ravel(), np.outer(times, alone).ravel()
        # sort by SNR, then by descending rate; keep the rates that exceed all earlier ones
        order = np.lexsort((-rates, needs))
        rates, needs = rates[order], needs[order]
        best = rates > np.concatenate([[0.0], np.maximum.accumulate(rates)[:-1]])
        return np.concatenate([[0.0], rates[best]]), needs[best]

    def efficiency(self, snr: npt.ArrayLike) -> FloatArray:
        """Return the rate in a slot at a linear SNR, in the shape of `snr`."""
        gamma = np.asarray(snr, dtype=float)
        if gamma.size < _MANY:
            return np.asarray(self.rates[np.searchsorted(self.needs, gamma, side="right")])
        # takes a third of the time of a search, with the same result
        bit, first, needed, rates = self._octants
        octant = gamma.view(np.int64) >> bit
        octant -= first
        reached = gamma >= needed.take(octant, mode="clip")
        octant += octant
        octant += reached
        return np.asarray(rates.take(octant, mode="clip"))

    @cached_property
    def _octants(self) -> tuple[int, int, FloatArray, FloatArray]:
        """Table of rates by the leading bits of an SNR, which identify its octave and the eighth of the octave.

        At most one step may begin in each eighth. This holds for one layer, where each step needs at least 1.25 times
        the SNR of the previous one; if steps of several layers are closer, eighths are halved until this holds.

        Returns:
            Position of the bit below the leading bits; number of the piece before the first step; [pieces] the SNR at
            which a step begins in each piece, or nan; [2 pieces] the rates below this SNR, and from this SNR up.
        """
        bit = _FRACTION_BIT - _FEWEST_BITS
        while not np.diff(octants := self.needs.view(np.int64) >> bit).all():
            bit -= 1
        first = int(octants[0]) - 1
        needed = np.full(int(octants[-1]) - first + 2, np.nan)
        needed[octants - first] = self.needs
        begins = ~np.isnan(needed)
        after = np.cumsum(begins)
        return bit, first, needed, self.rates[np.stack([after - begins, after], axis=1).ravel()]

    def mean_efficiency(self, snr: npt.ArrayLike, taps: int = 1) -> FloatArray:
        """Return the mean `efficiency` over fading of mean 1, the sum of steps times the probability of each.

        A step from SNR t on has P(g >= t / snr) with g ~ Gamma(taps, 1/taps): e^(-t / snr) for one tap, Rayleigh.
        """
        from scipy import special  # this import takes half a second, and reading a scenario does not need it

        gamma = np.asarray(snr, dtype=float)
        with np.errstate(divide="ignore"):
            reached = special.gammaincc(taps, taps * self.needs / gamma[..., None])
        return np.asarray(np.einsum("...s,s->...", reached, np.diff(self.rates)))


def diversity_rate(snr: npt.ArrayLike, taps: int, cap: float | None = None) -> FloatArray:
    """Return the mean of min(log2(1 + snr g), cap) over g ~ Gamma(taps, 1/taps), for a band with independent parts.

    It is the integral over t from 0 to the cap of P(g >= (2^t - 1) / snr), by Gauss-Legendre; without a cap, t runs
    to where P < 1e-16. For one tap the mean is within 1e-9 of the closed form (`edgefl.channel.share.ergodic_rate`).

    Args:
        snr: linear mean SNR, >= 0, of any shape.
        taps: number of independent parts of the band, >= 1.
    """
    from scipy import special

    gamma = np.asarray(snr, dtype=float)
    # up to the largest g that matters; larger values have probability e^-40 with one tap, and less with more taps
    top = np.log1p(gamma * (1.0 + 40.0 / np.sqrt(taps))) / np.log(2.0)
    top = top if cap is None else np.minimum(top, cap)
    nodes, weights = np.polynomial.legendre.leggauss(256)
    t = top[..., None] * (nodes + 1.0) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        reached = special.gammaincc(taps, taps * np.expm1(t * np.log(2.0)) / gamma[..., None])
    mean = np.einsum("...n,n->...", np.nan_to_num(reached), weights) * top / 2.0
    return np.asarray(mean)

"""Derive a UMi cell of `preset: nr` by hand, with its link budget, rates and rounds, without edgefl's code."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

GHZ, HZ, SLOT_S, RADIUS_M, NEAREST_M, HEIGHT_M = 3.5, 100e6, 0.5e-3, 250.0, 10.0, 8.5
SITE_DBM, DEVICE_DBM, ANTENNA_DBI, NOISE_DBM = 44.0, 23.0, 5.0, -174.0 + 80.0
BEAM_DB, NLOS_BEAM_DB = 14.5, 9.5
FIGURE_DB, SITE_FIGURE_DB, P0_DBM, ALPHA = 9.0, 5.0, -80.0, 0.8
BLOCKS, ELEMENTS = 273, 12 * 14  # 38.101-1, Table 5.3.2-1; resource elements of a block in a slot
DOWN, UP = (3 + 10 / 14) / 5, (1 + 2 / 14) / 5  # DDDSU, 10:2:2
GOODPUT = 0.86 * 0.97 / 1.1
# 38.214, Table 5.2.2.1-3; 2 dB is the SNR gap to Shannon
LOW = (0.1523, 0.3770, 0.8770, 1.4766, 1.9141, 2.4063, 2.7305)
CQI = np.array([*LOW, 3.3223, 3.9023, 4.5234, 5.1152, 5.5547, 6.2266, 6.9141, 7.4063])
SYMBOL_BITS = np.array([2] * 3 + [4] * 3 + [6] * 5 + [8] * 4)
GAP = 10**0.2
PARTS = 11  # independent parts of the band, for UMi's delay spread in 38.901: 2 x 50 ns x 100 MHz
MARGIN_DB = 3.0
PART = 1 / 16  # share of the band on which an uplink must reach the lowest rate


@dataclass(frozen=True)
class Links:
    """SNRs [n] of devices: in the downlink, on an uplink block at full power, and on a block at controlled power."""

    down: np.ndarray
    alone: np.ndarray
    most: np.ndarray

    @property
    def covered(self) -> np.ndarray:
        """Return whether each device has a link in both directions."""
        margin = 10 ** (MARGIN_DB / 10)
        whole = np.minimum(self.alone / BLOCKS, self.most)
        return (self.down >= margin * LOWEST) & (whole >= margin * LOWEST * PART)


def drawn(
    rng: np.random.Generator, places: int, coated_share: float = 0.0, device_dbm: float = DEVICE_DBM
) -> Links:
    """Draw links of devices at random places of the cell."""

    def normal() -> np.ndarray:
        return rng.standard_normal(places)

    distance_m = np.sqrt(rng.uniform(NEAREST_M**2, RADIUS_M**2, places))
    straight_m = np.hypot(distance_m, HEIGHT_M)
    break_m = 4 * 9 * 0.5 * GHZ * 1e9 / 3e8
    near_db = 32.4 + 21 * np.log10(straight_m) + 20 * math.log10(GHZ)
    beyond_db = 32.4 + 40 * np.log10(straight_m) + 20 * math.log10(GHZ)
    beyond_db -= 9.5 * math.log10(break_m**2 + HEIGHT_M**2)
    los_db = np.where(distance_m <= break_m, near_db, beyond_db)
    nlos_db = np.maximum(los_db, 22.4 + 35.3 * np.log10(straight_m) + 21.3 * math.log10(GHZ))
    # a soft line of sight s follows 38.901's probability; s^2 is the share of the power in line of sight
    far_m = np.maximum(distance_m, 18.0)
    p_los = 18 / far_m + np.exp(-far_m / 36) * (1 - 18 / far_m)
    decided = rng.random(places)
    margin = quantile(p_los) - quantile(decided)
    s2 = (0.5 + np.arctan(math.sqrt(20 * GHZ * 1e9 / 3e8) * margin) / math.pi) ** 2
    in_sight = s2 * 10 ** (-(los_db + 4.0 * normal()) / 10)
    around = (1 - s2) * 10 ** (-(nlos_db + 7.82 * normal()) / 10)
    # penetration loss: concrete and plain or coated glass, the smaller of two indoor distances, and a normal term
    indoors, coated = rng.random(places) < 0.8, rng.random(places) < coated_share
    walls_db = np.where(coated, wall_db(0.7, 23 + 0.3 * GHZ), wall_db(0.3, 2 + 0.2 * GHZ))
    walls_db += 0.5 * 25 * rng.random((2, places)).min(axis=0) + np.where(coated, 6.5, 4.4) * normal()
    through = np.where(indoors, 10 ** (-walls_db / 10), 1.0)
    # power control uses the coupling loss without beam gain, which depends on the state; no direct path leads indoors
    coupling_db = -10 * np.log10((in_sight + around) * through) - ANTENNA_DBI
    sees = np.where(indoors, 0.0, in_sight / (in_sight + around))
    beam_db = 10 * np.log10(sees * 10 ** (BEAM_DB / 10) + (1 - sees) * 10 ** (NLOS_BEAM_DB / 10))
    down_db = SITE_DBM + beam_db - coupling_db - NOISE_DBM - FIGURE_DB
    received_db = beam_db - coupling_db - NOISE_DBM - SITE_FIGURE_DB
    # 38.213, 7.1.1, with P0 per 180 kHz; the SNR on one block of the band follows from the power on it
    asked_dbm = P0_DBM + 10 * math.log10(HZ / 180e3) + ALPHA * coupling_db
    return Links(
        10 ** (down_db / 10),
        BLOCKS * 10 ** ((device_dbm + received_db) / 10),
        10 ** ((asked_dbm + received_db) / 10),
    )


def quantile(probability: np.ndarray) -> np.ndarray:
    """Return the normal quantile by interpolating values of the error function."""
    nodes = np.linspace(-8.0, 8.0, 20001)
    values = np.array([0.5 * math.erfc(-node / math.sqrt(2)) for node in nodes])
    return np.interp(probability, values, nodes)


def wall_db(glass: float, glass_db: float) -> float:
    return 5 - 10 * math.log10(glass * 10 ** (-glass_db / 10) + (1 - glass) * 10 ** (-(5 + 4 * GHZ) / 10))


def slot_rates(snr: np.ndarray) -> np.ndarray:
    """Return bit/s/Hz [draws] of a code over all parts at SNRs [draws, parts]: the highest decodable rate."""
    informed = [np.minimum(np.log2(1 + snr / GAP), bits).mean(axis=-1) for bits in (2, 4, 6, 8)]
    carried = np.take(informed, SYMBOL_BITS // 2 - 1, axis=0) >= CQI[:, None]
    return np.max(np.where(carried, CQI[:, None], 0.0), axis=0)


@cache
def mean_rates(layers: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lg SNR, and mean bit/s/Hz of 1,000 fading draws at each SNR; l layers have 1 / l of the power each."""
    power = np.random.default_rng(1).exponential(size=(1000, PARTS))
    nodes = np.linspace(-6.0, 7.0, 261)
    rates = [
        np.max([layer * slot_rates(at * power / layer) for layer in range(1, layers + 1)], axis=0).mean()
        for at in 10**nodes
    ]
    return nodes, np.array(rates)


def needed() -> np.ndarray:
    """Return the mean SNRs [15] at which fading parts of the band carry each CQI's rate on average."""
    power = np.random.default_rng(2).exponential(size=(4000, PARTS))
    power *= PARTS / power.sum(axis=1, keepdims=True)
    snr = np.logspace(-1.0, 3.5, 900)
    informed = np.array(
        [[np.minimum(np.log2(1 + at * power / GAP), bits).mean() for at in snr] for bits in (2, 4, 6, 8)]
    )
    rows = informed[SYMBOL_BITS // 2 - 1]
    return np.array([np.interp(cqi, row, snr) for cqi, row in zip(CQI, rows, strict=True)])


NEEDS = needed()
LOWEST = float(NEEDS[0])
# mean power over the parts of the band in a slot, as 20 equally likely values
SLOTS = np.sort(np.random.default_rng(3).gamma(PARTS, 1 / PARTS, 20_000)).reshape(20, -1).mean(axis=1)


def spread(most: np.ndarray) -> np.ndarray:
    """Return devices' blocks as real numbers: equal shares up to what each device can use; others get the excess."""
    blocks, open_ = np.zeros(len(most)), np.ones(len(most), dtype=bool)
    while open_.any():
        each = (BLOCKS - blocks[~open_].sum()) / open_.sum()
        full = open_ & (most <= each)
        if not full.any():
            blocks[open_] = each
            break
        blocks[full], open_ = most[full], open_ & ~full
    return blocks


def one_round(links: Links, bits: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate downlinks that begin together, each followed by its uplink, as fluid flows at the links' mean rates.

    Returns: [n] seconds of the downlink and of the uplink, and their joules, for TR 38.840's phone at 6 mW a unit.
    """
    a_block = ELEMENTS * GOODPUT / SLOT_S
    count = len(links.down)
    down_rate = np.interp(np.log10(links.down), *mean_rates(2)) * BLOCKS * a_block * DOWN
    # [devices, m] mean rate and share of the power, with the best number of up to m blocks in each slot
    blocks, rates = np.arange(1, BLOCKS + 1)[:, None], np.concatenate([[0.0], CQI])
    best, power = np.empty((2, count, BLOCKS))
    for i in range(count):
        snr = np.minimum(links.alone[i] / blocks, links.most[i]) * SLOTS
        each = blocks * rates[np.searchsorted(NEEDS, snr, side="right")]
        most = np.maximum.accumulate(each, axis=0)
        chosen = np.maximum.accumulate(np.where((each == most) & (each > 0), blocks, 0), axis=0)
        best[i] = most.mean(axis=1)
        power[i] = np.minimum(chosen * links.most[i] / links.alone[i], 1.0).mean(axis=1)
    usable = np.where(links.most >= LOWEST, np.minimum(links.alone / LOWEST, BLOCKS), 0.0)
    left = np.full((2, count), bits)
    down_s, up_s, at_power_s, now_s = np.zeros(count), np.zeros(count), np.zeros(count), 0.0
    while (left > 0).any():
        downs, ups = left[0] > 0, (left[0] <= 0) & (left[1] > 0)
        rates = np.zeros((2, count))
        rates[0, downs] = down_rate[downs] / max(downs.sum(), 1)
        given = np.maximum(spread(usable[ups]), 1e-9)
        low = np.clip(given.astype(int), 1, BLOCKS) - 1
        high, part = np.minimum(low + 1, BLOCKS - 1), given - np.floor(given)
        rows = np.flatnonzero(ups)
        rates[1, ups] = ((1 - part) * best[rows, low] + part * best[rows, high]) * a_block * UP
        with np.errstate(divide="ignore", invalid="ignore"):
            step_s = float(np.nanmin(np.where(left > 0, left / rates, np.inf)))
        down_s[downs] += step_s
        up_s[ups] += step_s
        at_power_s[ups] += step_s * UP * ((1 - part) * power[rows, low] + part * power[rows, high])
        left = np.where(
            left - rates * step_s <= 1e-6 * bits, np.where(rates > 0, 0.0, left), left - rates * step_s
        )
        now_s += step_s
    per_mw = (700 - 250) / (10 ** (DEVICE_DBM / 10) - 1)
    down_w = 300 * DOWN + 100 * (1 - DOWN)
    up_w = (250 - per_mw) * UP + 100 * (1 - UP)
    joules = 6e-3 * (down_s * down_w + up_s * up_w + at_power_s * per_mw * 10 ** (DEVICE_DBM / 10))
    return down_s, up_s, joules

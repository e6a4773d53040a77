"""Compare Gauss-Markov fading with a sum of sinusoids (Jakes), and a band of one independent part with several.

python docs/fading_sketch.py    prints the tables of docs/radio.md; two minutes of CPU
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from edgefl.channel.fading import doppler_hz, slot_correlation
from edgefl.channel.modulation import EFFICIENCIES, SYMBOL_BITS, Steps
from edgefl.channel.units import FloatArray

LINKS, SLOTS, SINUSOIDS, SLOT_S, CARRIER_HZ, SPEED_M_S = 4000, 700, 24, 0.5e-3, 3.5e9, 10.0
SNR_DB, PARTS = 10.0, 11
# slots of a transfer at the mean rate
SIZES = (1, 5, 20, 100)
ORDERS = (2, 4, 6, 8)  # bits of a modulation's symbols
# a fading process: draws the power of each link in each slot, [links, slots]
Powers = Callable[[np.random.Generator], FloatArray]


def gauss_markov(rng: np.random.Generator) -> FloatArray:
    """Return the power of AR(1) fading, as edgefl draws it."""
    rho = slot_correlation(SPEED_M_S, carrier_hz=CARRIER_HZ, slot_s=SLOT_S)
    h = np.empty((LINKS, SLOTS), dtype=complex)
    noise = (rng.standard_normal((2, LINKS, SLOTS)) / math.sqrt(2.0)).astype(np.float32)
    h[:, 0] = noise[0, :, 0] + 1j * noise[1, :, 0]
    for slot in range(1, SLOTS):
        fresh = noise[0, :, slot] + 1j * noise[1, :, slot]
        h[:, slot] = rho * h[:, slot - 1] + math.sqrt(1.0 - rho * rho) * fresh
    return np.abs(h) ** 2


def jakes(rng: np.random.Generator) -> FloatArray:
    """Return the power of a sum of sinusoids from all directions, with correlation J0 at every lag."""
    turn = 2.0 * math.pi * doppler_hz(SPEED_M_S, carrier_hz=CARRIER_HZ) * SLOT_S * np.arange(SLOTS)
    h = np.zeros((LINKS, SLOTS), dtype=np.complex64)
    for _ in range(SINUSOIDS):
        towards = np.cos(rng.uniform(0.0, 2.0 * math.pi, (LINKS, 1)))
        phase = rng.uniform(0.0, 2.0 * math.pi, (LINKS, 1))
        h += np.exp(1j * (turn * towards + phase)).astype(np.complex64)
    return np.abs(h) ** 2 / SINUSOIDS


def slots_of(rates: FloatArray, need: float) -> FloatArray:
    """Return the number of slots after which each transfer is complete [links], nan if it is never complete."""
    done = np.cumsum(rates, axis=1) >= need
    return np.where(done.any(axis=1), done.argmax(axis=1) + 1.0, np.nan)


def main() -> None:
    """Print quantiles of the slots that transfers of several sizes take, by fading process."""
    steps, snr = Steps(2.0, None, layers=2), 10.0 ** (SNR_DB / 10.0)
    mean = float(steps.mean_efficiency(snr))

    def coded(process: Powers) -> Callable[[np.random.Generator], FloatArray]:
        """Return the rates of one code over parts that fade independently."""

        def rates(rng: np.random.Generator) -> FloatArray:
            informed = np.zeros((steps.layers, len(ORDERS), LINKS, SLOTS), dtype=np.float32)
            for _ in range(PARTS):
                over_gap = snr * process(rng) / 10.0 ** (steps.gap_db / 10.0)
                for layer in range(steps.layers):
                    alone = np.log2(1.0 + over_gap / (layer + 1))
                    for place, bits in enumerate(ORDERS):
                        informed[layer, place] += np.minimum(alone, bits) / PARTS
            best = np.zeros((LINKS, SLOTS))
            for layer in range(steps.layers):
                for rate, bits in zip(EFFICIENCIES, SYMBOL_BITS, strict=True):
                    arrives = informed[layer, ORDERS.index(bits)] >= rate
                    np.maximum(best, (layer + 1) * rate * arrives, out=best)
            return best

        return rates

    def together(rng: np.random.Generator) -> FloatArray:
        """Return the rates at the mean power of all parts of the band."""
        power = sum((gauss_markov(rng) for _ in range(PARTS)), np.zeros((LINKS, SLOTS))) / PARTS
        return replace(steps, parts=PARTS).efficiency(snr * power)

    rows: dict[str, Callable[[np.random.Generator], FloatArray]] = {
        "Gauss-Markov": lambda rng: steps.efficiency(snr * gauss_markov(rng)),
        "sum of sinusoids": lambda rng: steps.efficiency(snr * jakes(rng)),
        f"Gauss-Markov, {PARTS} parts, as in edgefl": together,
        f"Gauss-Markov, one code over {PARTS} parts": coded(gauss_markov),
        f"sum of sinusoids, one code over {PARTS} parts": coded(jakes),
    }
    print("| fading | mean rate |", " | ".join(f"{size} slots: mean, 95 %, 99 %" for size in SIZES), "|")
    for name, process in rows.items():
        rates = process(np.random.default_rng(1))
        cells = []
        for size in SIZES:
            slots = np.where(np.isnan(found := slots_of(rates, size * mean)), SLOTS, found)
            high, highest = np.quantile(slots, (0.95, 0.99))
            cells.append(f"{slots.mean():.3g}, {high:.0f}, {highest:.0f}")
        print(f"| {name} | {rates.mean() / mean:.2f} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()

"""Print the sizes of two omissions that docs/left-out.md names: a direct path in the fading, and MU-MIMO uplinks."""

import numpy as np

from edgefl.channel.modulation import Steps
from edgefl.channel.units import FloatArray

DRAWS, SEED = 20_000, 0
PARTS = {
    "umi": (9.0, 11),
    "inh": (7.0, 5),
}  # K in dB (TR 38.901, Table 7.5-6), and number of parts of 100 MHz that fade independently
STEPS = Steps(2.0)


def powers(rng: np.random.Generator, k: float, *shape: int) -> FloatArray:
    """Draw |h|^2 of Rician fading whose direct path has k times the power of all other paths (k = 0: Rayleigh)."""
    scattered = rng.standard_normal((2, *shape)) / np.sqrt(2 * (k + 1))
    return np.asarray((np.sqrt(k / (k + 1)) + scattered[0]) ** 2 + scattered[1] ** 2)


def direct_path(name: str, snr_db: float) -> tuple[float, float]:
    """Return mean and standard deviation of a slot's rate with a direct path, relative to Rayleigh fading."""
    k_db, parts = PARTS[name]
    both = []
    for k in (10 ** (k_db / 10), 0.0):
        drawn = powers(np.random.default_rng(SEED), k, DRAWS, parts)
        rates = STEPS.efficiency(10 ** (snr_db / 10) * drawn).mean(axis=1)
        both.append((rates.mean(), rates.std()))
    (mean, spread), (rayleigh, usual) = both
    return float(mean / rayleigh), float(spread / usual)


def together(devices: int, snr_db: float, antennas: int = 8) -> float:
    """Return the rate of uplinks that share all blocks, relative to uplinks that each have a part of the blocks.

    The site separates the uplinks by MMSE with perfect knowledge of the channel; all antennas fade independently. A
    device that has a part of the blocks puts its full power on them.

    Args:
        snr_db: SNR of a device that is alone on all blocks, with the gain of all antennas.
    """
    rng = np.random.default_rng(SEED)
    drawn = rng.standard_normal((2, DRAWS, antennas, devices)) / np.sqrt(2)
    channel, snr = drawn[0] + 1j * drawn[1], 10 ** (snr_db / 10) / antennas
    gram = np.einsum("nmi,nmj->nij", channel.conj(), channel)
    error = np.linalg.inv(np.eye(devices) + snr * gram).diagonal(axis1=1, axis2=2).real
    apart = devices * snr * gram.diagonal(axis1=1, axis2=2).real
    return float(STEPS.efficiency(1 / error - 1).mean() / (STEPS.efficiency(apart).mean() / devices))


if __name__ == "__main__":
    for name in PARTS:
        print(
            name,
            *(
                f"{db} dB: {direct_path(name, db)[0]:.2f}, {direct_path(name, db)[1]:.2f};"
                for db in (0, 10, 20, 40)
            ),
        )
    for devices in (2, 4):
        print(devices, *(f"{db} dB: {together(devices, db):.2f};" for db in (0, 10, 20)))

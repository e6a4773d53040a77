"""Compute FEDL's allocation for the inputs of the authors' result files: python -m edgefl.examples.papers.fedl

Dinh, Tran et al., INFOCOM 2019 and IEEE/ACM Trans. Networking 29(1), 2021; github.com/nhatminh/FEDL-INFOCOM, folder
julia-new: data.h5 and setting.h5 (five devices), TrafficGen.jl and Setting.jl (fifty devices, by formula). The output
is the seconds and joules of computing and of sending, for each price kappa of a second. The authors' result files
contain these numbers from their closed forms in Julia, and from Ipopt.

A device's SNR is given for 1 W on the whole band; 25,000 nats are sent in 1 MHz, with 0.2 to 1 W and at least 0.3
GHz.
"""

import numpy as np

from edgefl.channel.units import FloatArray
from edgefl.engine.selectors._allocation import Uploads, fedl

# five devices: cycles per bit, highest clock (Hz), bits, SNR
CYCLES = np.array([28.0, 24, 15, 17, 10])
CLOCKS = np.array(
    [1.1568724744088008e9, 1.490714198594833e9, 1.669664435935213e9, 1.00974651053431e9, 1.710620294277803e9]
)
BITS = np.array(
    [42285183.15469645, 55696563.57284338, 44570296.30513169, 54280258.95238087, 56162908.648379594]
)
SNR = np.array(
    [0.18003337330946112, 0.5657038012336738, 1.0495727769918888, 2.6648365907548524, 6.844845537967977]
)
KAPPAS = (1e-4, 1e-3, 8e-3, 0.03, 0.1, 0.3, 0.5, 0.7, 1.0, 10.0)
# fifty devices: ratios of the smallest to the largest data set, or distance; the mean of the two is fixed
MANY, MEAN_BITS, MEAN_M = 50, 60.0e6, 26.0
OF_DATA, OF_DISTANCE = (
    {"data equal": 1.0, "data 1:5": 0.2, "data 1:1000": 1e-3},
    {"near": 1.0, "spread": 0.1, "far": 1e-3},
)
KAPPAS_OF_MANY = (1e-3, 0.01, 0.1, 1.0, 10.0, 100.0)
BITS_PER_HZ = 25e3 / 1e6 / np.log(2.0)
LEAST_POWER, LEAST_CLOCK_HZ = 0.2, 0.3e9


def costs(cycles: FloatArray, clock_hz: FloatArray, snr: FloatArray, kappa: float) -> dict[str, float]:
    """Return the seconds and joules of computing and of sending; the authors' alpha of 2e-28 is twice our alpha."""
    n = len(snr)
    of = Uploads(np.full(n, BITS_PER_HZ), snr, np.ones(n), np.zeros(n), cycles, clock_hz, np.full(n, 1e-28))
    got = fedl(of, kappa, LEAST_POWER, LEAST_CLOCK_HZ)
    sending_j = float((got.power * got.sent_s).sum())
    return {
        "computation time": float((cycles / got.clock_hz).max()),
        "computation energy": float(got.energy_j(of).sum()) - sending_j,
        "transmission time": float(got.sent_s[0]),
        "transmission energy": sending_j,
    }


def spread(ratio: float, mean: float) -> FloatArray:
    """Return fifty values in equal steps around a mean; `ratio` is the smallest value divided by the largest."""
    step = (1 - ratio) / (1 + ratio) * mean / (MANY / 2)
    places = np.concatenate([-np.arange(MANY / 2, 0, -1), np.arange(1, MANY / 2 + 1)])
    return np.asarray(mean + step * places)


def rows() -> list[tuple[str, str, float]]:
    """Compute all numbers, as rows of setting, quantity and value."""
    found = []
    for kappa in KAPPAS:
        values = costs(CYCLES * BITS, CLOCKS, SNR, kappa)
        found += [(f"5 devices, kappa {kappa:g}", name, value) for name, value in values.items()]
    clock_hz, even_snr = np.full(MANY, 2e9), 1e6 * np.full(MANY, MEAN_M) ** -4.0
    for kappa in KAPPAS_OF_MANY:
        for name, ratio in OF_DATA.items():
            values = costs(20 * spread(ratio, MEAN_BITS), clock_hz, even_snr, kappa)
            found += [(f"{name}, kappa {kappa:g}", what, values[what]) for what in list(values)[:2]]
        for name, ratio in OF_DISTANCE.items():
            snr = 1e6 * spread(ratio, MEAN_M) ** -4.0  # 40 dB at 1 m, N0 = 1e-10
            values = costs(20 * np.full(MANY, MEAN_BITS), clock_hz, snr, kappa)
            found += [(f"{name}, kappa {kappa:g}", what, values[what]) for what in list(values)[2:]]
    return found


def main() -> None:
    """Print the numbers as a table of comma-separated values."""
    print("setting,variant,ours,ours_std,seeds")
    for setting, quantity, value in rows():
        print(f'"{setting}",{quantity},{value:.6g},,1')


if __name__ == "__main__":
    main()

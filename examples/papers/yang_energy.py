"""Yang, Chen, Saad et al., IEEE Trans. Wireless Commun. 20(3), 2021: python -m edgefl.examples.papers.yang_energy

To reach the global accuracy takes a / (1 - eta) rounds, and in each round a device iterates v log2(1 / eta) times, to
a local accuracy eta. The rounds are therefore few and long, or many and short. Eta, shares of the band, powers and
clocks are optimised jointly, to minimise either the time of all rounds or the joules of computing and sending within
a given time. The output is the ratio of the optimum to equal shares of the band with the best eta ("equal band"), to
the best allocation with eta = 1/2 ("fixed eta"), and to equal shares, eta = 1/2 and the maximum power ("neither").

We could read only the abstract, which states the maximum savings over "conventional" schemes without naming them. The
settings are those that later papers quote: 50 users in a square of 500 m, 128.1 + 37.6 log10(km) dB with shadowing of
8 dB, -174 dBm/Hz, 20 MHz, 28.1 kbit, 10 dBm, 2 GHz, 500 samples of 1e4 to 3e4 cycles, kappa 1e-28, accuracy 1e-3. L =
gamma = 1 and xi = delta = 1/10 give a = 138 and v = 10.5; both only scale the results.
"""

from statistics import mean, stdev

import numpy as np
from scipy.optimize import minimize_scalar

from edgefl.channel.units import FloatArray
from edgefl.engine.selectors._allocation import Uploads, least_energy, least_time

USERS, SIDE_M, SHADOWING_DB = 50, 500.0, 8.0
NOISE_W_HZ, BAND_HZ, BITS = 10 ** (-174 / 10) / 1e3, 20e6, 28.1e3
POWER_W, CLOCK_HZ, KAPPA, SAMPLES = 0.01, 2e9, 1e-28, 500
ROUNDS = 2 / 0.1 * np.log(1 / 1e-3)  # a
ITERATIONS = 2 / ((2 - 0.1) * 0.1)  # v
HALF = 0.5  # eta of schemes that do not choose it
SEEDS = (100, 200, 300, 400, 500)
LONGER = (1.1, 1.5, 2.0, 3.0, 5.0, 10.0)  # time, as multiples of the shortest possible time of "neither"


def drop(seed: int) -> tuple[FloatArray, FloatArray]:
    """Draw the gain [users] of each link, and the cycles [users] of one local iteration."""
    rng = np.random.default_rng(seed)
    distance_m = np.linalg.norm(rng.uniform(-SIDE_M / 2, SIDE_M / 2, (USERS, 2)), axis=1)
    loss_db = 128.1 + 37.6 * np.log10(distance_m / 1e3) + SHADOWING_DB * rng.standard_normal(USERS)
    return 10 ** (-loss_db / 10), SAMPLES * rng.uniform(1e4, 3e4, USERS)


def uploads(gain: FloatArray, cycles: FloatArray, eta: float, band_hz: float = BAND_HZ) -> Uploads:
    """Return the computations and uploads of one round of users that share a band."""
    n = len(gain)
    snr = POWER_W * gain / (NOISE_W_HZ * band_hz)
    amplifier_w, circuits_w = np.full(n, POWER_W), np.zeros(n)
    worked = ITERATIONS * np.log2(1 / eta) * cycles
    return Uploads(
        np.full(n, BITS / band_hz),
        snr,
        amplifier_w,
        circuits_w,
        worked,
        np.full(n, CLOCK_HZ),
        np.full(n, KAPPA),
    )


class World:
    """A random placement of users that share the band optimally or equally."""

    def __init__(self, seed: int) -> None:
        self.gain, self.cycles = drop(seed)

    def _rounds(self, eta: float, equal: bool) -> list[Uploads]:
        """Return the uploads in each part of the band: all users in the whole band, or one in each equal part."""
        if not equal:
            return [uploads(self.gain, self.cycles, eta)]
        each = zip(self.gain[:, None], self.cycles[:, None], strict=True)
        return [uploads(gain, cycles, eta, BAND_HZ / USERS) for gain, cycles in each]

    def seconds(self, eta: float, *, equal: bool) -> float:
        """Return the shortest time of all rounds."""
        longest = max(least_time(of, np.zeros(len(of.gain)))[0] for of in self._rounds(eta, equal))
        return float(ROUNDS / (1 - eta) * longest)

    def joules(self, eta: float, end_s: float, *, equal: bool, full_power: bool = False) -> float:
        """Return the minimum joules of all rounds if they end in time; infinite if they cannot."""
        rounds = ROUNDS / (1 - eta)
        total = 0.0
        for of in self._rounds(eta, equal):
            begun = np.zeros(len(of.gain))
            soonest = least_time(of, begun)
            if soonest[0] * rounds > end_s * (1 + 1e-9):
                return float("inf")
            if full_power:
                sent_s = of.bits_hz / np.log2(1 + of.gain)
                clock_hz = of.cycles / (end_s / rounds - sent_s)
                total += float((POWER_W * sent_s + KAPPA * of.cycles * clock_hz**2).sum())
            else:
                total += float(least_energy(of, begun, soonest, end_s / rounds).energy_j(of).sum())
        return float(rounds * total)

    def best(self, end_s: float | None, *, equal: bool) -> float:
        """Return the minimum over eta of the seconds, or of the joules until end_s."""

        def cost(eta: float) -> float:
            return self.seconds(eta, equal=equal) if end_s is None else self.joules(eta, end_s, equal=equal)

        grid = np.linspace(0.02, 0.98, 25)
        at = int(np.argmin([cost(eta) for eta in grid]))
        bounds = (grid[max(0, at - 1)], grid[min(len(grid) - 1, at + 1)])
        return float(minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-4}).fun)


def compared(world: World) -> dict[tuple[str, str], float]:
    """Divide the optimum's seconds, and its joules within given times, by those of the other schemes."""
    conventional_s = world.seconds(HALF, equal=True)
    others_s = {
        "equal band": world.best(None, equal=True),
        "fixed eta": world.seconds(HALF, equal=False),
        "neither": conventional_s,
    }
    delay_s = world.best(None, equal=False)
    found = {("delay", name): delay_s / seconds for name, seconds in others_s.items()}
    for times in LONGER:
        end_s = times * conventional_s
        others_j = {
            "equal band": world.best(end_s, equal=True),
            "fixed eta": world.joules(HALF, end_s, equal=False),
            "neither": world.joules(HALF, end_s, equal=True, full_power=True),
        }
        least_j = world.best(end_s, equal=False)
        found |= {(f"joules, {times:g} delays", name): least_j / joules for name, joules in others_j.items()}
    return found


def main() -> None:
    """Print mean ratios over placements, and the lowest ratio of joules to "neither", as comma-separated values."""
    each = [compared(World(seed)) for seed in SEEDS]
    found = {key: [one[key] for one in each] for key in each[0]}
    in_time = [values for key, values in found.items() if key[0] != "delay" and key[1] == "neither"]
    found["joules, at best", "neither"] = min(in_time, key=mean)
    print("setting,variant,ours,ours_std,seeds")
    for (setting, name), values in found.items():
        print(f'"{setting}",over {name},{mean(values):.4f},{stdev(values):.4f},{len(values)}')


if __name__ == "__main__":
    main()

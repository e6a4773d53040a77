"""Test that the mean-noise shortcut for interference with capped rates has the error stated in its docstring."""

import itertools
import re

import numpy as np
import pytest

from edgefl.channel.carrier import Carrier
from edgefl.channel.fading import LinkFading
from edgefl.channel.interference import Heard, Interfered, TransmitterActivity
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.transfer import Flow

CAP, SITES, ISD_M = 7.4, 7, 500.0  # NR's highest efficiency; a site and its six neighbours
POWER_DBM, NOISE_DBM = 43.0, -174.0 + 80.0 + 9.0  # 100 MHz, noise figure 9 dB
SLOTS, Z = 3_000, 4.0
# ratio of mean transfer times by the shortcut and slot by slot, as this test derives it
ERROR = {0.1: 1.40, 0.2: 1.45, 0.3: 1.41, 0.5: 1.27}


def ratios() -> tuple[np.ndarray, np.ndarray]:
    """Return power over noise on a grid of a cell: from its own site [places], and from the others [places, 6]."""
    angles = np.arange(6) * np.pi / 3
    sites_m = ISD_M * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    steps = np.arange(-300.0, 301.0, 50.0)
    places_m = np.array(list(itertools.product(steps, steps))) + 7.0  # keeps the grid off the site
    to_m = np.linalg.norm(places_m[:, None] - np.vstack([[0.0, 0.0], sites_m]), axis=2)
    to_m = to_m[to_m.argmin(axis=1) == 0]
    loss_db = UMi().path_loss_db(np.maximum(to_m, 10.0), carrier_hz=3.5e9)
    over_noise = 10 ** ((POWER_DBM - loss_db - NOISE_DBM) / 10)
    return over_noise[:, 0], over_noise[:, 1:]


def capped(snr: np.ndarray) -> np.ndarray:
    """Return mean and variance [2, places] of min(log2(1 + snr h), CAP) over h ~ Exp(1), from its quantiles."""
    h = -np.log1p(-(np.arange(500) + 0.5) / 500)
    rates = np.minimum(np.log2(1 + snr[:, None] * h), CAP)
    return np.stack([rates.mean(axis=1), rates.var(axis=1)])


def derived(load: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rates' mean and standard deviation over all sets of active neighbours, and the shortcut's rates."""
    own, others = ratios()
    mean, square = np.zeros(len(own)), np.zeros(len(own))
    for sends in itertools.product((0, 1), repeat=SITES - 1):
        chance = load ** sum(sends) * (1 - load) ** (SITES - 1 - sum(sends))
        rate, variance = capped(own / (1 + others @ np.array(sends, dtype=float)))
        mean += chance * rate
        square += chance * (variance + rate**2)
    shortcut, _ = capped(own / (1 + load * others.sum(axis=1)))
    return mean, np.sqrt(square - mean**2), shortcut


@pytest.mark.parametrize("load", sorted(ERROR))
def test_the_error_of_the_shortcut_is_as_stated(load: float) -> None:
    mean, deviation, shortcut = derived(load)
    exact = (1 / shortcut).mean() / (1 / mean).mean()
    assert exact == pytest.approx(ERROR[load], abs=0.015)
    # compare the code's rates slot by slot; links with the same neighbours have correlated errors, which add up
    own, others = ratios()
    carrier, activity = Carrier(1.0, 1.0, cap=CAP), TransmitterActivity(9, SITES - 1, load)
    found = np.array(
        [
            Flow(
                carrier,
                snr,
                Interfered(LinkFading(key + 1, 0.0), Heard(activity, list(levels[:, None]))),
                1000,
            ).bits_carried(SLOTS)
            / SLOTS
            for key, (snr, levels) in enumerate(zip(own, others, strict=True))
        ]
    )
    error = Z * deviation / np.sqrt(SLOTS)
    assert (np.abs(found - mean) < error * 1.2).all()  # 20 % more, as a hundred places are compared
    assert abs((1 / found).mean() - (1 / mean).mean()) < (error / mean**2).mean()


def test_the_docstring_states_it() -> None:
    text = re.sub(r"\s+", " ", Interfered.__doc__ or "")
    stated = re.search(
        r"([\d., ]+) and ([\d.]+) times the correct time at loads of ([\d., ]+) and ([\d.]+)", text
    )
    assert stated
    values = [float(n) for n in re.findall(r"\d+\.\d+", f"{stated[1]} {stated[2]}")]
    loads = [float(n) for n in re.findall(r"\d+\.\d+", f"{stated[3]} {stated[4]}")]
    assert dict(zip(loads, values, strict=True)) == ERROR

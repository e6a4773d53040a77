"""Test that a panel's beam gain equals the mean over single rays, each summed over the elements with their phases."""

import math

import numpy as np
import pytest

from edgefl.channel.beams import beam_gain_db
from edgefl.channel.path_loss import PathLoss, Spread
from edgefl.channel.path_loss.inh import InH
from edgefl.channel.path_loss.uma import UMa
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.units import FloatArray

LINKS, SEED, STANDARD_ERRORS = 40_000, 5, 5
# number of columns and of rows, each with their spacing in wavelengths
AXES = ((8, 0.5), (4, 0.8))


def steering(elements: int, spacing: float, sine: FloatArray) -> np.ndarray:
    """Return the phasors [n, elements] of a plane wave at the given sine of its angle."""
    return np.exp(2j * math.pi * spacing * np.arange(elements) * sine[:, None])


def nearest_beam(elements: int, spacing: float, sine: FloatArray) -> FloatArray:
    """Return the sine of the nearest codebook beam: the codebook has four beams per beam width, 1 / (N d)."""
    step = 1.0 / (4 * elements * spacing)
    return np.round(sine / step) * step


def drawn_gains(spread: Spread, rng: np.random.Generator) -> FloatArray:
    """Return the power [links] that the best beam receives on one ray, relative to the power of a single element."""
    direct = rng.random(LINKS) < spread.direct
    wider = 1.0 / math.sqrt(1.0 - spread.direct)
    azimuth = np.radians(rng.uniform(-60.0, 60.0, LINKS))
    # elevations near the horizon, at random offsets from the codebook's beams
    elevation = np.radians(rng.uniform(-8.0, 8.0, LINKS))
    across = np.radians(spread.azimuth_deg) * wider * rng.standard_normal(LINKS)
    upwards = np.radians(spread.zenith_deg) * wider * rng.laplace(scale=1.0 / math.sqrt(2.0), size=LINKS)
    gains = np.ones(LINKS)
    for (elements, spacing), mean, offset in zip(AXES, (azimuth, elevation), (across, upwards), strict=True):
        ray = np.sin(mean + np.where(direct, 0.0, offset))
        beam = nearest_beam(elements, spacing, np.sin(mean))
        weights = steering(elements, spacing, beam) / math.sqrt(elements)
        gains *= np.abs(np.sum(weights.conj() * steering(elements, spacing, ray), axis=1)) ** 2
    return gains


@pytest.mark.parametrize("model", [UMi(), UMa(), InH()], ids=["umi", "uma", "inh"])
@pytest.mark.parametrize("state", ["los", "nlos"])
def test_the_mean_over_paths_is_that_of_rays_drawn_one_by_one(model: PathLoss, state: str) -> None:
    spreads = model.spreads(3.5e9)
    assert spreads is not None
    spread: Spread = getattr(spreads, state)
    gains = drawn_gains(spread, np.random.default_rng(SEED))
    error = float(gains.std() / math.sqrt(LINKS))
    # mean elevations are within 8 degrees of the horizon, and the code assumes 0, which changes gains by 1 %
    assert 10 ** (beam_gain_db(spread) / 10) == pytest.approx(
        gains.mean(), abs=STANDARD_ERRORS * error, rel=0.01
    )


def test_wider_spreads_take_the_gain_away() -> None:
    """If all paths have the same direction, 32 elements have their full gain, less 0.1 dB for the codebook."""
    all_db = beam_gain_db(Spread(0.0, 0.0, 0.0))
    assert all_db == pytest.approx(10 * math.log10(32), abs=0.2)
    gains_db = [beam_gain_db(Spread(0.0, wide_deg, 1.0)) for wide_deg in (0.0, 5.0, 10.0, 20.0, 40.0)]
    assert gains_db == sorted(gains_db, reverse=True)
    assert beam_gain_db(Spread(0.0, 40.0, 10.0, direct=1.0)) == all_db


@pytest.mark.parametrize(
    ("model", "carrier_hz", "delays_ns", "azimuths_deg"),
    [
        (UMi(), 3.5e9, (50.49, 103.09), (15.04, 23.97)),
        (UMi(), 1e9, (55.65, 113.62), (15.35, 26.31)),
        (UMa(), 3.5e9, (93.34, 364.12), (14.02, 25.76)),
        (InH(), 3.5e9, (19.93, 38.93), (39.81, 41.69)),
    ],
)
def test_spreads_are_the_medians_of_the_report(
    model: PathLoss, carrier_hz: float, delays_ns: tuple[float, float], azimuths_deg: tuple[float, float]
) -> None:
    """Spreads are by 38.901, Table 7.5-6; carriers below 2 GHz (UMi) or 6 GHz (UMa, InH) count as 2 or 6 GHz."""
    spreads = model.spreads(carrier_hz)
    assert spreads is not None
    assert [one.delay_s * 1e9 for one in spreads] == pytest.approx(delays_ns, rel=1e-3)
    assert [one.azimuth_deg for one in spreads] == pytest.approx(azimuths_deg, rel=1e-3)
    k_factor_db = 7.0 if isinstance(model, InH) else 9.0
    assert spreads.los.direct == pytest.approx(1 / (1 + 10 ** (-k_factor_db / 10)))
    assert spreads.nlos.direct == 0.0

"""Test that links beyond the world's border have the gains that they would have at the border."""

from typing import Any

import numpy as np
import pytest

from edgefl.channel.geometry import within
from edgefl.engine.air.gains import LargeScaleState, SpatialGains
from edgefl.engine.air.measurements import Measurements
from tests.unit.engine.air.worlds import world_of

SINGLE_DB = 2e-3  # twice the rounding error of a survey in single precision
ANGLES = np.linspace(0.1, 6.2, 6)
KEY = (1, "train", 1)


def gains_of(layout: dict[str, Any]) -> SpatialGains:
    gains = world_of(
        seed=3,
        devices={"count": len(ANGLES)},
        layout=layout,
        radio={
            "preset": "nr",
            "propagation": {"line_of_sight": "probabilistic"},
            "neighbour_load": 0.2 if layout else 0.0,
        },
    ).gains
    assert isinstance(gains, SpatialGains)
    return gains


@pytest.mark.parametrize("layout", [{}, {"rings": 1, "isd_m": 200}, {"rings": 1, "isd_m": 200, "sectors": 3}])
@pytest.mark.parametrize("over", [1.0001, 1.5])
def test_a_link_beyond_the_border_has_the_gain_there_whoever_asks(
    layout: dict[str, Any], over: float
) -> None:
    gains, ids = gains_of(layout), np.arange(len(ANGLES))
    border_m = gains.large_scale.area_radius_m * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
    beyond_m = border_m * over
    assert not within(beyond_m, gains.large_scale.area_radius_m).any()
    cells = np.zeros(len(ids), dtype=int)
    measured = Measurements(1, gains.power_db_of)

    def asked(places_m: np.ndarray) -> list[LargeScaleState]:
        return [
            gains.of_round(places_m, ids.tolist(), 0, KEY),
            gains.of_links(places_m, ids, cells),
            gains.of_survey(measured.survey(places_m), ids.tolist(), cells),
        ]

    at_border, counted = asked(border_m * (1 - 1e-12)), gains.beyond
    for there, state in zip(at_border, asked(beyond_m), strict=True):
        assert np.isfinite(state.gains_db).all()
        assert state.gains_db == pytest.approx(there.gains_db, abs=SINGLE_DB)
        assert state.others == pytest.approx(there.others, rel=1e-3)
    assert all(state.gains_db == pytest.approx(at_border[0].gains_db, abs=SINGLE_DB) for state in at_border)
    assert gains.beyond == counted + 2 * len(ids)  # once by a round and once by a survey
    # a measurement of all devices finds no cell there, as for an absent device
    assert np.isneginf(gains.power_db(beyond_m)).all()


def test_who_is_absent_has_no_link() -> None:
    gains = gains_of({"rings": 1, "isd_m": 200})
    nowhere_m = np.full((len(ANGLES), 2), np.nan)
    assert np.isneginf(gains.power_db(nowhere_m)).all()

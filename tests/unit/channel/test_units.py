import math

import numpy as np
import pytest

from edgefl.channel.units import SPEED_OF_LIGHT_M_S, db_to_linear, dbm_to_watt, linear_to_db, watt_to_dbm


def test_definitions() -> None:
    assert SPEED_OF_LIGHT_M_S == 3.0e8
    assert db_to_linear(30.0) == pytest.approx(1000.0, rel=1e-14)
    assert linear_to_db(0.1) == pytest.approx(-10.0, rel=1e-14)
    assert dbm_to_watt(0.0) == 0.001
    # Table I of the journal paper rounds 43 dBm, 19.95 W, to 20 W
    assert dbm_to_watt(43.0) == pytest.approx(10**1.3, rel=1e-14)
    assert watt_to_dbm(0.2) == pytest.approx(10 * math.log10(200), rel=1e-14)


def test_conversions_invert_each_other_and_keep_shape() -> None:
    values = np.linspace(-200.0, 100.0, 12).reshape(3, 4)
    np.testing.assert_allclose(linear_to_db(db_to_linear(values)), values, rtol=1e-13)
    np.testing.assert_allclose(watt_to_dbm(dbm_to_watt(values)), values, rtol=1e-13)

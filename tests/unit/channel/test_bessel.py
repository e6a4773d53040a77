"""J0 equals SciPy's."""

import numpy as np
import pytest
from scipy import special

from edgefl.channel.bessel import j0

EPS = float(np.finfo(float).eps)


def test_j0_is_scipys() -> None:
    x = np.concatenate([np.linspace(0.0, 5.0, 5001), np.geomspace(1e-9, 1e-4, 500)])
    # |J0| <= 1; both polynomials and the product of zeros round a few times each
    assert [j0(float(one)) for one in x] == pytest.approx(special.j0(x), abs=4 * EPS)


def test_j0_near_0_is_its_series() -> None:
    for x in (0.0, 1e-6, 1e-3):
        assert j0(x) == pytest.approx(1 - x**2 / 4 + x**4 / 64, abs=EPS)

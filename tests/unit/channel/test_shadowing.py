import numpy as np

from edgefl.channel.shadowing import draw_shadowing_db

SEED = 7


def test_each_device_can_have_its_own_deviation() -> None:
    unit = draw_shadowing_db(np.random.default_rng(SEED), 3, std_db=1.0)
    own = draw_shadowing_db(np.random.default_rng(SEED), 3, std_db=[4.0, 7.82, 0.0])
    np.testing.assert_array_equal(own, unit * [4.0, 7.82, 0.0])

"""Compare the penetration losses of 3GPP TR 38.901, section 7.4.3, with hand derivations."""

import math

import numpy as np
import pytest

from edgefl.channel.penetration import STD_DB, penetration_loss_db, wall_loss_db


@pytest.mark.parametrize(
    ("walls", "glass_db", "glass_share"),
    # Table 7.4.3-1 at 3.5 GHz: glass 2 + 0.2 f, coated glass 23 + 0.3 f
    [("low_loss", 2.7, 0.3), ("high_loss", 24.05, 0.7)],
)
def test_walls_by_hand(walls: str, glass_db: float, glass_share: float) -> None:
    through = glass_share * 10 ** (-glass_db / 10) + (1 - glass_share) * 10 ** (-19 / 10)  # concrete 5 + 4 f
    assert wall_loss_db(3.5e9, walls) == pytest.approx(5 - 10 * math.log10(through), abs=1e-12)


def test_walls_at_both_ends_of_the_carriers() -> None:
    """At 28 GHz almost no power passes concrete, so the loss follows from the glass and its share of the wall."""
    assert wall_loss_db(28e9, "low_loss") == pytest.approx(5 + 7.6 - 10 * math.log10(0.3), abs=1e-6)
    assert wall_loss_db(28e9, "high_loss") == pytest.approx(5 + 31.4 - 10 * math.log10(0.7), abs=1e-6)


def test_loss_adds_up() -> None:
    loss_db = penetration_loss_db([12.0, 26.0], [4.4, 6.5], inside_m=[0.0, 10.0], normal=[1.0, -2.0])
    assert loss_db.tolist() == pytest.approx([12 + 4.4, 26 + 5 - 13])
    assert STD_DB == {"low_loss": 4.4, "high_loss": 6.5}
    assert np.isscalar(wall_loss_db(1e9, "low_loss"))

"""Test that transfers that are too short to be drawn by renewal are counted."""

from unittest import mock

import pytest

from edgefl.engine.air.regime import RenewalRegime
from edgefl.engine.cells.network import Network
from edgefl.testing import Scripted, small_world


def test_coherence_times_are_counted() -> None:
    regime = RenewalRegime()
    assert regime.notes == []
    regime.count([1000.0, 499.0, 5.0, 5.0], [0.9, 0.9, 0.0, 1.0])  # coherence times: 100, 49.9, 5; static
    regime.count(30.0, -0.5)  # 15 coherence times
    assert (regime.transfers, regime.short) == (4, 3)
    assert regime.shortest == pytest.approx(5.0)
    (note,) = regime.notes
    assert "3 of 4 transfers were shorter than 50 coherence times" in note
    assert "the shortest 5)" in note


def test_long_transfers_need_no_note() -> None:
    regime = RenewalRegime()
    regime.count([5000.0], [0.99])
    assert (regime.transfers, regime.notes) == (1, [])


@pytest.mark.parametrize("planned", [True, False])
def test_transfers_of_a_run_are_counted_once(planned: bool) -> None:
    """Two rounds of two devices make six transfers, as one device uploads nothing."""
    work = {1: (5, 640, 3_000_000, 0)}
    with mock.patch.object(Network, "still", planned):
        world = small_world(
            [50.0, 90.0],
            learner=Scripted(of=work),
            policy={"name": "schedule", "count": 1, "rounds": 2},
            doppler_speed_m_s=10.0,
            radio={"fidelity": "renewal", "tdd": {}},
        ).run()
    regime = world.simulation.radio.air.regime
    assert (regime.transfers, regime.short) == (6, 6)
    assert 0.1 < regime.shortest < 50


@pytest.mark.parametrize("radio", [{"fidelity": "auto"}, {"fidelity": "slot"}])
def test_only_renewal_is_counted(radio: dict[str, str]) -> None:
    world = small_world([50.0], doppler_speed_m_s=10.0, radio=radio).run()
    assert world.simulation.radio.air.regime.transfers == 0

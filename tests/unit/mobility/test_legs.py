"""Test that positions remain functions of time if legs are generated ahead, for many devices at once."""

import numpy as np

from edgefl.mobility import Leg, Legs


class Ways(Legs):
    """Devices that walk along x at 1 m/s, device k in legs of k + 1 s; the last device rests after its second leg.

    calls: the number of devices in each call of `next_leg`.
    """

    def __init__(self, devices: int) -> None:
        super().__init__(np.ones(devices))
        self.calls: list[int] = []
        self._last = devices - 1

    def begin(self, ids: np.ndarray) -> np.ndarray:
        return np.zeros((2, len(ids)))

    def next_leg(self, ids: np.ndarray, number: np.ndarray, here_m: np.ndarray, now_s: np.ndarray) -> Leg:
        assert np.isfinite(now_s).all(), "no leg is generated for a device that stays"
        self.calls.append(len(ids))
        steps = ids + 1.0
        ever = (ids == self._last) & (number == 1)
        return Leg(here_m + np.stack([steps, 0 * steps]), steps, np.where(ever, np.inf, 0.0))


def test_places_are_functions_of_time_however_they_are_asked() -> None:
    devices = 5
    forwards = Ways(devices)
    for time_s in (0.0, 0.5, 3.0, 3.0, 17.25, 40.0, 2.5, 17.25):
        places_m = forwards.positions_m(time_s)[:, 0]
        expected = np.full(devices, time_s)
        expected[-1] = min(time_s, 10.0)  # the last device rests after two legs of five seconds
        np.testing.assert_allclose(places_m, expected, rtol=1e-12)


def test_legs_of_many_devices_are_made_together() -> None:
    ways = Ways(100)
    for second in range(100):
        ways.positions_m(float(second))
    legs = sum(ways.calls)
    # device k begins its leg n at n (k + 1) s, so that one call per leg would make 500 calls
    assert len(ways.calls) < legs / 5
    assert legs < 2 * 100 + sum(99 // (k + 1) + 1 for k in range(100)), "at most one leg ahead per device"

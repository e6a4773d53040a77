"""Find speeds that no device of a trace can have, and rows with a wrong position that cause them."""

import numpy as np

TRAIN_M_S = (
    150.0  # above the 500 km/h of high-speed trains (TR 38.913), a unit or a position is probably wrong
)
ROAD_M_S = 60.0  # if all steps but FEW are slower than this, 216 km/h, the units are probably right
FEW = 0.05
RAIL_M_S = 100.0  # no train in service reaches this, 360 km/h, so it is no usual speed in a trace


def speeds_m_s(samples: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean speed [samples - 1] of each step from a sample to its device's next sample.

    The speed is 0 between the samples of different devices.

    Args:
        samples: [samples, 3] t, x, y of each sample, device after device, with increasing times for each device.
        counts: [devices] how many samples each device has.
    """
    took_s, apart_m = np.diff(samples[:, 0]), np.hypot(np.diff(samples[:, 1]), np.diff(samples[:, 2]))
    last = np.cumsum(counts)[:-1] - 1
    took_s[last], apart_m[last] = 1.0, 0.0
    return np.asarray(apart_m / took_s)


def too_fast(steps_m_s: np.ndarray) -> bool:
    """Return whether a step is faster than any train, or half of the moving steps faster than trains in service."""
    moving = steps_m_s[steps_m_s > 0]
    return bool(len(moving)) and bool(moving.max() > TRAIN_M_S or np.median(moving) > RAIL_M_S)


def outlier(steps_m_s: np.ndarray, counts: np.ndarray) -> tuple[int, int] | None:
    """Return the device, and the number of its sample, of the first wrong position; None if the units may be wrong.

    Positions are wrong if only a few steps are faster than a train, and nearly all others as slow as road traffic.

    Args:
        steps_m_s: speeds from `speeds_m_s`.
    """
    fast = steps_m_s > TRAIN_M_S
    if not fast.any() or np.quantile(steps_m_s[steps_m_s > 0], 1 - FEW) > ROAD_M_S:
        return None
    step = int(fast.argmax())
    ends = np.cumsum(counts)
    device = int(np.searchsorted(ends, step, side="right"))
    sample = step - int(ends[device] - counts[device])
    # the steps to and from a wrong position are both fast, but no step leads to a device's first sample
    begins_wrong = sample == 0 and counts[device] > 2 and not fast[step + 1]
    return device, sample if begins_wrong else sample + 1


def mean_speeds_m_s(samples: np.ndarray, owner: np.ndarray, present: np.ndarray, devices: int) -> np.ndarray:
    """Return mean speeds [devices]: path length divided by the time of presence; 0 for a single sample."""
    ways_m, times_s = np.hypot(*np.diff(samples[:, 1:], axis=0).T), np.diff(samples[:, 0])
    way_m = np.bincount(owner[:-1], present * ways_m, minlength=devices)
    time_s = np.bincount(owner[:-1], present * times_s, minlength=devices)
    return np.divide(way_m, time_s, out=np.zeros(devices), where=time_s > 0)

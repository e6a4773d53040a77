"""Decide by 3GPP event A3 on filtered measurements which devices change cells, and when.

The module uses only NumPy and has no clock.
"""

from dataclasses import dataclass

import numpy as np

from edgefl.engine.settings import HandoverSettings


@dataclass(frozen=True)
class _Decision:
    """Devices [n] that hand over at the same time, and their target cells [n]."""

    time_s: float
    devices: np.ndarray
    targets: np.ndarray


# The filter coefficient of TS 38.331 assumes one sample per layer-1 measurement period, 200 ms (TS 38.133).
SAMPLE_S = 0.2


class Layer3Filter:
    """Layer-3 filter of measurements: F_n = (1 - a) F_(n-1) + a M_n in dB, with F_1 = M_1.

    a = 1 / 2^(k/4) for one sample every SAMPLE_S. At other intervals T the filter keeps its time constant, as the
    standard requires: 1 - a becomes (1 - a)^(T / SAMPLE_S), so that an old measurement has the same weight after the
    same time. k = 0 disables the filter.

    Source: TS 38.331, section 5.5.3.2. A device measures all cells, and its filter continues through handovers; after
    a device has been off or absent, its filter restarts.
    """

    def __init__(self, settings: HandoverSettings, devices: int, cells: int) -> None:
        kept = 1.0 - 0.5 ** (settings.l3_filter_k / 4)
        self._kept = np.float32(kept ** (settings.measurement_interval_s / SAMPLE_S))
        self._filtered_db = np.zeros((cells, devices), np.float32).T  # memory order as in measurements
        self._known = np.zeros(devices, dtype=bool)  # whether a device has an earlier measurement
        # filtered minus measured power at the last measurement; once it no longer changes, the filter has settled
        self._off_db = np.full((cells, devices), np.nan, np.float32).T
        self.settled = False

    def filtered_db(self, power_db: np.ndarray, measuring: np.ndarray) -> np.ndarray:
        """Add one measurement of all devices to the filter.

        Args:
            power_db: [devices, cells] measured power in dB.
            measuring: [devices] whether each device measures; rows of other devices are ignored.

        Returns:
            [devices, cells] filtered power in dB, valid until the next call.
        """
        if not self._kept:
            self.settled = True
            return power_db
        first = measuring & ~self._known
        filtered_db = self._filtered_db
        with np.errstate(invalid="ignore"):  # an absent device is measured at -inf or nan
            filtered_db -= power_db
            # compare bit by bit, so that the filter of a device that stays absent (nan) counts as settled
            unchanged = np.array_equal(filtered_db.T.view(np.int32), self._off_db.T.view(np.int32))
            self.settled = unchanged and not first.any()
            self._off_db[:] = filtered_db
            filtered_db *= self._kept
            filtered_db += power_db
        # the filter of a cell starts when the cell comes into range, and is dropped when it goes out of range
        np.copyto(filtered_db, power_db, where=~np.isfinite(filtered_db))
        if first.any():
            filtered_db[first] = power_db[first]
        self._known[:] = measuring
        return filtered_db

    def forget(self, device: int) -> None:
        """Restart the filter of a device at its next measurement."""
        self._known[device] = False


class EventA3:
    """Event A3: during the whole time-to-trigger, a neighbour is stronger than the serving cell by an offset.

    With M the measured power in dB, offset Off and hysteresis Hys, a neighbour n of the serving cell p

        enters when  M_n - Hys > M_p + Off,   and leaves when  M_n + Hys < M_p + Off.

    The target is a neighbour for which the event was entered, and not left, for time_to_trigger_s. The timer runs on
    between measurements, so a decision comes exactly time_to_trigger_s after the measurement at which the neighbour
    entered. If two timers expire together, the stronger neighbour wins. Left out: the cell-specific offsets Ofn and
    Ocn, and layer-1 filtering, which measurements without fast fading do not need.
    """

    def __init__(self, settings: HandoverSettings, devices: int, cells: int) -> None:
        self._enter_db = settings.a3_offset_db + settings.hysteresis_db
        self._leave_db = settings.a3_offset_db - settings.hysteresis_db
        self._trigger_s = settings.time_to_trigger_s
        self._interval_s = settings.measurement_interval_s
        self._timing = np.zeros(devices, dtype=bool)  # whether at least one neighbour has entered
        # ids [n] of devices near a cell edge at the last measurement, ascending, and times [n, cells] of entry
        self._ids, self._entered_s = np.empty(0, dtype=np.intp), np.empty((0, cells))
        self._power_db = np.zeros((0, cells))  # the last measurement
        self._everybody = np.arange(devices)

    def measure(self, time_s: float, power_db: np.ndarray, serving: np.ndarray) -> list[_Decision]:
        """Process one measurement of all devices; return the handovers until the next measurement.

        Args:
            time_s: time of the measurement; the next one is measurement_interval_s later.
            power_db: [devices, cells] received power in dB from path loss and shadowing, relative to any reference;
                the array is kept until the next measurement.
            serving: [devices] serving cell; -1 for devices without a cell, which do not measure.

        Returns:
            Decisions that take effect before the next measurement, in order of time.
        """
        self._power_db = power_db
        served = serving >= 0
        own_db = power_db[self._everybody, np.maximum(serving, 0)]
        best_db = power_db.max(axis=1)
        # few devices are near a cell edge, so neighbours are examined only for these devices
        near = np.flatnonzero(served & (self._timing | (best_db > own_db + self._enter_db)))
        self._timing &= served
        known = self._timing[self._ids]
        entered_s = np.full((len(near), power_db.shape[1]), np.inf)
        entered_s[np.searchsorted(near, self._ids[known])] = self._entered_s[known]
        self._ids, self._entered_s = near, entered_s
        if not len(near):
            return []
        with np.errstate(invalid="ignore"):  # cells out of range are measured at -inf
            gap_db = power_db[near] - own_db[near, None]
        entered_s[~(gap_db >= self._leave_db)] = np.inf
        entered_s[(gap_db > self._enter_db) & np.isinf(entered_s)] = time_s
        rows = np.arange(len(near))
        entered_s[rows, serving[near]] = np.inf
        self._timing[near] = np.isfinite(entered_s).any(axis=1)

        # the earliest timer wins; in a tie, the stronger neighbour wins
        first_s = entered_s.min(axis=1)
        ends_s = first_s + self._trigger_s
        # a timer that expires within rounding of the next measurement belongs to that measurement
        due = np.flatnonzero(ends_s < time_s + self._interval_s * (1 - 1e-9))
        if not len(due):
            return []
        earliest = entered_s[due] == first_s[due, None]
        targets = np.where(earliest, gap_db[due], -np.inf).argmax(axis=1)
        due_s = ends_s[due]
        if due_s.min() == due_s.max():  # the usual case: all neighbours entered at the same measurement
            return [_Decision(float(due_s[0]), near[due], targets)]
        return [
            _Decision(float(end_s), near[due[now]], targets[now])
            for end_s in np.unique(due_s)
            for now in [due_s == end_s]
        ]

    def target(self, device: int, time_s: float) -> int | None:
        """Return the target of a device's handover that is due, the strongest cell if several are, or None."""
        if not self._timing[device]:
            return None
        due = self._entered_s[np.searchsorted(self._ids, device)] + self._trigger_s <= time_s
        if not due.any():
            return None
        return int(np.where(due, self._power_db[device], -np.inf).argmax())

    @property
    def idle(self) -> bool:
        """Whether no device has a running time-to-trigger."""
        return not self._timing.any()

    def forget(self, devices: int | np.ndarray) -> None:
        """Stop all timers of devices that have changed cells or left."""
        self._timing[devices] = False

"""Measure the gains of links during transfers, for all cells at once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import simpy

from edgefl.channel.interference import Heard
from edgefl.channel.tdd import Direction, rounding_s
from edgefl.channel.units import FloatArray, Values
from edgefl.engine.air.budget import Budget
from edgefl.engine.air.gains import LargeScaleGains, LargeScaleState, RoundKey
from edgefl.engine.air.links import Links
from edgefl.engine.air.measurements import Survey
from edgefl.engine.air.radio_link_monitoring import RadioLinkMonitoring
from edgefl.engine.air.slot_interference import InterferedLinks
from edgefl.engine.derived import Derived

Snr = dict[Direction, FloatArray]


class ChannelReports:
    """The mean SNR of a round's links in one cell, updated while a link has a transfer under way.

    The first read at a measurement time measures all links with a transfer. An absent device keeps its last SNR.

    Args:
        links: the round's links by ascending id, with the SNR at the round's start and the round's uplink power.
        neighbours: number of shares that every other site sends at once.
        interfered: fading with interference, updated along with the SNR; None if the SNR includes interference.
    """

    def __init__(
        self,
        reader: "GainReader",
        cell: int,
        key: RoundKey,
        links: Links,
        neighbours: int,
        interfered: InterferedLinks | None,
    ) -> None:
        self.cell = cell
        self.key = key
        self.ids = np.asarray(links.devices)
        self.neighbours = neighbours
        self.interfered = interfered
        # measure all links: an idle link costs little, and a transfer over it may begin before the next tick
        self.of_survey = Derived(lambda survey: reader.measured([self], [np.arange(len(self.ids))], survey))
        self._row = {device: row for row, device in enumerate(links.devices)}
        self._reader = reader
        self._uplink_power = links.uplink_power
        self._snr = {direction: values.copy() for direction, values in links.snr.items()}
        self._measured_s = np.full(len(self.ids), float(reader.env.now))
        self._active: set[int] = set()

    @contextmanager
    def under_way(self, device: int) -> Iterator[None]:
        """Measure a device's link for as long as the context is open."""
        self._active.add(device)
        self._reader.under_way[self] = None
        try:
            yield
        finally:
            self._active.discard(device)
            if not self._active:
                self._reader.under_way.pop(self, None)

    def snr(self, device: int, direction: Direction) -> float:
        """Return the current mean SNR of a device's link over the whole band; in the uplink, times `uplink_power`."""
        row = self._row[device]
        if not self._is_now(self._measured_s.item(row)):
            self._reader.read(self, row)
        return self._snr[direction].item(row)

    def known_snr(self, device: int, direction: Direction) -> float | None:
        """Return the mean SNR of a device's link, or None if the link has not been measured at the current time."""
        row = self._row[device]
        return self._snr[direction].item(row) if self._is_now(self._measured_s.item(row)) else None

    def due(self, positions_m: FloatArray, alone: int | None = None) -> npt.NDArray[np.intp]:
        """Return the rows of links with a transfer under way that have not yet been measured at this time.

        The returned links count as measured from now on. Absent devices are left out and keep their last SNR.

        Args:
            positions_m: [all devices, 2] current positions, nan for absent devices.
            alone: row of the only link to measure, or None to measure all links that are due.
        """
        if alone is None:
            rows = np.searchsorted(self.ids, sorted(self._active))
            rows = rows[~self._is_now(self._measured_s[rows])]
        else:
            rows = np.array([alone])
        self._measured_s[rows] = self._reader.env.now
        return rows[np.isfinite(positions_m[self.ids[rows], 0])]

    def take(
        self, rows: npt.NDArray[np.intp], snr: Snr, heard: Sequence[Heard], at: slice | npt.NDArray[np.intp]
    ) -> None:
        """Store entries `at` of a result of `GainReader.measured` as the measurements of the links in `rows`."""
        self._snr["downlink"][rows] = snr["downlink"][at]
        self._snr["uplink"][rows] = snr["uplink"][at] * self._uplink_power[rows]
        if self.interfered is not None:
            links = self.interfered("downlink")
            some = heard[at] if isinstance(at, slice) else [heard[place] for place in at.tolist()]
            for row, hears in zip(rows.tolist(), some, strict=True):
                links[row].heard = hears

    def _is_now(self, measured_s: Values) -> Any:
        # the clock adds up delays, so the same time may result from different sums, which round differently
        now_s = self._reader.env.now
        return now_s - measured_s <= rounding_s(now_s)


@dataclass(eq=False)
class GainReader:
    """Measure the gains of links during transfers.

    At the common measurement times, all rounds are measured together, since computing the gains of many places takes
    little longer than computing the gains of a few. If devices survey all cells for handovers, the links' gains come
    from the survey, and a transfer that begins between two measurements uses the gains of the last tick, just as a
    network uses the last reports. Without a survey, the link of a transfer that begins between two measurements is
    measured alone or, in a dynamically shared band, with its round's other links, since all flows are rescheduled.

    Args:
        gains: large-scale gains of the links.
        heard: returns each device's interference from the other sites in a large-scale state.
        shared: whether transfers share a band dynamically.

    Attributes:
        under_way: rounds with a transfer under way, in the order in which their first transfers started.
        positions_m: returns the current positions [devices, 2], nan for absent devices; None if no device moves.
        survey: returns a survey of all cells, made now if its argument is True, else at the last tick; or None.
    """

    env: simpy.Environment
    monitoring: RadioLinkMonitoring
    budget: Budget
    gains: LargeScaleGains
    heard: Callable[[LargeScaleState], list[Heard]]
    shared: bool = False
    under_way: dict[ChannelReports, None] = field(default_factory=dict)
    positions_m: Callable[[], np.ndarray] | None = None
    survey: Callable[[bool], Survey | None] = lambda _: None

    def read(self, asking: ChannelReports, row: int) -> None:
        """Measure the link in this row, and all other links due for measurement."""
        assert self.positions_m is not None  # links are measured again only if positions are known
        on_grid, rounds = self.monitoring.measures_at(self.env.now), [asking]
        together, survey = on_grid or self.shared, self.survey(on_grid)
        positions_m = self.positions_m() if survey is None else survey.positions_m
        if on_grid:
            rounds += [
                other
                for other in self.under_way
                # another round in the same cell may have different shadowing
                if other is not asking and (other.key == asking.key or other.cell != asking.cell)
            ]
        due = [one.due(positions_m, None if together else row) for one in rounds]
        if survey is not None and not on_grid:
            asking.take(due[0], *asking.of_survey(survey), due[0])
            return
        if not any(map(len, due)):
            return
        values, begin = self.measured(rounds, due, survey or positions_m), 0
        for one, rows in zip(rounds, due, strict=True):
            one.take(rows, *values, slice(begin, begin + len(rows)))
            begin += len(rows)

    def measured(
        self,
        rounds: Sequence[ChannelReports],
        rows: Sequence[npt.NDArray[np.intp]],
        at: Survey | npt.NDArray[np.float64],
    ) -> tuple[Snr, list[Heard]]:
        """Return the SNR of links in these rows of rounds, and each device's interference from the other sites.

        Args:
            at: a survey, or the positions [all devices, 2] at which to measure.
        """
        counts = [len(some) for some in rows]
        ids = np.concatenate([one.ids[some] for one, some in zip(rounds, rows, strict=True)])
        cells = np.repeat([one.cell for one in rounds], counts)
        if isinstance(at, Survey):
            state = self.gains.of_survey(at, ids.tolist(), cells)
        else:
            state = self.gains.of_round(at, ids.tolist(), cells, rounds[0].key)
        snr = self.budget.snr(state, np.repeat([one.neighbours for one in rounds], counts))
        return snr, [] if rounds[0].interfered is None else self.heard(state)

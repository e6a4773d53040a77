"""Channel reports: gains measured anew while transfers last, of all cells at once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
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
    """The mean SNR of the links of one round in one cell, measured anew for those with a transfer under way.

    At the times of the grid all of them are measured when the first is asked for. An absent device keeps what was
    measured last.

    Args:
        links: ids ascending; their SNR is that of the round's start, their uplink power is held.
        neighbours: shares that each other site sends.
        interfered: the links' fading, whose interference is measured too; None: it is in the SNR.
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
        # others of the round begin before the next tick, too: all links take little more time than one
        self._surveyed = Derived(partial(reader.surveyed, cell, self.ids, neighbours, interfered is not None))
        self._row = {device: row for row, device in enumerate(links.devices)}
        self._reader = reader
        self._uplink_power = links.uplink_power
        self._snr = {direction: values.copy() for direction, values in links.snr.items()}
        self._measured_s = np.full(len(self.ids), float(reader.env.now))
        self._active: set[int] = set()

    @contextmanager
    def under_way(self, device: int) -> Iterator[None]:
        """Measure a device's link while its transfer is under way."""
        self._active.add(device)
        self._reader.under_way[self] = None
        try:
            yield
        finally:
            self._active.discard(device)
            if not self._active:
                self._reader.under_way.pop(self, None)

    def snr(self, device: int, direction: Direction) -> float:
        """Return the mean SNR of a device's link now, with full power over the whole band."""
        row = self._row[device]
        if not self._is_now(self._measured_s.item(row)):
            self._reader.read(self, row)
        return self._snr[direction].item(row)

    def known_snr(self, device: int, direction: Direction) -> float | None:
        """Return `snr` of a device if it has been measured now, None if not."""
        row = self._row[device]
        return self._snr[direction].item(row) if self._is_now(self._measured_s.item(row)) else None

    def take_surveyed(self, row: int, survey: Survey) -> None:
        """Take what a survey says of the link in a row; an absent device keeps what was measured last."""
        snr, heard = self._surveyed(survey)
        self._measured_s[row] = self._reader.env.now
        if np.isfinite(survey.positions_m[self.ids[row], 0]):
            self._snr["downlink"][row] = snr["downlink"][row]
            self._snr["uplink"][row] = snr["uplink"][row] * self._uplink_power[row]
            if self.interfered is not None:
                self.interfered("downlink")[row].heard = heard[row]

    def due(self, positions_m: FloatArray, alone: int | None = None) -> npt.NDArray[np.intp]:
        """Return the rows of the links to be measured now: with a transfer under way, not measured yet at this time.

        From now on they count as measured. Absent devices are left out: they have what was measured last.

        Args:
            positions_m: [all devices, 2] now, nan: absent.
            alone: only the link in this row is.
        """
        if alone is None:
            rows = np.searchsorted(self.ids, sorted(self._active))
            rows = rows[~self._is_now(self._measured_s[rows])]
        else:
            rows = np.array([alone])
        self._measured_s[rows] = self._reader.env.now
        return rows[np.isfinite(positions_m[self.ids[rows], 0])]

    def take(self, rows: npt.NDArray[np.intp], snr: Snr, heard: Sequence[Heard]) -> None:
        """Take what was measured just now: [rows] SNR, and what each device hears of the other sites."""
        self._snr["downlink"][rows] = snr["downlink"]
        self._snr["uplink"][rows] = snr["uplink"] * self._uplink_power[rows]
        if self.interfered is not None:
            links = self.interfered("downlink")
            for row, hears in zip(rows.tolist(), heard, strict=True):
                links[row].heard = hears

    def _is_now(self, measured_s: Values) -> Any:
        # a clock that adds up waits may come to one time in two ways
        now_s = self._reader.env.now
        return now_s - measured_s <= rounding_s(now_s)


@dataclass(eq=False)
class GainReader:
    """Measures the gains of links while transfers last.

    At the times of the grid, at which everybody measures, all rounds are measured together: the gains of many places
    take little more time than those of a few. Where devices measure all cells for their handovers, that survey says
    what the links are, too, and a transfer that begins beside the grid has what was measured at the last tick, as a
    network has reports. Else it is measured alone, for nobody else asks then; in a band that is shared dynamically
    with those of its round, where it is planned anew for all.

    Args:
        gains: of the links.
        heard: large-scale state -> what each device hears of the other sites.
        shared: whether transfers share a band dynamically.

    Attributes:
        under_way: the rounds with a transfer under way, in order of their first one.
        positions_m: returns [devices, 2] of all devices now, nan: absent; None: nobody moves.
        survey: afresh -> what all devices measured of all cells now, or at the last tick; None: nobody measures.
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
        """Measure a round's link in a row, and others that are due with it."""
        assert self.positions_m is not None  # else no link is measured again
        on_grid, rounds = self.monitoring.measures_at(self.env.now), [asking]
        survey = self.survey(on_grid)
        if survey is not None and not on_grid and not self.shared:
            asking.take_surveyed(row, survey)
            return
        positions_m = self.positions_m() if survey is None else survey.positions_m
        if on_grid:
            rounds += [
                other
                for other in self.under_way
                # in one cell, rounds may have a shadowing of their own
                if other is not asking and (other.key == asking.key or other.cell != asking.cell)
            ]
        alone = None if on_grid or self.shared else row
        due = [one.due(positions_m, alone) for one in rounds]
        counts = [len(rows) for rows in due]
        ids = np.concatenate([one.ids[rows] for one, rows in zip(rounds, due, strict=True)])
        if not len(ids):
            return
        cells = np.repeat([one.cell for one in rounds], counts)
        if survey is None:
            state = self.gains.of_round(positions_m, ids.tolist(), cells, asking.key)
        else:
            state = self.gains.of_survey(survey, ids.tolist(), cells)
        snr = self.budget.snr(state, np.repeat([one.neighbours for one in rounds], counts))
        heard = [] if asking.interfered is None else self.heard(state)
        begin = 0
        for one, rows in zip(rounds, due, strict=True):
            part = slice(begin, begin + len(rows))
            one.take(rows, {direction: values[part] for direction, values in snr.items()}, heard[part])
            begin += len(rows)

    def surveyed(
        self, cell: int, ids: npt.NDArray[np.intp], neighbours: int, hear: bool, survey: Survey
    ) -> tuple[Snr, list[Heard]]:
        """Return what a survey says of all links of a round: [links] SNR, and what each hears of the other sites."""
        cells, shares = np.repeat([[cell], [neighbours]], len(ids), axis=1)
        state = self.gains.of_survey(survey, ids.tolist(), cells)
        return self.budget.snr(state, shares), self.heard(state) if hear else []

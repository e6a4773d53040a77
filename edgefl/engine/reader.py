"""Gains read anew while transfers last: of all cells at once, at the times at which all of them are read."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import simpy

from channel.interference import Heard, Interfered
from channel.tdd import Direction
from channel.units import FloatArray
from edgefl.engine.budget import Budget
from edgefl.engine.gains import RoundKey, Survey
from edgefl.engine.links import DIRECTIONS
from edgefl.engine.readings import Readings, Rules, Snr


@dataclass(frozen=True)
class RoundRead:
    """What a reading of a round's links needs to know of them.

    Args:
        neighbours: shares that each other site sends.
        radiated: [devices] of their power in the uplink, which the round holds.
        interfered: the links' fading, whose interference is read too; None: it is in the SNR.
    """

    cell: int
    key: RoundKey
    neighbours: int
    radiated: FloatArray
    interfered: dict[Direction, list[Interfered]] | None


class Reader:
    """Reads the gains of links while transfers last.

    A transfer that begins is read with those of its round; at the times of the grid, at which everybody measures,
    all rounds are read together: one survey of many places takes little more time than one of a few.

    Args:
        survey: positions, ids, [ids] cells, key -> their large-scale state.
        heard: survey -> what each device hears of the other sites.
    """

    def __init__(
        self,
        env: simpy.Environment,
        rules: Rules,
        budget: Budget,
        survey: Callable[[FloatArray, list[int], np.ndarray, RoundKey], Survey],
        heard: Callable[[Survey], list[Heard]],
    ) -> None:
        self._env = env
        self._rules = rules
        self._budget = budget
        self._survey = survey
        self._heard = heard
        self._rounds: dict[Readings, RoundRead] = {}  # with a transfer under way

    def readings(
        self, ids: list[int], snr: Snr, of: RoundRead, positions_m: Callable[[], np.ndarray]
    ) -> Readings:
        """Return the readings of a round's links.

        Args:
            positions_m: returns [devices, 2] of all devices now, nan: absent.
        """

        def read(asking: Readings) -> None:
            together = [asking]
            if self._rules.reads_at(self._env.now):
                together += [
                    other
                    for other, its in self._rounds.items()
                    # in one cell, rounds may have a shadowing of their own
                    if other is not asking and (its.key == of.key or its.cell != of.cell)
                ]
            self._read(together, of, positions_m())

        def under_way(one: Readings, any_: bool) -> None:
            if any_:
                self._rounds[one] = of
            else:
                self._rounds.pop(one, None)

        return Readings(self._env, ids, snr, read, under_way)

    def _read(self, together: list[Readings], asked: RoundRead, positions_m: FloatArray) -> None:
        due = [one.due() for one in together]
        rounds = [self._rounds.get(one, asked) for one in together]
        ids = np.concatenate([one.ids[rows] for one, rows in zip(together, due, strict=True)])
        counts = [len(rows) for rows in due]
        cells = np.repeat([of.cell for of in rounds], counts)
        neighbours = np.repeat([of.neighbours for of in rounds], counts)
        here = np.isfinite(positions_m[ids, 0])
        found = {d: np.full(len(ids), np.nan) for d in DIRECTIONS}
        heard: dict[int, Heard] = {}
        if here.any():
            again = self._survey(positions_m, ids[here].tolist(), cells[here], asked.key)
            for direction, values in self._budget.snr(again, neighbours[here]).items():
                found[direction][here] = values
            if asked.interfered is not None:
                heard = dict(zip(np.flatnonzero(here).tolist(), self._heard(again), strict=True))
        begin = 0
        for one, of, rows in zip(together, rounds, due, strict=True):
            part = slice(begin, begin + len(rows))
            radiated = of.radiated[rows]
            one.take(rows, {"downlink": found["downlink"][part], "uplink": found["uplink"][part] * radiated})
            if of.interfered is not None:
                for row, place in zip(rows.tolist(), range(begin, begin + len(rows)), strict=True):
                    if place in heard:
                        of.interfered["downlink"][row].heard = heard[place]
            begin += len(rows)

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
        due = [one.due(positions_m) for one in together]
        rounds = [self._rounds.get(one, asked) for one in together]
        ids = np.concatenate([one.ids[rows] for one, rows in zip(together, due, strict=True)])
        counts = [len(rows) for rows in due]
        cells = np.repeat([of.cell for of in rounds], counts)
        neighbours = np.repeat([of.neighbours for of in rounds], counts)
        if not len(ids):
            return
        again = self._survey(positions_m, ids.tolist(), cells, asked.key)
        snr = self._budget.snr(again, neighbours)
        heard = [] if asked.interfered is None else self._heard(again)
        begin = 0
        for one, of, rows in zip(together, rounds, due, strict=True):
            part = slice(begin, begin + len(rows))
            one.take(
                rows, {"downlink": snr["downlink"][part], "uplink": snr["uplink"][part] * of.radiated[rows]}
            )
            if of.interfered is not None:
                for row, hears in zip(rows.tolist(), heard[part], strict=True):
                    of.interfered["downlink"][row].heard = hears
            begin += len(rows)

"""Delay the rows of finished rounds until the devices' tails have ended, and write them in the order of rounds."""

import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from edgefl.engine.devices.tails import Tails
from edgefl.engine.parts import Part


class PartTails(NamedTuple):
    """Durations of the tails after a part's downlink and uplink (None while running), and their total energy."""

    lasts_s: tuple[float | None, float | None]
    energy_j: float


@dataclass(eq=False)
class _Waiting:
    """A finished round with its parts, the tails known so far, and the function that writes its rows.

    running: parts with a running tail. at_end: tails of this and earlier rounds of the session that were running when
    the round ended, each with its round, its part, and the number of the transfer that it follows.
    """

    parts: Sequence[Part]
    session: Hashable
    write: Callable[[list[PartTails], float], None]
    known: list[PartTails] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    at_end: list[tuple["_Waiting", int, int]] = field(default_factory=list)


class OpenTails:
    """The finished rounds of a run that wait for tails to end before their rows are written."""

    def __init__(self, tails: Tails) -> None:
        self._tails = tails
        self._waiting: deque[_Waiting] = deque()

    def add(
        self,
        parts: Sequence[Part],
        now_s: float,
        session: Hashable,
        write: Callable[[list[PartTails], float], None],
    ) -> list[PartTails]:
        """Add a finished round; return its tails so far.

        Args:
            session: identifies the session that the round belongs to.
            write: function to call once the tails of all parts have ended and the rows of earlier rounds are written.
                Its second argument is the energy by which tails of the session that were running when the round ended
                were cut short: the additional cost if the run had ended with the round.
        """
        waiting = _Waiting(parts, session, write)
        for position, part in enumerate(parts):
            known = self._known(part, PartTails((None, None), 0.0), now_s)
            waiting.known.append(known)
            if None in known.lasts_s:
                waiting.running.append(position)
        until_now = list(waiting.known)
        for position in waiting.running:
            until_now[position] = self._until(parts[position], until_now[position], now_s)
        for earlier in self._waiting:
            if earlier.session == session:
                self._update(earlier, now_s)
        self._waiting.append(waiting)
        waiting.at_end = [
            (one, position, one.known[position].lasts_s.index(None))
            for one in self._waiting
            if one.session == session
            for position in one.running
        ]
        self.release(now_s)
        return until_now

    def release(self, now_s: float) -> None:
        """Write the rows of rounds in which all tails have ended by now_s; if it is inf, tails end at full length."""
        while self._waiting:
            first = self._waiting[0]
            while first.running:  # one tail that still runs is enough for the round to wait
                position = first.running[-1]
                first.known[position] = self._known(first.parts[position], first.known[position], now_s)
                if None in first.known[position].lasts_s:
                    return
                first.running.pop()
            self._waiting.popleft()
            cut_j = self._cut_j(first)
            first.at_end.clear()  # otherwise, later rounds would keep all earlier rounds in memory
            first.write(first.known, cut_j)

    def _update(self, waiting: _Waiting, now_s: float) -> None:
        """Look which of a round's tails have ended."""
        for position in waiting.running:
            waiting.known[position] = self._known(waiting.parts[position], waiting.known[position], now_s)
        waiting.running = [place for place in waiting.running if None in waiting.known[place].lasts_s]

    def _cut_j(self, waiting: _Waiting) -> float:
        """Return the energy by which the tails that were running at a round's end were cut short."""
        cut_j = []
        for one, position, which in waiting.at_end:
            device, lasts_s = one.parts[position].device, one.known[position].lasts_s[which]
            assert lasts_s is not None  # rows are written in the order of rounds
            cut_j.append(self._tails.energy_j(device, math.inf) - self._tails.energy_j(device, lasts_s))
        return math.fsum(cut_j)

    def _known(self, part: Part, before: PartTails, now_s: float) -> PartTails:
        """Return a part's tails as known now."""
        lasts_s, energy_j = list(before.lasts_s), before.energy_j
        for which, transfer in enumerate((part.downlink, part.uplink)):
            if lasts_s[which] is not None:
                continue
            of_s = 0.0 if transfer is None else self._tails.take(part.device, transfer.end_s, now_s)
            lasts_s[which] = of_s
            if of_s:
                energy_j += self._tails.energy_j(part.device, of_s)
        return PartTails((lasts_s[0], lasts_s[1]), energy_j)

    def _until(self, part: Part, known: PartTails, now_s: float) -> PartTails:
        """Return a part's tails as if a running tail ended now."""
        energy_j, lasts_s = known.energy_j, list(known.lasts_s)
        for which, transfer in enumerate((part.downlink, part.uplink)):
            if lasts_s[which] is None and transfer is not None:
                lasts_s[which] = now_s - transfer.end_s
                energy_j += self._tails.energy_j(part.device, now_s - transfer.end_s)
        return PartTails((lasts_s[0], lasts_s[1]), energy_j)

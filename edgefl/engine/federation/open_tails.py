"""Delay the rows of finished rounds until the devices' tails have ended, and write them in the order of rounds."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from edgefl.engine.devices.tails import Tails
from edgefl.engine.parts import Part


class PartTails(NamedTuple):
    """Durations of the tails after a part's downlink and uplink (None while running), and their total energy."""

    lasts_s: tuple[float | None, float | None]
    energy_j: float


@dataclass
class _Waiting:
    """A finished round with its parts, the tails known so far, and the function that writes its rows."""

    parts: Sequence[Part]
    write: Callable[[list[PartTails]], None]
    known: list[PartTails] = field(default_factory=list)
    running: list[int] = field(default_factory=list)  # parts with a running tail


class OpenTails:
    """The finished rounds of a run that wait for tails to end before their rows are written."""

    def __init__(self, tails: Tails) -> None:
        self._tails = tails
        self._waiting: deque[_Waiting] = deque()

    def add(
        self, parts: Sequence[Part], now_s: float, write: Callable[[list[PartTails]], None]
    ) -> list[PartTails]:
        """Add a finished round; return its tails so far.

        Args:
            write: function to call once the tails of all parts have ended and the rows of earlier rounds are written.
        """
        waiting = _Waiting(parts, write)
        for position, part in enumerate(parts):
            known = self._known(part, PartTails((None, None), 0.0), now_s)
            waiting.known.append(known)
            if None in known.lasts_s:
                waiting.running.append(position)
        until_now = list(waiting.known)
        for position in waiting.running:
            until_now[position] = self._until(parts[position], until_now[position], now_s)
        self._waiting.append(waiting)
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
            first.write(first.known)

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

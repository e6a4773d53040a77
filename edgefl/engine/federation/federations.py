"""The federations of a run: which of them work, and when those that wait for a device are given up."""

from collections.abc import Callable
from typing import NamedTuple

import simpy


class Stop(NamedTuple):
    """A federation that stopped before its last session was over: its cell had no device since this time.

    cell: or another label that tells its server from the others of the cell.
    """

    cell: int | str
    session: int
    since_s: float


class Federations:
    """Keep which federations work, wait for a device, or are done; each cell has one, or several by name.

    A federation without a device waits for one as long as any other works: an empty cell stops only itself.
    Once none works, those that wait do so for patience_s more, all together; a device that comes in time sets
    its federation to work again, and the others wait on.

    Attributes:
        done: labels, as of `Seat`, of the federations that have run all their sessions.
        stopped: federations that were given up.
        working: labels of those that work.
        on_rest: called whenever one does so no longer.
    """

    def __init__(self, env: simpy.Environment, patience_s: float) -> None:
        self.env = env
        self.patience_s = patience_s
        self.done: set[int | str] = set()
        self.stopped: list[Stop] = []
        self.working: set[int | str] = set()
        self.on_rest: Callable[[], None] = lambda: None
        self._changes = 0  # a timer set before the last one is void
        self._given_up = env.event()

    def works(self, label: int | str) -> None:
        """Note that a federation begins, or has a device again."""
        self.working.add(label)
        self._changes += 1

    def finishes(self, label: int | str) -> None:
        """Note that a federation has run all its sessions."""
        self.done.add(label)
        self._rests(label)

    def waits(self, label: int | str) -> simpy.Event:
        """Note that a federation has no device; the event returned succeeds when it is given up."""
        self._rests(label)
        return self._given_up

    def _rests(self, label: int | str) -> None:
        self.working.discard(label)
        self._changes += 1
        self.on_rest()
        if self.working:
            return
        change = self._changes

        def over(_: simpy.Event) -> None:
            if change == self._changes:
                given_up, self._given_up = self._given_up, self.env.event()
                given_up.succeed()

        self.env.timeout(self.patience_s).callbacks.append(over)

    def of(self, label: int | str) -> "Federation":
        """Return one of them as its server sees it."""
        return Federation(self, label)

    def notes(self) -> list[str]:
        """Say for run.json which federations were given up."""
        return [
            f"cell {stop.cell} stopped in session {stop.session}: it had no device since {stop.since_s:.3f} s,"
            f" nor within rounds.max_wait_s {self.patience_s:g} s after all others had ended"
            for stop in self.stopped
        ]


class Federation(NamedTuple):
    """One of the federations of a run, as its server sees it.

    label: its cell, and its name where several share it.
    """

    all: Federations
    label: int | str

    def works(self) -> None:
        """Note that it begins, or has a device again."""
        self.all.works(self.label)

    def finishes(self) -> None:
        """Note that it has run all its sessions."""
        self.all.finishes(self.label)

    def waits(self) -> simpy.Event:
        """Note that it has no device; the event returned succeeds when it is given up."""
        return self.all.waits(self.label)

    def stops(self, session: int, since_s: float) -> None:
        """Note that it is given up, having had no device since then."""
        self.all.stopped.append(Stop(self.label, session, since_s))

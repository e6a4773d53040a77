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
    """Keep which federations work, wait for a device, or are done.

    A federation without a device waits for one as long as any other works: an empty cell stops only itself.
    Once none works, those that wait do so for patience_s more, all together; a device that comes in time sets
    its federation to work again, and the others wait on.

    Attributes:
        done: cells whose federations have run all their sessions.
        stopped: federations that were given up.
        working: cells whose federations work.
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

    def works(self, cell: int | str) -> None:
        """Note that a cell's federation begins, or has a device again."""
        self.working.add(cell)
        self._changes += 1

    def finishes(self, cell: int | str) -> None:
        """Note that a cell's federation has run all its sessions."""
        self.done.add(cell)
        self._rests(cell)

    def waits(self, cell: int | str) -> simpy.Event:
        """Note that a cell's federation has no device; the event returned succeeds when it is given up."""
        self._rests(cell)
        return self._given_up

    def _rests(self, cell: int | str) -> None:
        self.working.discard(cell)
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

    def notes(self) -> list[str]:
        """Say for run.json which federations were given up."""
        return [
            f"cell {stop.cell} stopped in session {stop.session}: it had no device since {stop.since_s:.3f} s,"
            f" nor within rounds.max_wait_s {self.patience_s:g} s after all others had ended"
            for stop in self.stopped
        ]

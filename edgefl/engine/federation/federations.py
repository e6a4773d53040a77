"""Name the servers of a run, track which of their federations work, and decide when to stop waiting for a device."""

import math
from collections.abc import Callable
from typing import NamedTuple

import simpy

from edgefl.engine.devices.power import Power
from edgefl.errors import EdgeflError

MOST_KEYS = 3  # maximum number of keys of batteries in an error


class Seat(NamedTuple):
    """A server's cell and federation; the federation's name is empty if the run has only one federation."""

    cell: int
    federation: str = ""

    @property
    def label(self) -> int | str:
        """The number of the server's cell, with the federation's name if there are several federations."""
        return f"{self.cell} of federation {self.federation}" if self.federation else self.cell

    @property
    def scope(self) -> tuple[int | str, ...]:
        """Suffix of the names of the server's random streams; without a number for cell 0, as without a layout."""
        return (*((self.cell,) if self.cell else ()), *((self.federation,) if self.federation else ()))

    def named(self, phase: str) -> str:
        """Return a phase's name for the keys of random draws; it differs between cells and federations."""
        phase = f"{phase} in cell {self.cell}" if self.cell else phase
        return f"{phase} of {self.federation}" if self.federation else phase

    @classmethod
    def of(cls, key: "int | Seat") -> "Seat":
        """Convert a cell number to the seat of the cell's only server; return a Seat unchanged."""
        return key if isinstance(key, Seat) else cls(key)


class Stop(NamedTuple):
    """A federation that was given up during a session because its cell has had no device since `since_s`.

    cell: number of the cell, or another label that distinguishes the server from others in the cell.
    """

    cell: int | str
    session: int
    since_s: float


class Federations:
    """Track which federations work, wait or are done; a cell has one federation, or several named federations.

    A federation without a device waits for a device as long as any other federation is active, so an empty cell holds
    up only its own federation. Once no federation is active, all federations wait patience_s longer. If a device
    comes in time, its federation resumes, and the others go on waiting.

    Args:
        ends_s: time after which no device is ever in the world, since all traces have ended; inf if unknown.
        reach: what gives more devices a link, as `edgefl.engine.air.coverage.remedies` says it.

    Attributes:
        done: labels, as in `Seat`, of the federations that have run all their sessions.
        stopped: federations that have been given up.
        working: labels of the federations that currently work.
        on_rest: called whenever a federation stops working.
    """

    def __init__(
        self, env: simpy.Environment, patience_s: float, ends_s: float = math.inf, reach: str = ""
    ) -> None:
        self.env, self._reach = env, reach
        self.patience_s, self._ends_s = patience_s, ends_s
        self.done: set[int | str] = set()
        self.stopped: list[Stop] = []
        self.working: set[int | str] = set()
        self.on_rest: Callable[[], None] = lambda: None
        self._changes = 0  # number of changes; only a timer set after the latest change is valid
        self._given_up = env.event()

    def works(self, label: int | str) -> None:
        """Record that a federation starts, or resumes because it has a device again."""
        self.working.add(label)
        self._changes += 1

    def finishes(self, label: int | str) -> None:
        """Record that a federation has run all its sessions."""
        self.done.add(label)
        self._rests(label)

    def waits(self, label: int | str) -> simpy.Event:
        """Record that a federation has no device; return an event that succeeds when the federation is given up."""
        self._rests(label)
        return self._given_up

    def stops(self, label: int | str, session: int, since_s: float) -> None:
        """Record that a federation, without a device since since_s, is given up."""
        self.stopped.append(Stop(label, session, since_s))

    def deserted(self, label: int | str, since_s: float, out: int, power: Power) -> EdgeflError:
        """Return the error for a federation without a device since since_s, when no other federation can go on.

        Args:
            out: number of devices that are there now, but without a link.
            power: switches and batteries of all devices.
        """
        linked = " with a link" * bool(out)
        devices, empty = len(power.empty), int(power.empty.sum())
        off = devices - int(power.running.sum()) - empty
        counts = {"switched off": off, "with an empty battery": empty}
        stopped = " and ".join(f"{count} {how}" for how, count in counts.items() if count)
        where = (
            f"cell {label} has had no device{linked} for {self.env.now - since_s:g} s, since simulated time"
        )
        where += f" {since_s:.3f} s{f' (of {devices} devices, {stopped})' * bool(stopped)}"
        if self.env.now > self._ends_s and not (empty == devices and since_s < self._ends_s):
            return EdgeflError(
                f"cell {label} has had no device{linked} since simulated time {since_s:.3f} s; the trace ended at"
                f" {self._ends_s:.6g} s, and no device comes after that: let the sessions end sooner (fewer"
                f" rounds), set a duration_s of at most {self._ends_s:.6g}, or use a longer trace",
                ("devices", "mobility"),
            )
        keys = power.empty_by
        batteries = " and ".join(".".join(key) for key in keys[:MOST_KEYS])
        if empty == devices:
            return EdgeflError(
                f"{where}, and no federation can go on; raise {batteries}, or recharge_w beside it, or set a"
                " duration_s",
                keys[0],
            )
        if out:
            there = f"{out} device{'s are' if out > 1 else ' is'} there, out of coverage"
            return EdgeflError(
                f"{where}, and no federation can go on; {there}: {self._reach} reach more devices",
                ("rounds", "max_wait_s"),
            )
        charge = f"{batteries}, recharge_w beside it, " * bool(empty)
        return EdgeflError(
            f"{where}, and no federation can go on; raise {charge}devices.count, cell.radius_m or"
            " rounds.max_wait_s, set a duration_s, or use layout.federations to give servers only to cells that"
            " devices visit",
            ("rounds", "max_wait_s"),
        )

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

    def notes(self, *, still: bool) -> list[str]:
        """Return a note on the cells given up; if `still`, leave out cells empty at 0 s, which have another note."""
        cells = [str(stop.cell) for stop in self.stopped if stop.since_s or not still]
        note = (
            f"cell{'s' * (len(cells) > 1)} {', '.join(cells)} stopped: no device came within rounds.max_wait_s"
            f" {self.patience_s:g} s after all others had ended; a lower max_wait_s shortens this wait"
        )
        return [note] if cells else []

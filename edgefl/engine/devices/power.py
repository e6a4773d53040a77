"""Track which devices are running, that is, switched on and charged."""

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import simpy

from edgefl.channel.tdd import OnTime
from edgefl.channel.units import FloatArray
from edgefl.engine.devices.battery import Battery, Charge
from edgefl.engine.devices.tails import Tails
from edgefl.engine.parts import Cause
from edgefl.engine.power_models import Draws
from edgefl.engine.records import EventName


@dataclass(frozen=True)
class PowerListener:
    """Callbacks for any event of a device's switch or battery, for a device's start, and for its stop."""

    happened: Callable[[EventName, int], None]
    starts: Callable[[int], None]
    stops: Callable[[int, Cause], None]


class Power:
    """Switches and batteries of all devices.

    Args:
        devices: number of devices.
        listener: callbacks for events of switches and batteries, and for devices that start or stop running.
        switches: ascending times at which each device is switched on, off, on, ...; empty if all are always on.
        batteries: battery of each device, None for a device on mains; empty if all devices are on mains.
        idle_power_w: [devices] power of a device that is switched on and idle, or one value for all.
        draws: power draws of each device's radio; empty if no radio has a tail.
    """

    def __init__(
        self,
        env: simpy.Environment,
        devices: int,
        listener: PowerListener,
        *,
        switches: Sequence[Iterator[float]] = (),
        batteries: Sequence[Battery | None] = (),
        idle_power_w: float | FloatArray = 0.0,
        draws: Sequence[Draws] = (),
    ) -> None:
        self.env = env
        self._switches = switches
        self._batteries = batteries
        self._idle_power_w: list[float] = np.broadcast_to(np.asarray(idle_power_w, float), devices).tolist()
        self._listener = listener
        self._sooner = [env.event() for _ in batteries]  # event: a battery will be empty sooner than expected
        self._looks_s = np.full(len(batteries), np.inf)  # time of each battery's next check
        self.tails = Tails([radio.tail for radio in draws] if draws else [()] * devices)
        self._powers_w: list[float | None] = [None] * devices  # current power without the tail; None if idle
        self._in_use = np.zeros(devices, dtype=bool)  # radios with a transfer
        self._changes_s = np.full(devices, np.nan)  # time of each tail's next scheduled change
        self._on = np.ones(devices, dtype=bool)
        self._charged = np.ones(devices, dtype=bool)
        self._running_since_s = np.zeros(devices)
        self._running_s = np.zeros(devices)
        self._first_switch_s = np.array([next(times, np.inf) for times in switches])
        if len(switches):
            self._on = self._first_switch_s <= env.now
        for device, battery in enumerate(batteries):
            if battery is not None:
                battery.drain(env.now, self._idle_power_w[device] if self._on[device] else 0.0)

    @property
    def constant(self) -> bool:
        """Whether all devices run all the time."""
        return not (self._switches or self._batteries)

    @property
    def running(self) -> np.ndarray:
        """Whether each device is currently switched on and charged, [devices]."""
        return self._on & self._charged

    @property
    def empty(self) -> np.ndarray:
        """Whether each device's battery is currently empty, [devices]."""
        return ~self._charged

    @property
    def empty_by(self) -> list[tuple[str, ...]]:
        """The scenario's keys that set the capacities of the batteries which are currently empty."""
        return list(
            dict.fromkeys(
                battery.place
                for battery, charged in zip(self._batteries, self._charged, strict=False)
                if battery is not None and not charged
            )
        )

    def running_s(self) -> np.ndarray:
        """Return the total running time [devices] until now in s."""
        return self._running_s + np.where(self.running, self.env.now - self._running_since_s, 0.0)

    def charges(self) -> list[Charge | None]:
        """Return each battery's current charge, None for a device on mains; empty if all devices are on mains."""
        return [battery.charge(self.env.now) if battery else None for battery in self._batteries]

    def draw(self, device: int, power_w: float | None) -> None:
        """Set the power, without the tail, that a device draws from now on; it draws 0 while it is not running.

        Args:
            power_w: the power, or None for an idle device, which draws its idle power once the tail has ended.
        """
        battery = self._batteries[device] if self._batteries else None
        if battery is None:
            return
        now_s = self.env.now
        self._powers_w[device] = power_w
        running = self._on[device] and self._charged[device]
        beside_w, until_s = self.tails.now(device, now_s) if running else (0.0, None)
        if power_w is None:
            power_w = 0.0 if beside_w else self._idle_power_w[device]
        battery.drain(now_s, power_w if running else 0.0, beside_w=beside_w)
        if until_s is not None and until_s != self._changes_s[device]:
            self._look_again(device, until_s)
        self._look(device, battery)

    def radio_on(self, device: int, power_w: float, wait_w: float, on: OnTime) -> None:
        """Begin a transfer now; the radio draws power_w in the transfer's slots, and wait_w in between."""
        now_s = self.env.now
        self._in_use[device] = True
        self.tails.ends(device, now_s)
        battery = self._batteries[device] if self._batteries else None
        if battery is None:
            return
        running = self._on[device] and self._charged[device]
        # if wait_w is 0, the difference is exactly power_w
        power_w, wait_w = (power_w - wait_w, wait_w) if running else (0.0, 0.0)
        battery.drain(now_s, power_w, on, beside_w=wait_w)
        self._look(device, battery)

    def radio_off(self, device: int, end_s: float, bits_j: float, *, tail: bool = True) -> float:
        """End a transfer; draw bits_j in addition to the energy drawn over time; return how much of bits_j was drawn.

        An empty battery supplies at most its charge. Left out: the times at which the transfer's bits draw energy.

        Args:
            tail: whether a tail follows the transfer.
        """
        if not self._in_use[device]:
            return 0.0  # the transfer was cut off before its first slot
        self._in_use[device] = False
        battery = self._batteries[device] if self._batteries else None
        if battery is not None and bits_j:
            bits_j = battery.spend(self.env.now, bits_j)
            self._look(device, battery)
        if tail and self.running[device]:
            self.tails.begins(device, end_s)
        return bits_j

    def tails_of_work_j(self, busy: Mapping[int, float]) -> float:
        """Return the energy of the tails of work that is under way, if it ended now.

        A transfer under way would have a full tail, and a running tail after a transfer of the work would go on. A
        device that still waits for its first transfer has no such tail: its earlier tail counts with earlier work.

        Args:
            busy: device -> start of its work in s.
        """
        if not busy:
            return 0.0
        full = (one for one, since_s in busy.items() if self._in_use[one] or self.tails.began(one, since_s))
        return math.fsum(self.tails.energy_j(one, math.inf) for one in full) + self.tails.ended_j(busy)

    def spend_last_tails(self) -> None:
        """At the end of a run, drain batteries by the remaining energy of tails; an empty battery ends its tail."""
        for device, battery in enumerate(self._batteries):
            if battery is not None and (rest_j := self.tails.rest_j(device, self.env.now)):
                paid_j = battery.spend(self.env.now, rest_j)
                if paid_j < rest_j:
                    self.tails.cut(device, rest_j - paid_j)
                    self._running_s[device] = self.running_s()[device]
                    self._charged[device] = False
                    self._listener.happened(EventName.BATTERY_EMPTY, device)

    def idle_w(self, device: int) -> float:
        """Return the power of an idle device that is switched on."""
        return self._idle_power_w[device]

    def _look_again(self, device: int, time_s: float) -> None:
        """Schedule an update of the power at a tail's next change; skip it if the radio is in use by then."""

        def again(_: simpy.Event) -> None:
            if not self._in_use[device]:
                self.draw(device, self._powers_w[device])

        self._changes_s[device] = time_s
        self.env.timeout(max(0.0, time_s - self.env.now)).callbacks.append(again)

    def _look(self, device: int, battery: Battery) -> None:
        """Wake the device's process if its battery will be empty earlier than expected."""
        if battery.empty_s() < self._looks_s[device]:
            sooner, self._sooner[device] = self._sooner[device], self.env.event()
            sooner.succeed()

    def rest(self, device: int) -> None:
        """Make a device idle from now on; it draws its idle power once its radio's tail has ended."""
        self.draw(device, None)

    def processes(self) -> Iterator[Generator[simpy.Event, None, None]]:
        """Yield the generators that switch devices and run batteries down; the caller starts them as processes."""
        for device, times in enumerate(self._switches):
            yield self._switch(device, times)
        for device, battery in enumerate(self._batteries):
            if battery is not None:
                yield self._run_down(device, battery)

    def _switch(self, device: int, times: Iterator[float]) -> Generator[simpy.Event, None, None]:
        first_s = float(self._first_switch_s[device])
        if first_s > self.env.now:
            if first_s == np.inf:
                return
            times = itertools.chain([first_s], times)
        for time_s in times:
            yield self.env.timeout(max(0.0, time_s - self.env.now))
            self._flip(device, self._on, not self._on[device])

    def _run_down(self, device: int, battery: Battery) -> Generator[simpy.Event, None, None]:
        while True:
            while (empty_s := battery.empty_s()) > self.env.now:
                self._looks_s[device] = empty_s
                sooner = self._sooner[device]
                if empty_s == np.inf:
                    yield sooner
                else:
                    yield sooner | self.env.timeout(empty_s - self.env.now)
            self._looks_s[device] = -np.inf
            self._flip(device, self._charged, False)
            if battery.back_s() == np.inf:
                return
            yield self.env.timeout(battery.back_s() - self.env.now)
            self._flip(device, self._charged, True)

    def _flip(self, device: int, state: np.ndarray, value: bool) -> None:
        """Set whether a device is switched on or is charged; `state` is the array to change."""
        was_running = bool(self.running[device])
        state[device] = value
        running = bool(self.running[device])
        if not running:
            self.tails.ends(device, self.env.now)
            self.tails.disconnects(device)
        self.rest(device)
        switched = state is self._on
        self._listener.happened(_NAMES[switched, value], device)
        if running and not was_running:
            self._running_since_s[device] = self.env.now
            self._listener.starts(device)
        elif was_running and not running:
            self._running_s[device] += self.env.now - self._running_since_s[device]
            self._listener.stops(device, Cause.OFF if switched else Cause.EMPTY)


# (True for a switch, False for a battery; new state) -> event
_NAMES = {
    (True, True): EventName.SWITCHED_ON,
    (True, False): EventName.SWITCHED_OFF,
    (False, True): EventName.BATTERY_BACK,
    (False, False): EventName.BATTERY_EMPTY,
}

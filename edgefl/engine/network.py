"""Which cell serves which device: movement, switches, batteries, cell edges and handovers."""

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence

import numpy as np
import simpy

from edgefl.engine.battery import Battery
from edgefl.engine.handover import EventA3
from edgefl.engine.parts import Cause
from edgefl.engine.records import Event, EventName, Recorder
from edgefl.engine.settings import HandoverSettings
from edgefl.mobility import Movement

NOWHERE = -1


class Network:
    """The devices of a run and the cell of each.

    A device is present in a cell when that cell serves it, it is switched on, its battery is not empty, and
    an interruption by handover is over. With one cell the cell's edge decides; with several, the strongest
    site at first and event A3 from then on.

    Args:
        movement: where the devices are.
        radius_m: edge of the single cell; None: several cells, and power_db and handover decide.
        power_db: [devices, 2] positions -> [devices, cells] measured power in dB.
        tick_s: time between two looks at the devices.
        switches: per device, ascending times of switching on and off, beginning with on; empty: all on.
        batteries: per device; empty: all on mains.
        idle_power_w: what a device draws that is switched on and does nothing.
    """

    def __init__(
        self,
        env: simpy.Environment,
        *,
        movement: Movement,
        cells: int,
        tick_s: float,
        handover: HandoverSettings,
        recorder: Recorder,
        radius_m: float | None = None,
        power_db: Callable[[np.ndarray], np.ndarray] | None = None,
        switches: Sequence[Iterator[float]] = (),
        batteries: Sequence[Battery] = (),
        idle_power_w: float = 0.0,
    ) -> None:
        self.env = env
        self.cells = cells
        self.batteries = batteries
        self._movement = movement
        self._radius_m = radius_m
        self._power_db = power_db
        self._tick_s = tick_s
        self._handover = handover
        self._recorder = recorder
        self._switches = switches
        self._idle_power_w = idle_power_w

        positions_m = movement.positions_m(env.now)
        count = len(positions_m)
        self._serving = np.full(count, NOWHERE)
        self._attached_s = np.zeros(count)  # a cell counts from then on: interruptions end here
        self._on = np.ones(count, dtype=bool)
        self._charged = np.ones(count, dtype=bool)
        self._going: dict[int, int] = {}  # busy devices that leave after their part, and where to
        self._a3 = EventA3(handover, count, cells)
        self._arrivals = [env.event() for _ in range(cells)]
        self._drains = [env.event() for _ in batteries]
        self._parts: dict[int, simpy.Process] = {}  # of the devices that take part in a round just now
        self._last_cell = np.full(count, NOWHERE)  # before the serving one, and when it was left
        self._left_s = np.full(count, -np.inf)
        self._on_since_s = np.zeros(count)
        self._on_time_s = np.zeros(count)
        self._first_switch_s = np.zeros(count)
        for device, times in enumerate(switches):
            self._first_switch_s[device] = next(times, np.inf)
            self._on[device] = self._first_switch_s[device] <= env.now
        for device, battery in enumerate(batteries):
            battery.drain(env.now, idle_power_w if self._on[device] else 0.0)
        here = self._here(positions_m)
        self._serving[here] = self._strongest(positions_m)[here]

    def present(self, cell: int) -> list[int]:
        """Sorted ids of the devices that can take part in a round of this cell."""
        present = (self._serving == cell) & self._on & self._charged & (self._attached_s <= self.env.now)
        for device in self._going:
            present[device] = False
        return np.flatnonzero(present).tolist()

    def serving(self, devices: np.ndarray) -> np.ndarray:
        """[devices] cell that serves each now; -1 where it has none or is interrupted."""
        connected = self._attached_s[devices] <= self.env.now
        return np.where(connected, self._serving[devices], NOWHERE)

    def positions_m(self) -> np.ndarray:
        """[devices, 2] positions now; nan: nowhere."""
        return self._movement.positions_m(self.env.now)

    def arrival(self, cell: int) -> simpy.Event:
        """Succeeds when the next device becomes present in the cell."""
        return self._arrivals[cell]

    @property
    def still(self) -> bool:
        """Whether nothing ever changes: nobody moves, is switched or runs on a battery."""
        return not (self._movement.moves or self._switches or self.batteries)

    def on_time_s(self) -> np.ndarray:
        """[devices] time switched on with a charged battery until now."""
        running = self._on & self._charged
        return self._on_time_s + np.where(running, self.env.now - self._on_since_s, 0.0)

    # -- processes ------------------------------------------------------------------------------------

    def processes(self) -> Iterator[Generator[simpy.Event, None, None]]:
        """All generators that the composition root has to start."""
        if self._movement.moves:
            yield self._watch()
        for device, times in enumerate(self._switches):
            yield self._switch(device, times)
        for device in range(len(self.batteries)):
            yield self._run_down(device)

    def _watch(self) -> Generator[simpy.Event, None, None]:
        """Look at all devices every tick: cell edges, or measurements and handovers."""
        for tick in itertools.count(1):
            # an absolute grid, so that ticks do not drift with rounding
            yield self.env.timeout(max(0.0, tick * self._tick_s - self.env.now))
            positions_m = self._movement.positions_m(self.env.now)
            here = self._here(positions_m)
            gone = np.flatnonzero(~here & (self._serving >= 0))
            gone = gone[[device not in self._going for device in gone.tolist()]] if self._going else gone
            if len(gone):
                self._leave(gone, np.full(len(gone), NOWHERE))
            for device in np.flatnonzero(here & (self._serving < 0)).tolist():
                self._attach(device, int(self._strongest(positions_m[[device]])[0]))
            for device in [d for d in self._going if here[d] and self._going[d] == NOWHERE]:
                del self._going[device]  # back in the cell before its part was over
            if self._power_db is not None:
                yield from self._measure(self._power_db(positions_m))

    def _measure(self, power_db: np.ndarray) -> Generator[simpy.Event, None, None]:
        connected = np.where(self._attached_s <= self.env.now, self._serving, NOWHERE)
        for decision in self._a3.measure(self.env.now, power_db, connected):
            yield self.env.timeout(max(0.0, decision.time_s - self.env.now))
            still = self._serving[decision.devices] == connected[decision.devices]
            self._leave(decision.devices[still], decision.targets[still])

    def _switch(self, device: int, times: Iterator[float]) -> Generator[simpy.Event, None, None]:
        first_s = float(self._first_switch_s[device])
        if first_s > self.env.now:
            if first_s == np.inf:
                return
            times = itertools.chain([first_s], times)
        for time_s in times:
            yield self.env.timeout(max(0.0, time_s - self.env.now))
            self._set_power(
                device, self._on, not self._on[device], EventName.SWITCHED_ON, EventName.SWITCHED_OFF
            )

    def _run_down(self, device: int) -> Generator[simpy.Event, None, None]:
        battery = self.batteries[device]
        while True:
            empty_s, changed = battery.empty_s(), self._drains[device]
            if empty_s == np.inf:
                yield changed
                continue
            yield changed | self.env.timeout(max(0.0, empty_s - self.env.now))
            if changed.triggered:
                continue
            self._set_power(device, self._charged, False, EventName.BATTERY_BACK, EventName.BATTERY_EMPTY)
            if battery.back_s() == np.inf:
                return
            yield self.env.timeout(battery.back_s() - self.env.now)
            self._set_power(device, self._charged, True, EventName.BATTERY_BACK, EventName.BATTERY_EMPTY)

    # -- what happens to a device ---------------------------------------------------------------------

    def draw(self, device: int, power_w: float) -> None:
        """The device draws this power from now on; nothing while it is off or empty."""
        if self.batteries:
            running = self._on[device] and self._charged[device]
            self.batteries[device].drain(self.env.now, power_w if running else 0.0)
            changed, self._drains[device] = self._drains[device], self.env.event()
            changed.succeed()

    def part_begins(self, device: int, process: simpy.Process) -> None:
        """A device takes part in a round from now on; its process is interrupted if it cannot go on."""
        self._parts[device] = process

    def part_ended(self, device: int) -> None:
        """A device's part of a round is over: if it was only waiting for that, it goes now."""
        del self._parts[device]
        self.draw(device, self._idle_power_w)
        if device in self._going:
            self._move(np.array([device]), np.array([self._going.pop(device)]))

    def _cut_off(self, device: int, cause: Cause) -> None:
        process = self._parts.get(device)
        if process is not None and process.is_alive:
            process.interrupt(cause)

    def _leave(self, devices: np.ndarray, targets: np.ndarray) -> None:
        """Devices [n] leave their cells for others [n] or for none; `finish` lets them end their part first."""
        caught = np.array([device in self._parts for device in devices.tolist()], dtype=bool)
        for device, target in zip(devices[caught].tolist(), targets[caught].tolist(), strict=True):
            if self._handover.policy == "finish":
                self._going[device] = target
            else:
                self._cut_off(device, Cause.LEFT)
        if caught.any() and self._handover.policy == "finish":
            devices, targets = devices[~caught], targets[~caught]
        self._move(devices, targets)

    def _move(self, devices: np.ndarray, targets: np.ndarray) -> None:
        sources = self._serving[devices]
        self._a3.forget(devices)
        self._serving[devices] = targets
        for device, source in zip(devices[targets < 0].tolist(), sources[targets < 0].tolist(), strict=True):
            self._event(EventName.DEPARTURE, device, source)
        changes = targets >= 0
        if changes.any():
            self._hand_over(devices[changes], sources[changes], targets[changes])

    def _hand_over(self, devices: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> None:
        now_s, rules = self.env.now, self._handover
        stays_s = now_s - self._attached_s[devices]
        quick = now_s - self._left_s[devices] < rules.min_time_of_stay_s
        ping_pong = quick & (targets == self._last_cell[devices])
        self._last_cell[devices], self._left_s[devices] = sources, now_s
        self._attached_s[devices] = now_s + rules.handover_latency_s
        # handovers are most of all events: a row object for each would cost more than to decide it
        self._recorder.write_columns(
            Event,
            time_s=now_s,
            event=EventName.HANDOVER,
            device=devices,
            session=None,
            cell=targets,
            from_cell=sources,
            stay_s=stays_s,
            interruption_s=rules.handover_latency_s,
            detail=np.where(ping_pong, "ping_pong", ""),
        )
        for cell in set(targets.tolist()):
            self._announce(cell, rules.handover_latency_s)

    def _attach(self, device: int, cell: int) -> None:
        self._serving[device] = cell
        self._attached_s[device] = self.env.now
        self._event(EventName.ARRIVAL, device, cell)
        self._announce(cell)

    def _set_power(
        self, device: int, state: np.ndarray, value: bool, name_on: EventName, name_off: EventName
    ) -> None:
        was_running = bool(self._on[device] and self._charged[device])
        state[device] = value
        running = bool(self._on[device] and self._charged[device])
        cell = int(self._serving[device])
        self.draw(device, self._idle_power_w)
        self._event(name_on if value else name_off, device, cell)
        if running and not was_running:
            self._on_since_s[device] = self.env.now
            if cell != NOWHERE:
                self._announce(cell)
        elif was_running and not running:
            self._on_time_s[device] += self.env.now - self._on_since_s[device]
            self._cut_off(device, Cause.OFF if state is self._on else Cause.EMPTY)

    def _event(self, name: EventName, device: int, cell: int) -> None:
        at = None if cell == NOWHERE else cell
        self._recorder.write(Event(self.env.now, name, device, None, at))

    def _announce(self, cell: int, delay_s: float = 0.0) -> None:
        """Wake whoever waits for a device in this cell."""
        if not self._arrivals[cell].callbacks:
            return
        waiting, self._arrivals[cell] = self._arrivals[cell], self.env.event()
        if delay_s:
            # an event triggers another one by being called back with itself
            self.env.timeout(delay_s).callbacks.append(waiting.trigger)
        else:
            waiting.succeed()

    def _here(self, positions_m: np.ndarray) -> np.ndarray:
        """[devices] somewhere at all, and within the cell if there is only one."""
        if self._radius_m is None:
            return np.isfinite(positions_m[:, 0])
        # a comparison with nan is false: a device that is nowhere is not in the cell
        return np.hypot(positions_m[:, 0], positions_m[:, 1]) <= self._radius_m

    def _strongest(self, positions_m: np.ndarray) -> np.ndarray:
        if self._power_db is None:
            return np.zeros(len(positions_m), dtype=int)
        return self._power_db(np.nan_to_num(positions_m)).argmax(axis=1)

"""Which cell serves which device: movement, switches, batteries, cell edges and handovers."""

import itertools
import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence

import numpy as np
import simpy

from channel.geometry import within
from edgefl.engine.attachment import NOWHERE, Attachments
from edgefl.engine.battery import Battery
from edgefl.engine.handover import EventA3, Layer3Filter
from edgefl.engine.parts import Cause
from edgefl.engine.power import Power, PowerListener
from edgefl.engine.power_models import Draws
from edgefl.engine.records import Event, EventName, Recorder
from edgefl.engine.settings import HandoverSettings
from edgefl.mobility import Movement


class Network:
    """The devices of a run and the cell of each.

    A device is present in a cell when that cell serves it, it is switched on, its battery is not empty, and
    an interruption by handover is over.

    With one cell the cell's edge decides which devices are in it, whether they are on or off. With several, a
    device selects the strongest site when it comes or is switched on, without delay, and event A3 decides from
    then on; one that is off or empty has no cell, measures nothing and hands over to nobody.

    Events: `arrival` and `departure` take turns for each device, and say that it entered or left the simulated
    area, on or off. `switched_on` and `battery_back` name the cell that it has selected; `switched_off`,
    `battery_empty` and `departure` name the one that it had. No cell there: none serves it.

    Args:
        movement: where the devices are.
        radius_m: distance from the origin beyond which a device is absent; None: none is.
        power_db: [devices, 2] positions -> [devices, cells] measured power in dB, a function of the place: who
            stands still is not measured again; None: there is one cell.
        tick_s: time between two looks at the devices.
        switches: per device, ascending times of switching on and off, beginning with on; empty: all on.
        batteries: per device, None: on mains; empty: all on mains.
        idle_power_w: [devices] what each draws that is switched on and does nothing; or one for all.
        draws: of each device's radio; empty: none has a tail.
        power_db_of: as power_db, of some devices: positions, ids -> [n, cells]; None: all devices measure alike.
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
        batteries: Sequence[Battery | None] = (),
        idle_power_w: float | np.ndarray = 0.0,
        power_db_of: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
        draws: Sequence[Draws] = (),
    ) -> None:
        self.env = env
        self._movement = movement
        self._radius_m = radius_m
        self._power_db = power_db
        self._power_db_of = power_db_of
        self._tick_s = tick_s
        self._handover = handover
        self._recorder = recorder
        self._places_s = -math.inf  # when the devices were at _places_m
        self._places_m = np.empty((0, 2))
        positions_m = self.positions_m()
        count = len(positions_m)
        # of the last measurement: positions, and the power there
        self._measured_m = np.full((count, 2), np.inf)
        self._last_db = np.empty((cells, count), np.float32).T
        self._served = Attachments(count)
        self._parts: dict[int, simpy.Process] = {}  # of the devices that take part in a round just now
        self._a3 = EventA3(handover, count, cells)
        self._filter = Layer3Filter(handover, count, cells)
        self._arrivals = [env.event() for _ in range(cells)]
        # when devices that have handed over will be connected, for those who begin to wait until then
        self._coming_s = [deque[float]() for _ in range(cells)]
        self.power = Power(
            env,
            count,
            switches=switches,
            batteries=batteries,
            idle_power_w=idle_power_w,
            listener=PowerListener(self._power_event, self._announce_device, self._stop),
            draws=draws,
        )
        self._seen = self._here(positions_m)  # at the last look
        self._inside = self._seen.copy()  # have arrived and not departed: who works may finish outside
        served = self._seen & self._may_be_served()
        self._served.cell[served] = self._strongest(positions_m)[served]

    def present(self, cell: int) -> list[int]:
        """Return the sorted ids of the devices that can take part in a round of this cell."""
        present = (self._served.connected(self.env.now) == cell) & self.power.running & self._seen
        if self._movement.moves:
            # one that is absent since the last look at all devices
            present &= np.isfinite(self.positions_m()[:, 0])
        return np.flatnonzero(present).tolist()

    def serving(self, devices: np.ndarray) -> np.ndarray:
        """Return [devices] the cell that serves each device now; -1 without a cell or during a handover."""
        return self._served.connected(self.env.now)[devices]

    def positions_m(self) -> np.ndarray:
        """Return [devices, 2] the positions now, read-only; nan: a device that is outside the simulated area."""
        if self._places_s != self.env.now:
            self._places_m = self._movement.positions_m(self.env.now).copy()  # a model may go on with its own
            self._places_m.flags.writeable = False
            self._places_s = self.env.now
        return self._places_m

    def arrival(self, cell: int) -> simpy.Event:
        """Return an event that succeeds when the next device becomes present in the cell."""
        coming = self._coming_s[cell]
        while coming:
            self._announce_at(cell, coming.popleft())
        return self._arrivals[cell]

    @property
    def still(self) -> bool:
        """Whether nothing ever changes: nobody moves, is switched or runs on a battery."""
        return not self._movement.moves and self.power.constant

    # -- processes ------------------------------------------------------------------------------------

    def processes(self) -> Iterator[Generator[simpy.Event, None, None]]:
        """Yield all generators that the composition root must start."""
        if self._movement.moves:
            yield self._watch()
        yield from self.power.processes()

    def _watch(self) -> Generator[simpy.Event, None, None]:
        """Check all devices every tick: for the cell's edge, or by measurements for handovers."""
        for tick in itertools.count(1):
            # an absolute grid, so that ticks do not drift with rounding
            yield self.env.timeout(max(0.0, tick * self._tick_s - self.env.now))
            positions_m = self.positions_m()
            here = self._seen = self._here(positions_m)
            gone = np.flatnonzero(~here & self._inside)
            if len(gone):
                self._leave(gone, np.full(len(gone), NOWHERE))
            for device in np.flatnonzero(here & ~self._inside).tolist():
                self._arrive(device, positions_m)
            if self._power_db is not None:
                yield from self._measure(self._measured_db(positions_m, self._power_db))
            for cell in [c for c, arrival in enumerate(self._arrivals) if arrival.callbacks]:
                if self.present(cell):  # absent for less than a tick: nobody saw it come back
                    self._announce(cell)

    def _measured_db(
        self, positions_m: np.ndarray, power_db: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return [devices, cells] the power at all devices; who stands where it was has the power it had."""
        # bit by bit, so that one that stays absent (nan) has not moved
        changed = positions_m.view(np.int64) != self._measured_m.view(np.int64)
        moved = np.flatnonzero(changed[:, 0] | changed[:, 1])
        if len(moved) > len(changed) / 2:
            self._last_db = power_db(positions_m)
        elif len(moved):
            self._last_db[moved] = self._power_at(positions_m[moved], moved)
        self._measured_m = positions_m
        return self._last_db

    def _measure(self, power_db: np.ndarray) -> Generator[simpy.Event, None, None]:
        served, now_s = self._served, self.env.now
        filtered_db = self._filter.filtered_db(power_db, self._seen & self._may_be_served())
        connected = np.where(self._seen, served.connected(now_s), NOWHERE)
        decisions = self._a3.measure(now_s, filtered_db, connected)
        since_s = [served.since_s[decision.devices] for decision in decisions]
        for decision, then_s in zip(decisions, since_s, strict=True):
            yield self.env.timeout(max(0.0, decision.time_s - self.env.now))
            # not if it was switched off meanwhile, even if it is on again
            still = (served.cell[decision.devices] != NOWHERE) & (served.since_s[decision.devices] == then_s)
            self._leave(decision.devices[still], decision.targets[still])

    # -- what happens to a device ---------------------------------------------------------------------

    def part_begins(self, device: int, process: simpy.Process) -> None:
        """Register a device's process in a round; it is interrupted when the device cannot go on."""
        self._parts[device] = process

    def part_ended(self, device: int) -> None:
        """Note that a device's part of a round is over; a device that waited to leave goes, if it still should."""
        del self._parts[device]
        self.power.rest(device)
        # what was seen and measured last decides, not what was when it should have left
        if not self._seen[device] and self._inside[device]:
            self._move(np.array([device]), np.array([NOWHERE]))
        elif (target := self._a3.target(device, self.env.now)) is not None:
            self._move(np.array([device]), np.array([target]))

    def link_failed(self, device: int) -> None:
        """Let a device whose radio link has failed select the best cell, where it is again after an interruption.

        A device that has just left its cell, or been handed over, has another link already.
        """
        served, now_s = self._served, self.env.now
        cell = int(served.cell[device])
        if cell == NOWHERE or served.since_s[device] > now_s:
            return
        self._write(EventName.RADIO_LINK_FAILURE, device, cell)
        best = self._strongest_of(device, self.positions_m())
        if best != cell:
            self._move(np.array([device]), np.array([best]))
            return
        served.since_s[device] = now_s + self._handover.handover_latency_s
        self._announce_in(cell, self._handover.handover_latency_s)

    def _stop(self, device: int, cause: Cause) -> None:
        """Cut off a device that has been switched off or is empty; with several cells it loses its cell."""
        self._cut_off(device, cause)
        if self._power_db is not None:
            self._served.cell[device] = NOWHERE
            self._a3.forget(device)
            self._filter.forget(device)

    def _cut_off(self, device: int, cause: Cause) -> None:
        process = self._parts.get(device)
        if process is not None and process.is_alive:
            process.interrupt(cause)

    def _leave(self, devices: np.ndarray, targets: np.ndarray) -> None:
        """Move devices [n] to other cells [n] or to none; those caught in a round stay with policy `finish`."""
        caught = np.array([device in self._parts for device in devices.tolist()], dtype=bool)
        if self._handover.policy == "finish":
            devices, targets = devices[~caught], targets[~caught]  # `part_ended` decides about the others
        else:
            for device in devices[caught].tolist():
                self._cut_off(device, Cause.LEFT)
        self._move(devices, targets)

    def _move(self, devices: np.ndarray, targets: np.ndarray) -> None:
        sources = self._served.cell[devices]
        self._a3.forget(devices)
        self._served.cell[devices] = targets
        gone = targets < 0
        self._inside[devices[gone]] = False
        for device, source in zip(devices[gone].tolist(), sources[gone].tolist(), strict=True):
            self._write(EventName.DEPARTURE, device, source)
        if not gone.all():
            self._hand_over(devices[~gone], sources[~gone], targets[~gone])

    def _hand_over(self, devices: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> None:
        now_s, rules = self.env.now, self._handover
        stays_s, since_change_s, returns = self._served.hand_over(
            devices, sources, now_s, rules.handover_latency_s
        )
        ping_pong = returns & (since_change_s < rules.min_time_of_stay_s)
        # handovers are most of all events: a row object for each would cost more than to decide it
        self._recorder.write_columns(
            Event,
            time_s=now_s,
            event=EventName.HANDOVER.value,
            device=devices,
            session=None,
            cell=targets,
            from_cell=sources,
            stay_s=stays_s,
            interruption_s=rules.handover_latency_s,
            detail=np.where(ping_pong, "ping_pong", ""),
        )
        for cell in set(targets.tolist()):
            self._announce_in(cell, rules.handover_latency_s)

    def _arrive(self, device: int, positions_m: np.ndarray) -> None:
        self._inside[device] = True
        self._select_cell(device, positions_m)
        self._write(EventName.ARRIVAL, device, int(self._served.cell[device]))
        self._announce_device(device)

    def _select_cell(self, device: int, positions_m: np.ndarray) -> None:
        """Attach a device to the strongest site at its place, unless it is one that no cell serves."""
        if self._may_be_served()[device]:
            self._served.attach(device, self._strongest_of(device, positions_m), self.env.now)

    def _power_event(self, name: EventName, device: int) -> None:
        """Record that a device has been switched, is empty or back; if it now runs, it selects a cell."""
        if self.power.running[device] and self._inside[device] and self._served.cell[device] == NOWHERE:
            positions_m = self.positions_m()
            if self._here(positions_m[[device]])[0]:
                self._select_cell(device, positions_m)
        self._write(name, device, int(self._served.cell[device]))

    def _write(self, name: EventName, device: int, cell: int) -> None:
        self._recorder.write(Event(self.env.now, name, device, None, None if cell == NOWHERE else cell))

    def _announce_device(self, device: int) -> None:
        cell = int(self._served.cell[device])
        if cell != NOWHERE:
            self._announce(cell)

    def _announce(self, cell: int) -> None:
        """Wake the processes that wait for a device in this cell."""
        if self._arrivals[cell].callbacks:
            waiting, self._arrivals[cell] = self._arrivals[cell], self.env.event()
            waiting.succeed()

    def _announce_in(self, cell: int, delay_s: float) -> None:
        """Wake after a delay those that wait for a device in this cell, and those that begin to meanwhile."""
        then_s = self.env.now + delay_s
        if not delay_s:
            self._announce(cell)
        elif self._arrivals[cell].callbacks:
            self._announce_at(cell, then_s)
        else:
            # nobody waits, and hardly ever does anybody begin to: no timer for each handover
            coming = self._coming_s[cell]
            while coming and coming[0] <= self.env.now:
                coming.popleft()
            coming.append(then_s)

    def _announce_at(self, cell: int, time_s: float) -> None:
        now_s = self.env.now
        if time_s <= now_s:
            return
        delay_s = time_s - now_s
        while now_s + delay_s < time_s:  # a difference may round; not before the device is connected
            delay_s = math.nextafter(delay_s, math.inf)
        self.env.timeout(delay_s).callbacks.append(lambda _: self._announce(cell))

    def _may_be_served(self) -> np.ndarray:
        """Return [devices] whether a cell may serve each: one cell has all that are within its edge."""
        return self.power.running | (self._power_db is None)

    def _here(self, positions_m: np.ndarray) -> np.ndarray:
        """Return [devices] whether each is in the simulated area: the cell, or that of all cells."""
        if self._radius_m is None:
            return np.isfinite(positions_m[:, 0])
        # a comparison with nan is false: an absent device is not in the cell
        return within(positions_m, self._radius_m)

    def _strongest_of(self, device: int, positions_m: np.ndarray) -> int:
        if self._power_db is None:
            return 0
        places_m = np.nan_to_num(positions_m[[device]])
        return int(self._power_at(places_m, np.array([device])).argmax())

    def _power_at(self, places_m: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Return [n, cells] the power at some devices: which they are matters where they do not measure alike."""
        if self._power_db_of is not None:
            return self._power_db_of(places_m, ids)
        assert self._power_db is not None  # of one cell nothing is measured
        return self._power_db(places_m)

    def _strongest(self, positions_m: np.ndarray) -> np.ndarray:
        if self._power_db is None:
            return np.zeros(len(positions_m), dtype=int)
        return self._power_db(np.nan_to_num(positions_m)).argmax(axis=1)

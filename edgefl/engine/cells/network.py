"""Assign serving cells to devices that move, switch on and off, run out of battery, and hand over."""

import itertools
import math
from collections.abc import Callable, Generator, Iterator

import numpy as np
import simpy

from edgefl.engine.air.coverage import Coverage
from edgefl.engine.air.measurements import Measurements, Survey
from edgefl.engine.cells.arrivals import Arrivals
from edgefl.engine.cells.borders import Borders
from edgefl.engine.cells.device_positions import DevicePositions
from edgefl.engine.cells.handover import EventA3, Layer3Filter
from edgefl.engine.cells.idle_ticks import IdleTicks
from edgefl.engine.cells.network_events import NetworkEvents
from edgefl.engine.cells.parts_under_way import PartsUnderWay
from edgefl.engine.cells.serving_cells import NOWHERE, ServingCells
from edgefl.engine.derived import Derived
from edgefl.engine.devices.power import Power, PowerListener
from edgefl.engine.parts import Cause
from edgefl.engine.records import EventName, Recorder
from edgefl.engine.settings import HandoverSettings
from edgefl.mobility import Movement


class Network:
    """The devices of a run and their serving cells.

    A device is present in a cell if that cell serves it, it is switched on, its battery is not empty, no handover
    interrupts it, and, if coverage is checked, it has a link.

    With one cell, all devices within the cell's edge belong to it, whether switched on or off. With several cells, a
    device selects the strongest site without delay when it arrives or is switched on, and event A3 decides from then
    on; a device that is switched off or has an empty battery has no cell, does not measure and makes no handovers.

    Events: `arrival` and `departure` occur when a device, on or off, enters or leaves the simulated area.
    `switched_on` and `battery_back` name the selected cell; `switched_off`, `battery_empty` and `departure` name the
    last serving cell. If no cell serves the device, the event names no cell.

    Args:
        movement: movement of the devices.
        radius_m: distance from the origin beyond which a device is absent, or None for no limit.
        reached: returns [n] whether any site is in range of positions [n, 2]; devices out of range are absent. None
            if the sites' range is unlimited.
        measurements: the devices' measurements of the cells.
        power: creates the devices' switches and batteries, given a listener to their changes.
        tick_s: time between two checks of the devices.
        borders: counts the cell borders that devices cross while a cell serves them, or None.
        coverage: decides which devices have a link; None if all devices have one.
    """

    def __init__(
        self,
        env: simpy.Environment,
        *,
        movement: Movement,
        measurements: Measurements,
        power: Callable[[PowerListener], Power],
        tick_s: float,
        handover: HandoverSettings,
        recorder: Recorder,
        radius_m: float | None = None,
        reached: Callable[[np.ndarray], np.ndarray] | None = None,
        coverage: Coverage | None = None,
        borders: Borders | None = None,
    ) -> None:
        self.env = env
        self.borders = borders
        self._coverage = coverage
        self._device_positions = DevicePositions(env, movement, radius_m, reached)
        self._tick_s = tick_s
        self._handover = handover
        self._events = NetworkEvents(env, recorder, handover)
        positions_m = self.positions_m()
        count = len(positions_m)
        cells, self._measurements = measurements.cells, measurements
        self._measured_m: np.ndarray | None = None  # positions at the last measurement
        self._served = ServingCells(count)
        self._parts = PartsUnderWay()
        # cached list of each cell's ids, so that a million ids are not converted again if they have not changed
        self._ids: list[Derived[np.ndarray, list[int]]] = [Derived(np.ndarray.tolist) for _ in range(cells)]
        self._a3 = EventA3(handover, count, cells)
        self._filter = Layer3Filter(handover, count, cells)
        self._arrivals = Arrivals(env, cells)
        self.power = power(PowerListener(self._power_event, self._announce_device, self._stop))
        self._idle_ticks = IdleTicks(self._device_positions, self._served, self.power, self._a3, self._filter)
        self._seen = self._device_positions.here(positions_m)  # whether in the area at the last check
        self._inside = self._seen.copy()  # arrived and not departed; a device may finish a round outside
        served = self._seen & self._may_be_served()
        self._served.cell[served] = self._measurements.strongest(positions_m)[served]

    def present(self, cell: int) -> list[int]:
        """Return the sorted ids of the devices that can take part in a round of this cell; read-only."""
        served, has_link = self._with_link(cell, self._served.connected(self.env.now))
        return self._ids[cell](served if has_link is None else served[has_link])

    def out_of_coverage(self, cell: int) -> list[int] | None:
        """Return the sorted ids of devices that would be present if they had a link, or None without coverage."""
        served, has_link = self._with_link(cell, self._served.connected(self.env.now))
        return None if has_link is None else served[~has_link].tolist()

    def connecting(self, cell: int) -> dict[int, float]:
        """Return id -> end of the interruption, for the devices that are absent only because of an interruption.

        Interruptions follow handovers and failed links.
        """
        coming, has_link = self._with_link(cell, self._served.connecting(self.env.now))
        ids = coming if has_link is None else coming[has_link]
        return dict(zip(ids.tolist(), self._served.since_s[ids].tolist(), strict=True))

    def _with_link(self, cell: int, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return a cell's running devices, and whether each has a link (None if all do); `cells` is [devices]."""
        present = (cells == cell) & self.power.running & self._seen
        if self._device_positions.moves:
            # leave out devices that have left since the last check
            present &= np.isfinite(self.positions_m()[:, 0])
        if self._parts.guests:
            present[list(self._parts.guests)] = False
        served = np.flatnonzero(present)
        if self._coverage is None:
            return served, None
        return served, self._coverage.among(cell, served, self.positions_m())

    def serving(self, devices: np.ndarray) -> np.ndarray:
        """Return the current serving cells of devices; -1 without a cell or during a handover."""
        return self._served.connected(self.env.now)[devices]

    def positions_m(self) -> np.ndarray:
        """Return the current positions [devices, 2], read-only; nan outside the simulated area."""
        return self._device_positions.positions_m()

    def survey(self, afresh: bool) -> Survey | None:
        """Return a survey of all cells, made now if `afresh`, otherwise at the last tick; None with a single cell."""
        if not self._measurements.several:
            return None
        if afresh or self._measured_m is None:
            self._measured_m = self.positions_m()
        return self._measurements.survey(self._measured_m)

    def arrival(self, cell: int) -> simpy.Event:
        """Return an event that succeeds when the next device becomes present in the cell."""
        return self._arrivals.next(cell)

    @property
    def moves(self) -> bool:
        """Whether any device ever moves."""
        return self._device_positions.moves

    @property
    def several(self) -> bool:
        """Whether there are several cells."""
        return self._measurements.several

    @property
    def still(self) -> bool:
        """Whether no device ever moves, is switched on or off, or has a battery."""
        return not self.moves and self.power.constant and not self._measurements.changes

    def processes(self) -> Iterator[Generator[simpy.Event, None, None]]:
        """Yield the generators that move, switch and hand over devices; the caller starts them as processes."""
        if self._device_positions.moves:
            yield self._watch()
        if self._measurements.changes:
            yield self._change_cells()
        yield from self.power.processes()

    def _change_cells(self) -> Generator[simpy.Event, None, None]:
        """Hand devices over at times known in advance, without an event if a device is off or absent."""
        for time_s, devices, targets in self._measurements.changes:
            yield self.env.timeout(max(0.0, time_s - self.env.now))
            present = self.power.running[devices] & self._inside[devices]
            self._served.cell[devices[~present]] = targets[~present]
            self._leave(devices[present], targets[present])

    def _watch(self) -> Generator[simpy.Event, None, None]:
        """Check at every tick which devices are in the area, and with several cells measure for handovers."""
        for tick in itertools.count(1):
            # an absolute grid keeps ticks from drifting with rounding
            yield self.env.timeout(max(0.0, tick * self._tick_s - self.env.now))
            if self._idle_ticks.lasts():
                if self.borders:
                    self.borders.unmoved(self.env.now)
                continue
            positions_m = self.positions_m()
            here = self._seen = self._device_positions.here(positions_m)
            gone = np.flatnonzero(~here & self._inside)
            if len(gone):
                self._leave(gone, np.full(len(gone), NOWHERE))
            for device in np.flatnonzero(here & ~self._inside).tolist():
                self._arrive(device, positions_m)
            if self.borders:
                self.borders.look(self.env.now, positions_m, here & (self._served.cell != NOWHERE))
            if (survey := self.survey(afresh=True)) is not None:
                yield from self._measure(survey.power_db)
            for cell in self._arrivals.awaited():
                if self.present(cell):  # wake even for a device that was absent for less than a tick
                    self._arrivals.announce(cell)
            self._idle_ticks.looked(self.env.now, self._measurements.several)

    def _measure(self, power_db: np.ndarray) -> Generator[simpy.Event, None, None]:
        served, now_s = self._served, self.env.now
        filtered_db = self._filter.filtered_db(power_db, self._seen & self._may_be_served())
        connected = np.where(self._seen, served.connected(now_s), NOWHERE)
        decisions = self._a3.measure(now_s, filtered_db, connected)
        since_s = [served.since_s[decision.devices] for decision in decisions]
        for decision, then_s in zip(decisions, since_s, strict=True):
            yield self.env.timeout(max(0.0, decision.time_s - self.env.now))
            # skip devices that were switched off meanwhile, even if they are on again
            still = (served.cell[decision.devices] != NOWHERE) & (served.since_s[decision.devices] == then_s)
            self._leave(decision.devices[still], decision.targets[still])

    def at_work(self, cell: int) -> list[int]:
        """Return the ids of the devices that this cell serves and that are taking part in a round."""
        return [device for device in self._parts.processes if self._served.cell[device] == cell]

    def part_begins(self, device: int, process: simpy.Process) -> None:
        """Register a device's process in a round; the process is interrupted if the device has to stop."""
        self._parts.processes[device] = process

    def part_ended(self, device: int) -> None:
        """Record that a device's part of a round is over; perform a postponed departure or handover if still due."""
        guest, failed = self._parts.end(device)
        self.power.rest(device)
        if failed is not None and self._seen[device] and self._served.cell[device] != NOWHERE:
            self._select_after_failure(device, failed)
            return
        # the latest check and measurements decide, not those that caused the postponement
        if not self._seen[device] and self._inside[device]:
            self._move(np.array([device]), np.array([NOWHERE]))
        elif (target := self._target(device)) is not None:
            self._move(np.array([device]), np.array([target]))
        elif guest:
            self._announce_device(device)

    def _target(self, device: int) -> int | None:
        """Return the cell to which a device should have handed over by now, or None."""
        if not self._measurements.changes:
            return self._a3.target(device, self.env.now)
        cell = self._measurements.strongest_of(device, self.positions_m())
        return None if cell == self._served.cell[device] else cell

    def link_failed(self, device: int) -> None:
        """Disconnect a device after a radio link failure, until it has a new link or its part of the round ends."""
        cell, since_s = int(self._served.cell[device]), float(self._served.since_s[device])
        self._events.write(EventName.RADIO_LINK_FAILURE, device, cell)
        self._parts.failed_s[device] = self.env.now, since_s
        self._served.since_s[device] = math.inf
        self._a3.forget(device)

    def best_cell(self, device: int) -> int | None:
        """Return the strongest cell at a device's current position, or None outside the simulated area."""
        positions_m = self.positions_m()
        here = self._device_positions.here(positions_m[[device]])[0]
        return self._measurements.strongest_of(device, positions_m) if here else None

    def reestablished(self, device: int, cell: int) -> bool:
        """Connect a device to a cell after a radio link failure; return whether its part of the round continues.

        If another cell served the device before, the change is a handover, subject to the handover policy.
        """
        source, (failed_s, since_s) = int(self._served.cell[device]), self._parts.failed_s.pop(device)
        after_s = self.env.now - failed_s
        came_from = None if cell == source else source
        further = {"from_cell": came_from, "interruption_s": after_s}
        self._events.write(EventName.REESTABLISHED, device, cell, **further)
        if cell == source:
            self._served.since_s[device] = self.env.now
            return True
        self._served.since_s[device] = since_s + after_s  # the device's stay ended with the failure
        self._parts.guests.add(device)
        self._move(np.array([device]), np.array([cell]), 0.0)
        return self._handover.policy == "finish"

    def _select_after_failure(self, device: int, failed: tuple[float, float]) -> None:
        """Select the best cell for a device without a link; the cell serves the device after an interruption."""
        (failed_s, since_s), now_s = failed, self.env.now
        best, latency_s = self.best_cell(device), self._handover.handover_latency_s
        if best is not None and best != self._served.cell[device]:
            self._served.since_s[device] = since_s + now_s - failed_s
            self._move(np.array([device]), np.array([best]))
            return
        self._served.since_s[device] = now_s + latency_s
        self._arrivals.announce_in(int(self._served.cell[device]), latency_s)

    def _stop(self, device: int, cause: Cause) -> None:
        """Cut off a device that is switched off or discharged; with several cells, it also loses its serving cell."""
        self._parts.cut_off(device, cause)
        if self._measurements.several:
            self._served.cell[device] = NOWHERE
            self._a3.forget(device)
            self._filter.forget(device)

    def _leave(self, devices: np.ndarray, targets: np.ndarray) -> None:
        """Move devices [n] to other cells [n] or to no cell; with policy `finish`, devices in a round stay."""
        caught = np.array([device in self._parts.processes for device in devices.tolist()], dtype=bool)
        if self._handover.policy == "finish":
            devices, targets = devices[~caught], targets[~caught]  # `part_ended` decides for other devices
        else:
            for device in devices[caught].tolist():
                self._parts.cut_off(device, Cause.LEFT)
        self._move(devices, targets)

    def _move(self, devices: np.ndarray, targets: np.ndarray, interruption_s: float | None = None) -> None:
        """Move devices [n] to other cells [n] or to no cell; interruption_s defaults to a handover's interruption."""
        sources = self._served.cell[devices]
        self._a3.forget(devices)
        self._served.cell[devices] = targets
        gone = targets < 0
        self._inside[devices[gone]] = False
        for device, source in zip(devices[gone].tolist(), sources[gone].tolist(), strict=True):
            self._events.write(EventName.DEPARTURE, device, source)
        if not gone.all():
            latency_s = self._handover.handover_latency_s if interruption_s is None else interruption_s
            devices, sources, targets = devices[~gone], sources[~gone], targets[~gone]
            stays = self._served.hand_over(devices, sources, self.env.now, latency_s)
            self._events.handovers(devices, sources, targets, latency_s, *stays)
            for cell in set(targets.tolist()):
                self._arrivals.announce_in(cell, latency_s)

    def _arrive(self, device: int, positions_m: np.ndarray) -> None:
        self._inside[device] = True
        self._select_cell(device, positions_m)
        self._events.write(EventName.ARRIVAL, device, int(self._served.cell[device]))
        self._announce_device(device)

    def _select_cell(self, device: int, positions_m: np.ndarray) -> None:
        """Attach a device to the strongest site at its position, if it may be served."""
        if self._may_be_served()[device]:
            cell = self._measurements.strongest_of(device, positions_m)
            self._served.attach(device, cell, self.env.now)

    def _power_event(self, name: EventName, device: int) -> None:
        """Record an event of a device's switch or battery; a device that starts running selects a cell."""
        if self.power.running[device] and self._inside[device] and self._served.cell[device] == NOWHERE:
            positions_m = self.positions_m()
            if self._device_positions.here(positions_m[[device]])[0]:
                self._select_cell(device, positions_m)
        self._events.write(name, device, int(self._served.cell[device]))

    def _announce_device(self, device: int) -> None:
        cell = int(self._served.cell[device])
        if cell != NOWHERE:
            self._arrivals.announce(cell)

    def _may_be_served(self) -> np.ndarray:
        """Return [devices] whether a cell may serve each device; a single cell serves even devices that are off."""
        return self.power.running | (not self._measurements.several)

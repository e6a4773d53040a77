"""Synchronous rounds: select the participants, let them work, wait for their updates."""

import itertools
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import simpy

from edgefl.channel.tdd import Direction
from edgefl.contract import LocalRound
from edgefl.engine.air.gains import LargeScaleState, RoundKey
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.federation.deciding import Deciding, Tell
from edgefl.engine.federation.device import Processors
from edgefl.engine.federation.excess import ENERGY_EXCESS, excess_j
from edgefl.engine.federation.outlook import Outlook
from edgefl.engine.federation.plan import planned_parts
from edgefl.engine.federation.seat import Seat
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.federation.timetable import wait_until
from edgefl.engine.parts import Cause, DeviceTask, Part
from edgefl.engine.selectors import (
    Candidates,
    CountedSelector,
    Decider,
    Decision,
    Selector,
    with_surplus,
)
from edgefl.engine.settings import RoundSettings


@dataclass(frozen=True)
class Selection:
    """The participants of a round, the number of updates that it waits for, and their links' state."""

    ids: list[int]
    wanted: int
    large_scale: LargeScaleState
    decision: Decision | None = None  # where a decider has chosen them


@dataclass(frozen=True)
class Rounds:
    """The rounds of one cell: selection of participants, and their work."""

    simulation: Simulation
    seat: Seat
    rules: RoundSettings
    processors: Processors
    report_bits: int  # what each participant sends beside its update
    tells_excess: bool = False  # whether rounds are compared with their least joules
    devices: Sequence[int] | None = None  # which belong to its federation; None: all of the run

    @property
    def cell(self) -> int:
        """The cell in which they are held."""
        return self.seat.cell

    @cached_property
    def deciding(self) -> Deciding | None:
        """The cell's decider with all that it is told; None: the selector is a plain one."""
        selector, rules = self._selector, self.rules
        if not isinstance(selector, Decider):
            return None
        return Deciding(
            self.simulation, self.cell, selector, self.processors, rules.deadline_s, self.report_bits
        )

    def select(self, key: RoundKey, present: Sequence[int], turn: int, tell: Tell) -> Selection:
        """Select a round's participants from the devices present.

        Args:
            turn: rounds of the global model that this cell has run before.
            tell: what the learner expects of devices, for deciders.
        """
        selector, state = self._selector, self._large_scale(key, present)
        wanted = selector.wanted(len(present))
        number = with_surplus(wanted, self.rules.over_selection, len(present))
        rng = self.simulation.streams("select", *key, *self.seat.scope)
        if self.deciding is not None:
            return self._decided(self.deciding, key, turn, state, wanted, number, rng, tell)
        chosen = selector.select(Candidates(present, state.gains_db, turn), number, rng)
        return Selection(chosen, wanted, state.of(chosen))

    def _decided(
        self,
        deciding: Deciding,
        key: RoundKey,
        turn: int,
        state: LargeScaleState,
        wanted: int,
        number: int,
        rng: np.random.Generator,
        tell: Tell,
    ) -> Selection:
        """Let the decider choose."""
        decision = deciding.decide(state, key[0], turn, wanted, number, rng, tell)
        chosen = list(decision.ids)
        return Selection(chosen, min(wanted, len(chosen)), state.of(chosen), decision)

    def sample(self, share: float, key: RoundKey, present: Sequence[int]) -> list[int]:
        """Sample a share of the devices present, at least one, from this round on."""
        wanted = max(1, round(share * len(present)))
        order = self.simulation.streams(key[1], *key, *self.seat.scope).permutation(len(present))
        return sorted(present[i] for i in order[:wanted])

    def of(self, ids: list[int], key: RoundKey, present: Sequence[int]) -> Selection:
        """Select exactly these devices; the round waits for all of them."""
        return Selection(ids, len(ids), self._large_scale(key, present).of(ids))

    def carry_out(
        self, selection: Selection, local: LocalRound
    ) -> Generator[simpy.Event, None, tuple[RadioRound, list[Part]]]:
        """Let the participants work; return their round on the radio, and what each did, in order of their ids."""
        simulation = self.simulation
        opened, tasks = self._opened(selection, local)
        if self._undisturbed(selection) and opened.predictable:
            plan = planned_parts(simulation, opened, tasks, self.processors)
            yield from wait_until(simulation.env, plan.end_s)
            simulation.radio.efficiency.count(plan.parts, opened.links.share)
            return opened, plan.parts
        processes = self._started(opened, tasks)
        yield from self._wait(processes, selection.wanted)
        parts = [_part(process) for process in processes]
        simulation.radio.efficiency.count(parts, opened.links.share)
        return opened, parts

    @cached_property
    def outlook(self) -> Outlook:
        """What rounds without a deadline would cost the devices."""
        return Outlook(self.simulation, self.cell, self.processors, None)

    def excess_columns(
        self, selection: Selection, local: LocalRound, parts: Sequence[Part]
    ) -> dict[str, float | None]:
        """Return the column of rounds.csv with the joules of a round above the least, if it is asked for."""
        if not self.tells_excess:
            return {}
        return {ENERGY_EXCESS: excess_j(self.outlook, selection.large_scale, local, parts, self.report_bits)}

    def places(self, present: int) -> int:
        """Return how many devices may work at the same time, where rounds overlap."""
        places: int | None = self.rules.server.places
        return self._selector.wanted(present) if places is None else places

    def choose(self, key: RoundKey, idle: Sequence[int], turn: int, room: int, tell: Tell) -> Selection:
        """Select the devices that begin now, where rounds overlap: all who are idle, or as many as there is room for.

        Args:
            turn: dispatches before.
            tell: as in `select`.
        """
        state, selector = self._large_scale(key, idle), self._selector
        rng, chosen = self.simulation.streams("select", *key, *self.seat.scope), list(idle)
        if self.deciding is not None:
            room = min(room, len(idle))
            return self._decided(self.deciding, key, turn, state, room, room, rng, tell)
        if room < len(idle):
            if isinstance(selector, CountedSelector):
                chosen = selector.select(Candidates(idle, state.gains_db, turn), room, rng)
            else:
                chosen = sorted(idle[i] for i in rng.permutation(len(idle))[:room])
        return Selection(chosen, len(chosen), state.of(chosen))

    def begin(self, selection: Selection, local: LocalRound) -> tuple[RadioRound, list[simpy.Process]]:
        """Let devices begin; return their round on the radio, and their processes in its order."""
        opened, tasks = self._opened(selection, local)
        return opened, self._started(opened, tasks)

    def _opened(self, selection: Selection, local: LocalRound) -> tuple[RadioRound, list[DeviceTask]]:
        up_bits = [bits + self.report_bits for bits in local.up_bits]
        opened = self.open(selection, local.down_bits, up_bits)
        decision, patient = selection.decision, self.rules.deadline_s is not None
        clocks_hz: Iterable[float | None] = itertools.repeat(None, len(up_bits))
        if decision is not None and decision.clock_hz is not None:
            clocks_hz = decision.clock_hz.tolist()
        unusable = set(local.not_finite)
        usable = (id_ not in unusable for id_ in local.ids)
        work = zip(local.down_bits, up_bits, local.iterations, local.samples, clocks_hz, usable, strict=True)
        return opened, [
            DeviceTask(down, up, steps, samples, patient, clock_hz, finite)
            for down, up, steps, samples, clock_hz, finite in work
        ]

    def open(self, selection: Selection, down_bits: Sequence[int], up_bits: Sequence[int]) -> RadioRound:
        """Open a round on the radio, with the shares and powers that have been decided."""
        decision = selection.decision
        bits: dict[Direction, Sequence[int]] = {"downlink": down_bits, "uplink": up_bits}
        given: dict[str, Any] = {}
        if decision is not None:
            shares = {"downlink": decision.down_shares, "uplink": decision.up_shares}
            decided = {direction: of for direction, of in shares.items() if of is not None}
            given = {"decided": decided, "power": decision.power}
        return self.simulation.radio.open_round(selection.large_scale, self.cell, bits, **given)

    def _started(self, opened: RadioRound, tasks: Sequence[DeviceTask]) -> list[simpy.Process]:
        devices = self.simulation.devices
        return [
            devices[link.device].start(task, link, self.processors)
            for link, task in zip(opened, tasks, strict=True)
        ]

    def _undisturbed(self, selection: Selection) -> bool:
        """Whether the whole round is known when it opens: nobody can leave, be late or be one too many."""
        return (
            self.simulation.network.still
            and self.rules.deadline_s is None
            and selection.wanted == len(selection.ids)
        )

    def _wait(self, processes: Sequence[simpy.Process], wanted: int) -> Generator[simpy.Event, None, None]:
        """Wait until all are done, the deadline has come, or with over-selection enough updates are there."""
        env = self.simulation.env
        ends: list[simpy.Event] = [env.all_of(processes)]
        if self.rules.deadline_s is not None:
            ends.append(env.timeout(self.rules.deadline_s))
        if wanted < len(processes):
            ends.append(_enough(env, processes, wanted))
        yield env.any_of(ends)
        late = [process for process in processes if process.is_alive]
        if late:
            arrived = sum(_part(process).completed for process in processes if not process.is_alive)
            for process in late:
                process.interrupt(Cause.LATE if arrived < wanted else Cause.SURPLUS)
            # a new condition: one inside an any_of that has fired no longer listens
            yield env.all_of(processes)

    def _large_scale(self, key: RoundKey, present: Sequence[int]) -> LargeScaleState:
        simulation = self.simulation
        return simulation.radio.gains.of_round(
            simulation.network.positions_m(), present, self.cell, (key[0], self.seat.named(key[1]), key[2])
        )

    @property
    def _selector(self) -> Selector:
        selector: Selector = self.rules.selector
        return selector


def _enough(env: simpy.Environment, processes: Sequence[simpy.Process], wanted: int) -> simpy.Event:
    """Return an event that succeeds when the number wanted of processes have returned a completed part."""
    enough, missing = env.event(), wanted

    def note(process: simpy.Event) -> None:
        nonlocal missing
        missing -= _part(process).completed
        if missing <= 0 and not enough.triggered:
            enough.succeed()

    for process in processes:
        process.callbacks.append(note)
    return enough


def _part(process: simpy.Event) -> Part:
    """Return what a device's process has returned."""
    return cast(Part, process.value)

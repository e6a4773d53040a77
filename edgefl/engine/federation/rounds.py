"""Select the participants of a cell's rounds, and create their tasks and links."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import simpy

from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.contract import LocalRound, Stage
from edgefl.engine.air.access import lead_of
from edgefl.engine.air.gains import LargeScaleState, RoundKey
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.federation.deciding.choice import Choice, Reports, Selection
from edgefl.engine.federation.device import Processors
from edgefl.engine.federation.federations import Seat
from edgefl.engine.federation.plan import planned_parts
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.parts import DeviceTask, Part
from edgefl.engine.selectors import with_surplus
from edgefl.engine.servers import ServerPolicy
from edgefl.engine.settings import RoundSettings


@dataclass(frozen=True)
class Rounds:
    """Select the participants of a cell's rounds, and start their work."""

    simulation: Simulation
    seat: Seat
    rules: RoundSettings
    processors: Processors
    reports: Reports  # numbers that each participant sends with its update
    devices: Sequence[int] | None = None  # devices of the federation, or None for all devices of the run

    @property
    def cell(self) -> int:
        """The cell in which the rounds take place."""
        return self.seat.cell

    @cached_property
    def choice(self) -> Choice:
        """The choice of the rounds' participants."""
        rules, bits = self.rules, self.reports.bits
        return Choice(rules.selector, self.simulation, self.cell, self.processors, rules.deadline_s, bits)

    @cached_property
    def tiers(self) -> tuple[int, ...]:
        """Tier of each device, [devices]; empty without tiers."""
        many = len(self.simulation.devices)
        ids = range(many) if self.devices is None else self.devices
        of_own = self.rules.server.tiers([self.processors.cost(id_, 1)[0] for id_ in ids])
        # devices of other federations never work here, so their tier is arbitrary
        own = dict(zip(ids, of_own, strict=True)) if of_own else {}
        return tuple(own.get(id_, 0) for id_ in range(many)) if of_own else ()

    def places(self, server: ServerPolicy, present: int) -> int:
        """Return the number of devices that may work at the same time."""
        if server.places is not None:
            return server.places
        wanted: int = self.rules.selector.wanted(present) if present else 0
        return wanted

    def choose(
        self,
        key: RoundKey,
        idle: Sequence[int],
        turn: int,
        room: int,
        stage: Stage,
        busy: Sequence[int] = (),
    ) -> Selection:
        """Select the devices to dispatch now.

        Args:
            idle, busy: devices present that can, and that cannot, be dispatched.
            turn: number of earlier rounds of this global model.
            room: number of updates wanted; with `over_selection`, more devices are dispatched.
            stage: returns the work expected of devices.
        """
        state, wanted = self._large_scale(key, idle), min(room, len(idle))
        number = with_surplus(room, self.rules.over_selection, len(idle))
        rng = self.simulation.streams("select", *key, *self.seat.scope)
        decision = self.choice.decide(state, key[0], turn, wanted, number, rng, stage, busy)
        return Selection.of(decision, wanted, state)

    def sample(self, share: float, key: RoundKey, present: Sequence[int]) -> list[int]:
        """Sample a share of the present devices, at least one; return their sorted ids."""
        wanted = max(1, round(share * len(present)))
        order = self.simulation.streams(key[1], *key, *self.seat.scope).permutation(len(present))
        return sorted(present[i] for i in order[:wanted])

    def of(self, ids: list[int], key: RoundKey, present: Sequence[int]) -> Selection:
        """Select exactly the given devices; the round waits for all of them."""
        return Selection.whole(ids, self._large_scale(key, present))

    def begin(self, selection: Selection, local: LocalRound) -> tuple[RadioRound, list[DeviceTask]]:
        """Open a round on the radio; return the round and each device's task."""
        up_bits = [bits + self.reports.bits for bits in local.up_bits]
        opened = self.open(selection, local.down_bits, up_bits)
        decision, patient = selection.decision, self.rules.deadline_s is not None
        clocks_hz: Iterable[float | None] = itertools.repeat(None, len(up_bits))
        if decision.clock_hz is not None:
            clocks_hz = decision.clock_hz.tolist()
        unusable = set(local.not_finite)
        usable = (id_ not in unusable for id_ in local.ids)
        work = zip(local.down_bits, up_bits, local.iterations, local.samples, strict=True)
        how = zip(clocks_hz, usable, self._slowness(selection), strict=True)
        return opened, [DeviceTask(*amounts, patient, *one) for amounts, one in zip(work, how, strict=True)]

    def _slowness(self, selection: Selection) -> Sequence[float]:
        """Return the factor by which each participant's computing time is multiplied in this round."""
        fleet, key = self.simulation.fleet, selection.large_scale.key
        if key is None or all(kind.compute_jitter is None for kind in fleet.kinds):
            return [1.0] * len(selection.ids)
        return fleet.slowness(selection.ids, self.simulation.streams, key)

    def open(self, selection: Selection, down_bits: Sequence[int], up_bits: Sequence[int]) -> RadioRound:
        """Open a round on the radio with the decided shares and powers."""
        decision = selection.decision
        bits: dict[Direction, Sequence[int]] = {"downlink": down_bits, "uplink": up_bits}
        shares: dict[Direction, FloatArray | None] = {
            "downlink": decision.down_shares,
            "uplink": decision.up_shares,
        }
        decided = {direction: of for direction, of in shares.items() if of is not None}
        return self.simulation.radio.open_round(
            selection.large_scale,
            self.cell,
            bits,
            decided=decided,
            power=decision.power,
            lead_slots=self._until_all_listen(selection.ids, down_bits),
        )

    def _until_all_listen(self, ids: Sequence[int], down_bits: Sequence[int]) -> int:
        """Return the number of slots until all devices listen to a broadcast that is requested now."""
        simulation, air = self.simulation, self.simulation.radio.air
        rules, tails, now_s = air.settings.access, simulation.network.power.tails, simulation.env.now
        if rules is None or air.settings.downlink != "broadcast":
            return 0
        timers = (simulation.devices[id_].draws.connection for id_ in ids)
        return max(
            lead_of(rules, air.slot_s, "downlink", bits, tails.since_s(id_, now_s), connection, None).slots
            for id_, bits, connection in zip(ids, down_bits, timers, strict=True)
        )

    def planned(
        self, selection: Selection, opened: RadioRound, tasks: Sequence[DeviceTask]
    ) -> tuple[list[Part], float] | None:
        """Return all parts of a predictable round and the time at which it ends.

        Returns:
            The parts and the end, or None if devices may leave, if there is a deadline or a surplus, if the radio is
            not predictable, or if a dynamic band may have other users.
        """
        still = self.simulation.network.still and self.rules.deadline_s is None
        if not (still and selection.wanted == len(selection.ids) and opened.predictable):
            return None
        if self.simulation.radio.air.dynamic:
            alone = not (self.simulation.network.several or self.seat.federation)
            if not (alone and all(task.down_bits and task.up_bits for task in tasks)):
                return None
        return planned_parts(self.simulation, opened, tasks, self.processors)

    def start(self, opened: RadioRound, tasks: Sequence[DeviceTask]) -> list[simpy.Process]:
        """Start the devices' work; return their processes in the order of the round's links."""
        devices = self.simulation.devices
        return [
            devices[link.device].start(task, link, self.processors)
            for link, task in zip(opened, tasks, strict=True)
        ]

    def _large_scale(self, key: RoundKey, present: Sequence[int]) -> LargeScaleState:
        simulation = self.simulation
        return simulation.radio.gains.of_round(
            simulation.network.positions_m(), present, self.cell, (key[0], self.seat.named(key[1]), key[2])
        )

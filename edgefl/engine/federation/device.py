"""A device that downloads the model, trains and uploads its update, and accounts for the energy of each activity."""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import overload

import simpy

from edgefl.channel.energy import compute_energy_j, compute_time_s, transfer_energy_j
from edgefl.channel.tdd import Direction, OnTime
from edgefl.engine.air.access import Lead, lead_of
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.links import Transfer
from edgefl.engine.air.radio_round import Link
from edgefl.engine.cells.network import Network
from edgefl.engine.devices.fleet import Fleet
from edgefl.engine.federation.reestablishment import Search
from edgefl.engine.parts import NO_ACCESS, Access, Cause, DeviceTask, Part, Span, joined
from edgefl.engine.power_models import Draws


class Processors:
    """Time and energy that local training takes on the devices' processors.

    Args:
        flops_per_sample: N_p phi, FLOPs of one sample forward and backward.
    """

    def __init__(self, fleet: Fleet, flops_per_sample: float) -> None:
        self._kinds = fleet.kinds
        self._of: list[int] = fleet.of.tolist()
        self.flops_per_sample = flops_per_sample
        self._costs: dict[tuple[int, int], tuple[float, float]] = {}

    def cost(self, device: int, samples: int, clock_hz: float | None = None) -> tuple[float, float]:
        """Return seconds and joules of a device's forward and backward passes over samples (J 27, 28).

        Args:
            clock_hz: clock of the device's processor; by default the highest clock.
        """
        kind = self._of[device]
        if clock_hz is not None:
            return self._cost(kind, samples, clock_hz)
        if (kind, samples) not in self._costs:
            self._costs[kind, samples] = self._cost(kind, samples, self._kinds[kind].clock_hz)
        return self._costs[kind, samples]

    def _cost(self, kind: int, samples: int, clock_hz: float) -> tuple[float, float]:
        settings, flops = self._kinds[kind], self.flops_per_sample
        cpu = {"clock_hz": clock_hz, "flops_per_cycle": settings.flops_per_cycle}
        time_s = compute_time_s(flops, samples, **cpu)
        return time_s, compute_energy_j(flops, samples, capacitance=settings.capacitance, **cpu)


class Device:
    """A device that takes part in rounds; interrupting its process with a Cause cuts it off.

    Attributes:
        draws: power draws of the device's radio.
    """

    def __init__(
        self, env: simpy.Environment, id_: int, air: AirInterface, draws: Draws, network: Network
    ) -> None:
        self.env = env
        self.id = id_
        self._air = air
        self._network = network
        self.draws = draws
        self._search = Search(id_, air, network, self.draws.receive_w)

    def send_power_w(self, share: float = 1.0) -> float:
        """Return the power drawn while the transmitter radiates a share of its maximum power."""
        return self.draws.amplifier_w * share + self.draws.send_w

    def start(self, task: DeviceTask, link: Link, processors: Processors) -> simpy.Process:
        """Start work on a task from the server; the process returns the Part."""
        process = self.env.process(self.take_part(task, link, processors))
        self._network.part_begins(self.id, process)
        return process

    def take_part(
        self, task: DeviceTask, link: Link, processors: Processors
    ) -> Generator[simpy.Event, None, Part]:
        """Do the work of one round; if the device is cut off, return the work and energy up to then."""
        downlink, link = yield from self._move(link, "downlink", task.down_bits, task.patient)
        spans = [downlink]
        if spans[-1].cut is None:
            spans.append((yield from self._compute(task, processors)))
        if spans[-1].cut is None:
            uplink, link = yield from self._move(link, "uplink", task.up_bits, task.patient)
            spans.append(task.seen(link.received(uplink)))
        self._network.part_ended(self.id)
        return Part.of(self.id, task.iterations, spans)

    def _move(
        self, link: Link, direction: Direction, bits: int, patient: bool
    ) -> Generator[simpy.Event, None, tuple[Span, Link]]:
        """Transfer bits, continuing on the next link after a failure; return the span and the last link."""
        access, cut = yield from self._access(link, direction, bits)
        if cut is not None:
            now_s = self.env.now
            self._network.power.radio_off(self.id, now_s, 0.0)
            return Span(now_s, now_s, access.energy_j, cut=cut, access=access), link
        pieces: list[tuple[int, Span]] = []
        gaps: list[Span] = []
        while True:
            missing = bits - sum(span.bits for _, span in pieces)
            pieces.append((link.cell, (yield from self._transfer(link, direction, missing))))
            if pieces[-1][1].cut is not Cause.RADIO_LINK_FAILURE:
                break
            self._network.power.tails.disconnects(self.id)
            self._network.link_failed(self.id)
            if link.round.elsewhere is None:
                break
            gap, new_link = yield from self._search.run(link, direction, patient)
            gaps.append(gap)
            if new_link is None:
                break
            link = new_link
        moved = joined(pieces, gaps)
        return moved if access is NO_ACCESS else moved.after(access), link

    def _access(
        self, link: Link, direction: Direction, bits: int
    ) -> Generator[simpy.Event, None, tuple[Access, Cause | None]]:
        """Wait until a transfer can begin; return the access, and the cause if the device was cut off."""
        air, env, power = self._air, self.env, self._network.power
        resting, listening = self._lead(link, direction, bits)
        if not resting + listening:
            return NO_ACCESS, None
        from_s, slot_s, listens = env.now, air.slot_s, air.next_slot(env.now) + resting
        try:
            yield air.until(listens)
            if listening:
                on = OnTime(air.carriers[direction].frame, slot_s, listens)
                power.radio_on(self.id, self.draws.wait_w, self.draws.wait_w, on)
            yield air.until(listens + listening)
        except simpy.Interrupt as interrupt:
            listened_s = min(max(0.0, env.now - listens * slot_s), listening * slot_s)
            cut_short = Access(env.now - from_s, listened_s, self.draws.wait_w * listened_s)
            return cut_short, interrupt.cause
        listened_s = listening * slot_s
        return Access((resting + listening) * slot_s, listened_s, self.draws.wait_w * listened_s), None

    def _lead(self, link: Link, direction: Direction, bits: int) -> Lead:
        """Return how many slots the device waits before a transfer that is requested now."""
        air, opened, now_s = self._air, link.round, self.env.now
        rules, broadcast = air.settings.access, opened.broadcast if direction == "downlink" else None
        rate = None if broadcast or rules is None else float(opened.rates_bit_s[direction][link.row])
        since_s = self._network.power.tails.since_s(self.id, now_s)
        lead = lead_of(rules, air.slot_s, direction, bits, since_s, self.draws.connection, rate)
        if broadcast is None or not lead.slots:
            return lead
        # rest until the devices of the broadcast can start to listen together
        return Lead(broadcast.first_slot - air.next_slot(now_s) - lead.listening, lead.listening)

    def _transfer(self, link: Link, direction: Direction, bits: int) -> Generator[simpy.Event, None, Span]:
        """Transfer bits over one link until all have arrived or the transfer is cut off."""
        power_w, j_bit = self.draws.receive_w, self.draws.receive_j_bit
        if direction == "uplink":
            power_w, j_bit = self.send_power_w(link.uplink_power), self.draws.send_j_bit
        by_blocks = link.by_blocks(direction)
        # if power changes with the resource blocks, the battery pays for sending only when the transfer ends
        drain_w = self.draws.wait_w if by_blocks else power_w
        radio_on = partial(self._network.power.radio_on, self.id, drain_w, self.draws.wait_w)
        transfer = yield from link.transfer(direction, bits, radio_on)
        if transfer.power is not None:
            power_w = self.send_power_w(transfer.power)
        idle_s = transfer.stalled_s - transfer.stalled_air_s
        stalled_j = power_w * transfer.stalled_air_s + self.draws.wait_w * idle_s
        # no tail follows an empty transfer or a failed link
        tail = bits > 0 and transfer.cut is not Cause.RADIO_LINK_FAILURE
        booked_j = j_bit * transfer.bits + (power_w - drain_w) * transfer.airtime_s
        return transfer.span(self._energy_j(transfer, drain_w, booked_j, tail), stalled_j)

    def _energy_j(self, transfer: Transfer, power_w: float, booked_j: float, tail: bool) -> float:
        """Turn the radio off; return the joules of the transfer.

        Args:
            power_w: power while the radio is on. booked_j: joules on top of the energy drawn at this power.
        """
        booked_j = self._network.power.radio_off(self.id, transfer.end_s, booked_j, tail=tail)
        wait_s = transfer.end_s - transfer.start_s - transfer.airtime_s
        return float(transfer_energy_j(power_w, transfer.airtime_s, self.draws.wait_w, wait_s, booked_j))

    def _compute(self, task: DeviceTask, processors: Processors) -> Generator[simpy.Event, None, Span]:
        power, (time_s, energy_j) = self._network.power, processors.cost(self.id, task.samples, task.clock_hz)
        time_s *= task.slowness
        power.draw(self.id, energy_j / time_s if time_s else 0.0)
        start_s = self.env.now
        try:
            yield self.env.timeout(time_s)
        except simpy.Interrupt as interrupt:
            share = (self.env.now - start_s) / time_s if time_s else 1.0
            return Span(start_s, self.env.now, share * energy_j, share_done=share, cut=interrupt.cause)
        power.rest(self.id)  # the device is idle until the uplink's first slot
        return Span(start_s, start_s + time_s, energy_j)


class Devices(Sequence[Device]):
    """All devices of a run by id, each created on first use.

    In a run with a million devices, most never take part; not creating them saves seconds, and 500 bytes per device.

    Args:
        make: returns a new device, given its id and the power draws of its radio.
    """

    def __init__(self, fleet: Fleet, make: Callable[[int, Draws], Device]) -> None:
        self._of = fleet.of
        self._draws = [kind.draws() for kind in fleet.kinds]
        self._make = make
        self._made: dict[int, Device] = {}

    def __len__(self) -> int:
        return len(self._of)

    @overload
    def __getitem__(self, id_: int) -> Device: ...
    @overload
    def __getitem__(self, id_: slice) -> list[Device]: ...
    def __getitem__(self, id_: int | slice) -> Device | list[Device]:
        if isinstance(id_, slice):
            return [self[one] for one in range(*id_.indices(len(self)))]
        if not 0 <= id_ < len(self):
            raise IndexError(id_)
        if id_ not in self._made:
            self._made[id_] = self._make(id_, self._draws[self._of[id_]])
        return self._made[id_]

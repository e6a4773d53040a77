"""A device: downloads the model, trains, uploads its update, and pays for each activity."""

from collections.abc import Generator
from functools import partial

import simpy

from channel.energy import compute_energy_j, compute_time_s, receive_energy_j, transmit_energy_j
from channel.units import dbm_to_watt
from edgefl.engine.fleet import Fleet
from edgefl.engine.links import Link
from edgefl.engine.network import Network
from edgefl.engine.parts import Cause, Part, Span, Task
from edgefl.engine.radio import Radio
from edgefl.engine.settings import DeviceSettings


class Processors:
    """Time and energy of local training on the devices.

    Args:
        flops_per_sample: N_p phi, forward and backward.
    """

    def __init__(self, fleet: Fleet, flops_per_sample: float) -> None:
        self._kinds = fleet.kinds
        self._of: list[int] = fleet.of.tolist()
        self._flops_per_sample = flops_per_sample
        self._costs: dict[tuple[int, int], tuple[float, float]] = {}

    def cost(self, device: int, samples: int) -> tuple[float, float]:
        """Return the seconds and joules of a device's forward and backward passes over some samples (J 27, 28)."""
        kind = self._of[device]
        if (kind, samples) not in self._costs:
            settings = self._kinds[kind]
            cpu = {"clock_hz": settings.clock_hz, "flops_per_cycle": settings.flops_per_cycle}
            time_s = compute_time_s(self._flops_per_sample, samples, **cpu)
            energy_j = compute_energy_j(
                self._flops_per_sample, samples, capacitance=settings.capacitance, **cpu
            )
            self._costs[kind, samples] = (time_s, energy_j)
        return self._costs[kind, samples]


class Device:
    """A device that takes part in rounds; interrupting its process with a Cause cuts it off.

    Attributes:
        receive_power_w: power drawn while its receiver is on.
    """

    def __init__(
        self, env: simpy.Environment, id_: int, radio: Radio, settings: DeviceSettings, network: Network
    ) -> None:
        self.env = env
        self.id = id_
        self._radio = radio
        self._network = network
        self.receive_power_w = settings.circuit_power_w
        self._amplifier_w = dbm_to_watt(settings.transmit_power_dbm) / settings.pa_efficiency
        self._uplink_circuit_w = settings.uplink_circuit_power_w

    def send_power_w(self, share: float = 1.0) -> float:
        """Return the power drawn while its transmitter radiates a share of its power."""
        return self._amplifier_w * share + self._uplink_circuit_w

    def start(self, task: Task, link: Link, processors: Processors) -> simpy.Process:
        """Start the device's work on a task of the server; the process returns the Part."""
        process = self.env.process(self.take_part(task, link, processors))
        self._network.part_begins(self.id, process)
        return process

    def take_part(self, task: Task, link: Link, processors: Processors) -> Generator[simpy.Event, None, Part]:
        """Do one round's work. If the device is cut off, the Part holds what was done until then, and its energy."""
        spans = [(yield from self._receive(task, link))]
        if spans[-1].cut is None:
            spans.append((yield from self._compute(task, processors)))
        if spans[-1].cut is None:
            spans.append((yield from self._send(task, link)))
        self._network.part_ended(self.id)
        if spans[-1].cut is Cause.RADIO_LINK_FAILURE:
            self._network.link_failed(self.id)
        return Part.of(self.id, task.iterations, spans)

    def _receive(self, task: Task, link: Link) -> Generator[simpy.Event, None, Span]:
        draw = partial(self._network.power.draw, self.id, self.receive_power_w)
        transfer = yield from self._radio.transfer(link, "downlink", task.down_bits, draw)
        return transfer.span(receive_energy_j(self.receive_power_w, transfer.airtime_s))

    def _send(self, task: Task, link: Link) -> Generator[simpy.Event, None, Span]:
        power_w = self.send_power_w(link.uplink_power)
        draw = partial(self._network.power.draw, self.id, power_w)
        transfer = yield from self._radio.transfer(link, "uplink", task.up_bits, draw)
        return transfer.span(transmit_energy_j(power_w, transfer.airtime_s))

    def _compute(self, task: Task, processors: Processors) -> Generator[simpy.Event, None, Span]:
        power, (time_s, energy_j) = self._network.power, processors.cost(self.id, task.samples)
        power.draw(self.id, energy_j / time_s if time_s else 0.0)
        start_s = self.env.now
        try:
            yield self.env.timeout(time_s)
        except simpy.Interrupt as interrupt:
            share = (self.env.now - start_s) / time_s if time_s else 1.0
            return Span(start_s, self.env.now, share * energy_j, share_done=share, cut=interrupt.cause)
        power.rest(self.id)  # until the uplink's first slot
        return Span(start_s, start_s + time_s, energy_j)

"""A device: downloads the model, trains, uploads its update, and pays for each stage."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy

from channel.energy import compute_energy_j, compute_time_s, receive_energy_j, transmit_energy_j
from channel.tdd import Direction
from channel.units import dbm_to_watt
from edgefl.engine.network import Network
from edgefl.engine.radio import Link, Radio, Transfer
from edgefl.engine.records import DeviceRound
from edgefl.engine.settings import DeviceSettings


@dataclass(frozen=True)
class Work:
    """Local training as the processor sees it."""

    flops_per_sample: float
    iterations: int
    batch: int


class Device:
    """One device's part in the rounds; `leave` cuts off whatever it is doing."""

    def __init__(
        self, env: simpy.Environment, id_: int, radio: Radio, settings: DeviceSettings, network: Network
    ) -> None:
        self.env = env
        self.id = id_
        self._radio = radio
        self._settings = settings
        self._network = network
        radiated_w = dbm_to_watt(settings.transmit_power_dbm)
        self._send_power_w = radiated_w / settings.pa_efficiency + settings.uplink_circuit_power_w
        self._working: simpy.Process | None = None

    def start(self, part: Generator[simpy.Event, None, None]) -> simpy.Process:
        """Begin to work on a part that the server hands out."""
        self._network.part_begins(self.id)
        self._working = self.env.process(part)
        return self._working

    def leave(self, why: str) -> None:
        """A transfer or computation under way is cut off, and its energy so far is booked."""
        if self._working is not None and self._working.is_alive:
            self._working.interrupt(why)

    def take_part(
        self, row: DeviceRound, link: Link, downlink_bits: int, uplink_bits: int, work: Work
    ) -> Generator[simpy.Event, None, None]:
        """One round's work; `row` is filled in as it goes."""
        stage = "downlink"
        try:
            self._draw("downlink", self._settings.circuit_power_w)
            yield from self._radio.transfer(link, "downlink", downlink_bits, lambda t: self._received(row, t))
            stage = "compute"
            yield from self._compute(row, work)
            stage = "uplink"
            self._draw("uplink", self._send_power_w)
            yield from self._radio.transfer(link, "uplink", uplink_bits, lambda t: self._sent(row, t))
            row.outcome = "completed"
        except simpy.Interrupt as interrupt:
            row.outcome = f"{interrupt.cause}_{stage}"
        row.energy_j = row.energy_rx_j + row.energy_tx_j + row.energy_compute_j
        self._network.part_ended(self.id)

    def _draw(self, direction: Direction, power_w: float) -> None:
        self._network.draw(self.id, power_w * self._radio.on_share(direction))

    def _received(self, row: DeviceRound, transfer: Transfer) -> None:
        row.downlink_start_s, row.downlink_end_s = transfer.start_s, transfer.end_s
        row.downlink_bits = transfer.bits
        row.energy_rx_j = receive_energy_j(self._settings.circuit_power_w, transfer.airtime_s)

    def _sent(self, row: DeviceRound, transfer: Transfer) -> None:
        row.uplink_start_s, row.uplink_end_s = transfer.start_s, transfer.end_s
        row.uplink_bits = transfer.bits
        row.energy_tx_j = transmit_energy_j(self._send_power_w, transfer.airtime_s)

    def _compute(self, row: DeviceRound, work: Work) -> Generator[simpy.Event, None, None]:
        cpu: dict[str, Any] = {
            "clock_hz": self._settings.clock_hz,
            "flops_per_cycle": self._settings.flops_per_cycle,
        }
        amount = (work.flops_per_sample, work.iterations, work.batch)
        time_s = compute_time_s(*amount, **cpu)
        energy_j = compute_energy_j(*amount, capacitance=self._settings.capacitance, **cpu)
        self._network.draw(self.id, energy_j / time_s if time_s else 0.0)
        row.compute_start_s = self.env.now
        done = 1.0
        try:
            yield self.env.timeout(time_s)
            row.compute_end_s = row.compute_start_s + time_s
        except simpy.Interrupt:
            row.compute_end_s = self.env.now
            done = (row.compute_end_s - row.compute_start_s) / time_s
            raise
        finally:
            row.iterations = int(done * work.iterations)
            row.energy_compute_j = done * energy_j

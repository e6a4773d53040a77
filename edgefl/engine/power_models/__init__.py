"""Power models: what a device's radio draws while it receives and sends, between, and afterwards."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from edgefl.config.component import Component

__all__ = ["Draws", "Equipment", "PowerModel"]

# keys of a device about its circuits, in the journal paper's model
CIRCUITS = frozenset({"circuit_power_w", "pa_efficiency", "uplink_circuit_power_w"})


@dataclass(frozen=True)
class Equipment:
    """What a device says of its radio: circuits and amplifier."""

    transmit_w: float  # radiated at full power
    pa_efficiency: float
    circuit_power_w: float
    uplink_circuit_power_w: float


@dataclass(frozen=True)
class Draws:
    """What a radio draws; with `idle_power_w` and the processor's share beside it only where it is not in use.

    Attributes:
        receive_w: while its receiver is on.
        send_w: while its transmitter is on, beside its amplifier.
        amplifier_w: while it radiates its full power; a share of that for a share of the power.
        receive_j_bit, send_j_bit: of each bit, on top.
        wait_w: during a transfer, in the slots of a TDD frame that are not its own.
        tail: after a transfer and until the next one, one after the other: how long, s, and its power, W.
    """

    receive_w: float
    send_w: float
    amplifier_w: float = 0.0
    receive_j_bit: float = 0.0
    send_j_bit: float = 0.0
    wait_w: float = 0.0
    tail: tuple[tuple[float, float], ...] = ()


class PowerModel(Component):
    """Base of all power models."""

    # keys of the device that it has no use for: a scenario that sets one of them has mistaken something
    ignores: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def draws(self, equipment: Equipment) -> Draws:
        """Return what the radio of a device draws."""

"""Power models of a device's radio: for receiving, sending, waiting in slots of the other direction, and tails."""

import math
from abc import abstractmethod
from dataclasses import dataclass, fields
from itertools import chain
from numbers import Real
from typing import ClassVar, NamedTuple

from edgefl.config.component import Component

__all__ = ["Draws", "Equipment", "PowerModel"]

# keys of devices about circuits, which the journal paper's model uses
CIRCUITS = frozenset({"circuit_power_w", "pa_efficiency", "uplink_circuit_power_w"})


@dataclass(frozen=True)
class Equipment:
    """Keys of a device's circuits and amplifier."""

    transmit_w: float  # maximum radiated power
    pa_efficiency: float
    circuit_power_w: float
    uplink_circuit_power_w: float


class Connection(NamedTuple):
    """Timers of a connection after a transfer, for listening, for sleep in DRX cycles, and for the release."""

    inactivity_s: float
    drx_cycle_s: float
    on_duration_s: float
    release_s: float


# without timers, a device is always connected and listening
ALWAYS_ON = Connection(math.inf, 1.0, 1.0, math.inf)


@dataclass(frozen=True)
class Draws:
    """Power draws of a radio that is in use or has a tail; otherwise `idle_power_w` applies.

    Attributes:
        receive_w: power while the receiver is on.
        send_w: power while the transmitter is on, without the amplifier.
        amplifier_w: power of the amplifier at full radiated power, and at less power in proportion.
        receive_j_bit, send_j_bit: energy of each bit received or sent, in addition to these powers.
        wait_w: power during a transfer in TDD slots that serve the other direction.
        tail: duration, s, and power, W, of each step after a transfer, until the next transfer.
        connection: timers of the radio's connection.
    """

    receive_w: float
    send_w: float
    amplifier_w: float = 0.0
    receive_j_bit: float = 0.0
    send_j_bit: float = 0.0
    wait_w: float = 0.0
    tail: tuple[tuple[float, float], ...] = ()
    connection: Connection = ALWAYS_ON

    @property
    def is_physical(self) -> bool:
        """Whether all powers, energies and durations are finite numbers of at least 0."""
        *numbers, tail, connection = (getattr(self, field.name) for field in fields(self))
        pairs = isinstance(tail, tuple) and all(isinstance(step, tuple) and len(step) == 2 for step in tail)
        return (
            pairs
            and isinstance(connection, Connection)
            and all(isinstance(one, Real) and 0 <= float(one) < math.inf for one in (*numbers, *chain(*tail)))
        )


class PowerModel(Component):
    """Base class of all power models."""

    # keys of devices that the model does not use; setting one of them is an error
    ignores: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def draws(self, equipment: Equipment) -> Draws:
        """Return the power draws of a device's radio."""

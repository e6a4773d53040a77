"""The power model of the journal paper, with circuit power for receiving and amplifier power for sending."""

from edgefl.engine.power_models import Draws, Equipment, PowerModel


class JournalPower(PowerModel):
    """Circuit power while receiving, and radiated power over the amplifier's efficiency while sending.

    The defaults of `devices` give 0.1 W for receiving and 0.2 W for sending; a 5G phone draws about 4 W. Source: the
    journal paper, eq. (42); the paper has neither the amplifier's efficiency nor the power of the transmitter's
    circuits. Left out: radio states between transfers, and energy that grows with the rate.
    """

    def draws(self, equipment: Equipment) -> Draws:
        return Draws(
            receive_w=equipment.circuit_power_w,
            send_w=equipment.uplink_circuit_power_w,
            amplifier_w=equipment.transmit_w / equipment.pa_efficiency,
        )

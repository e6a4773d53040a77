"""Compute power from the currents of a modem's data sheet; the radio stays awake after each transfer."""

from pydantic import Field

from edgefl.engine.power_models import Draws, Equipment, PowerModel


class DataSheet(PowerModel):
    """Currents at a supply voltage, as in data sheets, for receiving, sending, and listening for a while afterwards.

    Ignored: the dependence of the current while sending on the radiated power.
    """

    supply_v: float = Field(3.8, gt=0, le=60, description="supply voltage, V")
    receive_a: float = Field(0.09, ge=0, le=10, description="current while receiving, A")
    send_a: float = Field(0.25, ge=0, le=10, description="current while sending, A")
    listen_a: float = Field(0.03, ge=0, le=10, description="current while listening after a transfer, A")
    listen_s: float = Field(2.0, ge=0, le=3600, description="duration of listening")

    def draws(self, equipment: Equipment) -> Draws:
        return Draws(
            receive_w=self.supply_v * self.receive_a,
            send_w=self.supply_v * self.send_a,
            tail=((self.listen_s, self.supply_v * self.listen_a),) if self.listen_s else (),
        )

"""Draw what a modem's data sheet says, and stay awake after each transfer."""

from pydantic import Field

from edgefl.engine.power_models import Draws, Equipment, PowerModel


class DataSheet(PowerModel):
    """Currents at a supply voltage, as data sheets give them: receiving, sending, listening for a while afterwards.

    Ignored: that the current of sending depends on the radiated power.
    """

    supply_v: float = Field(3.8, gt=0, le=60, description="supply voltage, V")
    receive_a: float = Field(0.09, ge=0, le=10, description="current while it receives, A")
    send_a: float = Field(0.25, ge=0, le=10, description="current while it sends, A")
    listen_a: float = Field(0.03, ge=0, le=10, description="current while it listens after a transfer, A")
    listen_s: float = Field(2.0, ge=0, le=3600, description="how long it listens, s")

    def draws(self, equipment: Equipment) -> Draws:
        return Draws(
            receive_w=self.supply_v * self.receive_a,
            send_w=self.supply_v * self.send_a,
            tail=((self.listen_s, self.supply_v * self.listen_a),) if self.listen_s else (),
        )

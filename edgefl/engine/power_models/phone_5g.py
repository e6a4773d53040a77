"""Power measured on 5G phones: a constant power while the radio is in use, plus an energy per bit."""

from typing import ClassVar

from edgefl.engine.power_models import CIRCUITS, Draws, Equipment, PowerModel

W_PER_MBIT_S = 1e-6  # J per bit


class Phone5G(PowerModel):
    """A phone's radio, which draws 3.52 W in use, plus 1.7 mW per Mbit/s received and 5.7 mW per Mbit/s sent.

    Source: a regression over 22,324 s of measurements of 5G phones, Narayanan et al., A Variegated Look at 5G in the
    Wild, SIGCOMM 2021, file mn-combined_all.csv of the artefact SIGCOMM21-5G/artifact at 35aaf28; the regression's
    R^2 is 0.61, so only the order of magnitude is reliable. The constant is a mean over time in TDD networks, so the
    radio draws it in all slots during a transfer. Left out: the effect of the radiated power (36 nJ/bit in good
    reception, 63 nJ/bit in bad reception), and tails, which the regression cannot separate but a subclass may add.
    """

    ignores: ClassVar[frozenset[str]] = CIRCUITS
    base_w: ClassVar[float] = 3.52  # W, while the radio receives or sends
    receive_w_per_mbit_s: ClassVar[float] = 0.0017  # W, in addition, for each Mbit/s received
    send_w_per_mbit_s: ClassVar[float] = 0.0057  # W, in addition, for each Mbit/s sent
    tail_s: ClassVar[float] = 0.0  # s, time for which the radio stays awake after a transfer
    tail_w: ClassVar[float] = 0.0  # W, during the tail

    def draws(self, equipment: Equipment) -> Draws:
        return Draws(
            receive_w=self.base_w,
            send_w=self.base_w,
            wait_w=self.base_w,
            receive_j_bit=self.receive_w_per_mbit_s * W_PER_MBIT_S,
            send_j_bit=self.send_w_per_mbit_s * W_PER_MBIT_S,
            tail=((self.tail_s, self.tail_w),) if self.tail_s and self.tail_w else (),
        )

"""A server's record of past participants, for its decider."""

from collections.abc import Sequence

import numpy as np

from edgefl.channel.units import FloatArray
from edgefl.contract import REPORTED_LOSS, REPORTED_NORM, Expected, LocalRound
from edgefl.engine.parts import Part

OF_THE_PAST = (
    "held", "samples", "down_bits", "up_bits", "loss", "norm", "duration_s", "joules", "taken", "completed"
)  # fmt: skip
REPORTS = {"loss": REPORTED_LOSS, "norm": REPORTED_NORM}


class History:
    """Each device's work, if known, and the results of its most recent participation, as arrays [devices]."""

    def __init__(self, devices: int) -> None:
        self.known = np.zeros(devices, dtype=bool)  # whether the learner has reported a device's work
        self.held, self.samples, self.down_bits, self.up_bits = np.zeros((4, devices))
        self.loss, self.norm, self.duration_s, self.joules, self.turn = np.full((5, devices), np.nan)
        self.taken, self.completed = np.zeros((2, devices))

    def expect(self, told: Expected, extra_bits: int) -> None:
        """Store the work that the learner expects devices to do."""
        ids = np.asarray(told.ids, dtype=np.intp)
        self.known[ids] = True
        self.held[ids], self.samples[ids] = told.held, told.samples
        self.down_bits[ids], self.up_bits[ids] = told.down_bits, np.asarray(told.up_bits) + extra_bits

    def note(self, local: LocalRound, parts: Sequence[Part], turn: int, extra_bits: int) -> None:
        """Store the parts of round number `turn`, in the order of `local.ids`."""
        ids = np.asarray(local.ids, dtype=np.intp)
        self.samples[ids], self.down_bits[ids] = local.samples, local.down_bits
        self.up_bits[ids] = np.asarray(local.up_bits) + extra_bits
        self.turn[ids] = turn
        spans = [[span for span in (one.downlink, one.compute, one.uplink) if span] for one in parts]
        self.duration_s[ids] = [of[-1].end_s - of[0].start_s + of[0].access.time_s for of in spans]
        self.joules[ids] = [sum(span.energy_j for span in of) for of in spans]
        arrived = np.array([one.completed for one in parts])
        np.add.at(self.taken, ids, 1)
        np.add.at(self.completed, ids[arrived], 1)
        for name, column in REPORTS.items():
            if column in local.scalars:
                told = np.array(local.scalars[column], dtype=float)  # NumPy converts None to nan
                there = arrived & np.isfinite(told)
                getattr(self, name)[ids[there]] = told[there]

    def of(self, ids: np.ndarray, turn: int) -> dict[str, FloatArray]:
        """Return the fields of Candidates [ids] that depend on past rounds; `age` counts the rounds until `turn`."""
        age = np.where(np.isnan(self.turn[ids]), np.inf, turn - self.turn[ids])
        return {"age": age, **{name: getattr(self, name)[ids] for name in OF_THE_PAST}}

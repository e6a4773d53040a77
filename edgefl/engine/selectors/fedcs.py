"""Choose as many devices as can finish by a deadline."""

import math

import numpy as np
from pydantic import Field

from edgefl.engine.selectors import Candidates, Decider, Decision, Memory
from edgefl.engine.selectors._resources import seconds_alone
from edgefl.errors import EdgeflError


class FedCs(Decider):
    """Repeatedly add the device that lengthens the round least, as long as the round ends by the deadline.

    Nishio and Yonetani, ICC 2019, algorithm 3: all devices download together, then upload one after the other, each
    on the whole band, while waiting devices still compute. Each device delays the end Theta of the round by its
    upload and by the part of its computing that does not overlap with other uploads. Here the server knows each
    link's mean rate, and devices share the band as the scheduler decides, which takes about as long as taking turns
    if links are good. The fastest device always takes part.

    Left out: with `radio.sharing: dynamic`, a weak uplink sends on the resource blocks that its power can serve, not
    on the whole band at a low SNR. Below -5 dB a single upload ends 11 to 23 % sooner than estimated, and uploads of
    several such devices run side by side: those of eight devices in a cell of 350 m took half of the estimated time.
    So fewer devices are chosen than could finish.
    """

    deadline_s: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="time by which a round must end; if left out, rounds.deadline_s, which must then be set",
    )
    count: int | None = Field(
        None, ge=1, le=1_000_000, description="maximum number of participants; null: no limit"
    )

    def wanted(self, present: int) -> int:
        return min(self.count or present, present)

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        limit_s = self.deadline_s or candidates.deadline_s
        if math.isinf(limit_s):
            raise EdgeflError(
                "fedcs selects devices that finish by a deadline: set rounds.deadline_s",
                ("rounds", "deadline_s"),
            )
        up_s, ready_s = seconds_alone(candidates), candidates.before_work_s + candidates.compute_s
        left, chosen, end_s = np.arange(len(candidates)), list[int](), 0.0
        while len(left) and len(chosen) < number:
            ends_s = np.maximum(end_s, ready_s[left]) + up_s[left]
            best = int(np.argmin(ends_s))
            if chosen and ends_s[best] > limit_s:
                break
            end_s = float(ends_s[best])
            chosen.append(int(left[best]))
            left = np.delete(left, best)
        return Decision(candidates.ids_at(chosen))

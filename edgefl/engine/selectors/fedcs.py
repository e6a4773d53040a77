"""Choose as many devices as can finish by a deadline."""

import math

import numpy as np
from pydantic import Field

from edgefl.engine.selectors import Candidates, Decider, Decision, Memory
from edgefl.errors import EdgeflError


class FedCs(Decider):
    """Repeatedly add the device that lengthens the round least, as long as the round ends by the deadline.

    Nishio and Yonetani, ICC 2019, algorithm 3: all devices download together, then upload one after the other, each
    on the whole band, while waiting devices still compute. Each device delays the end Theta of the round by its
    upload and by the part of its computing that does not overlap with other uploads. Here the server knows each
    link's mean rate, and devices share the band as the scheduler decides, which takes about as long as taking turns
    if links are good. A radio that can use only a part of the band (`devices.max_bandwidth_hz`) counts as this part
    of a turn. The fastest device always takes part.

    Left out: with `radio.sharing: dynamic`, a weak uplink sends on the resource blocks that its power can serve, and
    several such uploads run side by side, so fewer devices are chosen than could finish.
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
        up_s, ready_s = candidates.up_alone_s, candidates.before_work_s + candidates.compute_s
        turn_s = up_s * candidates.widest_shares  # narrow radios send side by side
        left, chosen, turns_end_s = np.arange(len(candidates)), list[int](), 0.0
        while len(left) and len(chosen) < number:
            turn_ends_s = np.maximum(turns_end_s, ready_s[left]) + turn_s[left]
            ends_s = np.maximum(turn_ends_s, ready_s[left] + up_s[left])
            best = int(np.argmin(ends_s))
            if chosen and ends_s[best] > limit_s:
                break
            turns_end_s = float(turn_ends_s[best])
            chosen.append(int(left[best]))
            left = np.delete(left, best)
        return Decision(candidates.ids_at(chosen))

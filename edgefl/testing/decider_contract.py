"""Check the contract of deciders, the selectors that see all of `Candidates`."""

from dataclasses import replace
from typing import Any

import numpy as np

from edgefl.channel.carrier import Carrier
from edgefl.channel.packet_errors import WaterfallErrors
from edgefl.engine.selectors import Candidates, Decider, Decision
from edgefl.testing.conformance import must, pure

ROUNDS = 12
CARRIER = Carrier(10e6, 0.5e-3)
HISTORY = ("loss", "norm", "duration_s", "joules")


def candidates_of(rng: np.random.Generator, ids: list[int], turn: int, **given: Any) -> Candidates:
    """Make random candidates in their first round: links of 0 to 30 dB SNR and different clock frequencies."""
    n = len(ids)
    snr = 10 ** rng.uniform(0, 3, n)
    down_s, compute_s, up_s = rng.uniform(0.05, 1.0, (3, n))
    nothing: Any = {name: np.full(n, np.nan) for name in HISTORY}
    made = Candidates(
        ids,
        rng.normal(-90.0, 10.0, n),
        turn,
        downlink=CARRIER,
        uplink=CARRIER,
        packet_errors=WaterfallErrors(1.0),
        held=rng.integers(1, 500, n).astype(float),
        samples=rng.integers(1, 500, n).astype(float),
        cycles=rng.uniform(1e7, 1e8, n),
        clock_hz=rng.uniform(0.5e9, 2e9, n),
        capacitance=np.full(n, 1e-28),
        down_bits=np.full(n, 3e6),
        up_bits=np.full(n, 3e6),
        snr_down=snr,
        snr_up=snr / 10,
        static=np.zeros(n, dtype=bool),
        radiated=np.ones(n),
        receive_w=np.full(n, 0.1),
        amplifier_w=np.full(n, 0.2),
        send_w=np.full(n, 0.05),
        down_s=down_s,
        compute_s=compute_s,
        up_s=up_s,
        up_alone_s=0.1 * up_s,
        down_j=0.1 * down_s,
        compute_j=0.5 * compute_s,
        up_j=0.2 * up_s,
        charge_j=rng.choice([np.inf, 1.0, 100.0], n),
        **nothing,
        age=np.full(n, np.inf),
        taken=np.zeros(n),
        completed=np.zeros(n),
        fading=rng.exponential(size=n),
    )
    return replace(made, **given)


def deciders(decider: Decider) -> None:
    """Check that a decider's decisions are complete, and depend on the arguments only."""
    rng, everybody = np.random.default_rng(0), list(range(3, 43, 2))
    last = np.full(50, np.nan)
    memory: Any = {}
    for turn in range(ROUNDS):
        present = int(rng.integers(1, len(everybody)))
        ids = sorted(rng.choice(everybody, present, replace=False).tolist())
        wanted = decider.wanted(present)
        must(1 <= wanted <= present, f"wanted({present}) is {wanted}: return 1 to {present}")
        played = ~np.isnan(last[ids])
        known = np.where(played, rng.uniform(0.1, 3.0, present), np.nan)
        past: dict[str, Any] = dict.fromkeys(HISTORY, known)
        past |= {"taken": played * 1.0, "completed": played * 1.0}
        past |= {"age": np.where(played, turn - last[ids], np.inf), "deadline_s": 2.0 if turn % 2 else np.inf}
        candidates = candidates_of(rng, ids, turn, **past)
        number = int(rng.integers(wanted, present + 1))
        decision = pure(
            "decide()",
            decider.decide,
            candidates,
            number,
            np.random.default_rng(turn),
            memory,
            remedy="draw from the given rng, and keep no state but the memory that is passed in and returned",
        )
        must(isinstance(decision, Decision), f"decide() returned {decision!r:.40}: return a Decision")
        fault = decision.fault(decider.sets, candidates, number)
        must(not fault, f"decide() {fault}")
        memory = decision.memory
        last[list(decision.ids)] = turn

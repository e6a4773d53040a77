"""Measure the time that deciders take to choose a round's participants, and the time to compute their inputs.

The rival of the minimum-energy allocation is SciPy's general optimiser (SLSQP), which starts at equal shares.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import simpy

from edgefl.channel.units import FloatArray
from edgefl.config import registry
from edgefl.contract import Expected
from edgefl.engine.air.gains import LargeScaleState
from edgefl.engine.federation.deciding.history import History
from edgefl.engine.federation.deciding.outlook import Outlook
from edgefl.engine.federation.device import Processors
from edgefl.engine.records import Nowhere
from edgefl.engine.selectors import Candidates, Decider
from edgefl.engine.selectors._allocation import LN2, Allocation, Uploads, least_energy, least_time
from edgefl.engine.selectors._resources import drawn, uploads
from edgefl.rng import Streams
from edgefl.run.composition import compose
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from tests.tools.bench import median_s, say

CANDIDATES, TAKEN, REPEATS = 1_000, 20, 20
DEADLINE_S = 10.0  # deadline of a round
SLACK = 1.5  # deadline of the rival's problem, relative to the least time
RIVAL = "SciPy's SLSQP"
FURTHER: dict[str, dict[str, Any]] = {"power_of_choice": {"d": 5 * TAKEN}}
PAYLOAD_BITS, FLOPS_PER_SAMPLE, SAMPLES = 251_200, 47_040.0, 640


def run(candidates: int = CANDIDATES, taken: int = TAKEN, repeats: int = REPEATS) -> dict[str, Any]:
    """Measure the CPU time of each decider that comes with edgefl, and of the rival, on one core.

    Devices of two classes are in a cell of `nr` (20 MHz), and each has reported a loss and a norm.

    Returns:
        `told_ms`: time to compute the deciders' inputs; `ms`: median time of each decider; `rival`: the rival's time,
        our time on the same problem, their `ratio`, and `above`: the rival's relative excess over our energy.
    """
    outlook, state, past = _world(candidates, taken)
    say("inputs of deciders")
    tell = partial(outlook.candidates, state, past, 1, taken, fades=True)
    told_ms, told, ms = _median_ms(tell, repeats), tell(), {}
    for name in registry.names("selectors"):
        kind = registry.get("selectors", name)
        if issubclass(kind, Decider) and kind.__module__.startswith("edgefl."):
            say(name)
            decider = kind.model_validate({"count": taken} | FURTHER.get(name, {}))
            ms[name] = _median_ms(partial(_decide, decider, told, taken), repeats)
    rival = _beside_rival(uploads(drawn(told, taken, np.random.default_rng(0)), float(taken)), repeats)
    return {"candidates": candidates, "taken": taken, "told_ms": told_ms, "ms": ms, "rival": rival}


def _world(candidates: int, taken: int) -> tuple[Outlook, LargeScaleState, History]:
    """Return the source of deciders' inputs, the links of a round, and the server's memory of the devices."""
    scenario = Scenario.model_validate(
        {
            "name": "bench",
            "devices": {
                "count": candidates,
                "classes": {
                    "phone": {"share": 0.5, "clock_hz": 2.0e9},
                    "sensor": {"clock_hz": 0.2e9, "capacitance": 1.0e-27},
                },
            },
            "radio": {"bandwidth_hz": 20.0e6, "link": {"uplink_waterfall_db": 0.023}},
            "rounds": {"selector": {"name": "uniform", "count": taken}},
            "sessions": {"name": "schedule", "count": 1, "rounds": 1},
            "workload": {"payload_bits": PAYLOAD_BITS, "flops_per_sample": FLOPS_PER_SAMPLE},
        }
    )
    world = World(scenario, Streams(scenario.seed))
    simulation, _ = compose(world, world.radio(simpy.Environment()), Nowhere(), learners={})
    ids, past, rng = tuple(range(candidates)), History(candidates), np.random.default_rng(0)
    past.expect(
        Expected(ids, *((many,) * candidates for many in (SAMPLES, SAMPLES, PAYLOAD_BITS, PAYLOAD_BITS))), 0
    )
    past.loss[:], past.norm[:] = rng.exponential(size=(2, candidates))
    past.duration_s[:], past.turn[:] = rng.exponential(size=candidates), 0
    state = simulation.radio.gains.of_round(simulation.network.positions_m(), ids, 0, (1, "train", 1))
    processors = Processors(simulation.fleet, FLOPS_PER_SAMPLE)
    return Outlook(simulation, 0, processors, DEADLINE_S), state, past


def _decide(decider: Decider, told: Candidates, taken: int) -> None:
    decider.decide(told, taken, np.random.default_rng(0), {})


def _beside_rival(of: Uploads, repeats: int) -> dict[str, Any]:
    """Compare time and energy of our minimum-energy allocation with those of a general optimiser."""
    begun_s = np.zeros(len(of.gain))
    end_s = SLACK * least_time(of, begun_s)[0]

    def ours() -> Allocation:
        return least_energy(of, begun_s, least_time(of, begun_s), end_s)

    say(RIVAL)
    found, rival_s = _alone(of, end_s)
    rival_ms, ours_ms = 1e3 * rival_s, _median_ms(ours, repeats)
    above = found / float(ours().energy_j(of).sum()) - 1.0
    return {"name": RIVAL, "ms": rival_ms, "ours_ms": ours_ms, "ratio": rival_ms / ours_ms, "above": above}


def _alone(of: Uploads, end_s: float) -> tuple[float, float]:
    """Run SciPy's optimiser in a process with one thread for linear algebra, as two threads wait for each other."""
    before = dict(os.environ)
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            return process.submit(_timed, of, end_s).result()
    finally:
        os.environ.clear()
        os.environ.update(before)


def _timed(of: Uploads, end_s: float) -> tuple[float, float]:
    """Return the energy in J that SciPy's optimiser finds, and its CPU time in s."""
    import scipy.optimize  # noqa: F401 do not time the import

    began_s = time.process_time()
    return _optimised(of, end_s), time.process_time() - began_s


def _optimised(of: Uploads, end_s: float) -> float:
    """Return the least energy in J that SciPy's optimiser finds, with logarithms of times and shares as variables."""
    from scipy.optimize import minimize

    n = len(of.gain)
    longest_s = end_s - of.shortest_s

    def power(v: FloatArray) -> FloatArray:
        t, share = np.exp(v[:n]), np.exp(v[n:])
        return np.asarray(share * np.expm1(of.bits_hz / (share * t) * LN2) / of.gain)

    def joules(v: FloatArray) -> float:
        t = np.exp(v[:n])
        computing = of.capacitance * of.cycles**3 / (end_s - t) ** 2
        return float(((of.send_w + of.amplifier_w * power(v)) * t + computing).sum())

    limits: list[Callable[[FloatArray], FloatArray | float]] = [
        lambda v: 1.0 - float(np.exp(v[n:]).sum()),
        lambda v: 1.0 - power(v),
        lambda v: longest_s - np.exp(v[:n]),
    ]
    best = minimize(
        joules,
        np.log(np.concatenate([0.97 * longest_s, np.full(n, 0.97 / n)])),
        constraints=[{"type": "ineq", "fun": limit} for limit in limits],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return float(best.fun)


def _median_ms(job: Callable[[], object], repeats: int) -> float:
    """Return the median CPU time of a job in ms."""
    return 1e3 * median_s(job, repeats, time.process_time)

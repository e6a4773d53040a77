"""Measure the radio's speed: fading slots per second, renewal against slot by slot, and whole runs by preset."""

import math
import tempfile
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import simpy

from edgefl.channel.carrier import Carrier
from edgefl.channel.fading import BLOCK, Fading, LinkFading, slot_correlation
from edgefl.channel.interference import Heard, Interfered, TransmitterActivity
from edgefl.channel.modulation import Steps
from edgefl.channel.renewal import slots_renewal
from edgefl.channel.transfer import Flow
from tests.tools.bench import interleaved

DEVICES, SLOTS = 100, 20_000
SPEED_M_S, CARRIER_HZ, SLOT_S, BANDWIDTH_HZ, SNR = 10.0, 3.5e9, 0.5e-3, 1.0e6, 100.0
CARRIER = Carrier(BANDWIDTH_HZ, SLOT_S)
RENEWAL_SLOTS, RENEWAL_TRANSFERS, SLOT_TRANSFERS = 20_000, 20_000, 20
REPEATS = 5
LOAD, LEVEL, SHARERS = (
    0.3,
    1.0,
    10,
)  # interferers: share of active slots, mean power over noise, devices per cell
CQI = Carrier(BANDWIDTH_HZ, SLOT_S, steps=Steps())
PRESET_ROUNDS, PRESET_REPEATS = 10, 3


def run() -> dict[str, Any]:
    """Measure the radio on one thread.

    Returns:
        `slots`: device-slots per second by name; `slot_ratio`: our rate divided by each rival's rate;
        `renewal_ratio`: time of a 20,000-slot transfer drawn slot by slot, divided by its time by renewal, with many
        devices' transfers drawn together; `presets`: the result of `presets`.
    """
    rho = slot_correlation(SPEED_M_S, carrier_hz=CARRIER_HZ, slot_s=SLOT_S)
    slots = interleaved(
        {
            "edgefl slot by slot": lambda: _ours(rho),
            "edgefl, NR's rates": lambda: _by_slot(rho, DEVICES, SLOTS, CQI) * SLOTS,
            **{
                f"edgefl, NR's rates, {others} sites interfere": partial(_interfered, rho, others)
                for others in (6, 18)
            },
            "edgefl, NR's rates, devices of 6 cells interfere": partial(_interfered, rho, 6, SHARERS),
            "SimPy, an event per device-slot": lambda: _simpy(rho),
            "NumPy, a vector of devices per slot": lambda: _vector(rho),
            "Python loop": lambda: _loop(rho),
        },
        REPEATS,
    )
    ours = slots["edgefl slot by slot"]
    transfers = interleaved(
        {"slot": partial(_by_slot, rho, SLOT_TRANSFERS, RENEWAL_SLOTS), "renewal": _many_by_renewal(rho)},
        REPEATS,
    )
    return {
        "slots": slots,
        "slot_ratio": {name: ours / rate for name, rate in slots.items() if not name.startswith("edgefl")},
        "transfers": transfers,
        "renewal_ratio": transfers["renewal"] / transfers["slot"],
        "presets": presets(),
    }


def _ours(rho: float) -> float:
    return _by_slot(rho, DEVICES, SLOTS) * SLOTS


def _by_slot(rho: float, links: int, slots: int, carrier: Carrier = CARRIER) -> int:
    """Transfer bits over new links, whose fading is not cached, and return the number of links."""
    for key in range(links):
        Flow(carrier, SNR, LinkFading(key, rho), first_slot=0, fidelity="slot").bits_carried(slots)
    return links


def _interfered(rho: float, others: int, sharers: int = 1) -> float:
    """Transfer bits over new links with interference from other cells in some slots; return device-slots.

    Args:
        sharers: devices of each other cell that send in turn, as in the uplink; all links then end at one site.
    """
    rng, activity = np.random.default_rng(0), TransmitterActivity(1, others, LOAD)
    if sharers > 1:
        heard = [Heard(activity, list(rng.exponential(LEVEL, (others, sharers))))] * DEVICES
    else:
        heard = Heard.each(activity, rng.exponential(LEVEL, (DEVICES, others)))
    # as in a run, all links advance together, block by block
    links: list[Fading] = [Interfered(LinkFading(key, rho), each) for key, each in enumerate(heard)]
    for first in range(0, SLOTS, BLOCK):
        for link in links:
            Flow(CQI, SNR, link, first, fidelity="slot").bits_carried(min(BLOCK, SLOTS - first))
    return DEVICES * SLOTS


def presets(rounds: int = PRESET_ROUNDS, repeats: int = PRESET_REPEATS, devices: int = 70) -> dict[str, Any]:
    """Measure whole runs without training, per preset, of devices that walk in seven cells and send 251 kbit.

    Returns:
        `wall_s` by name; `ratio`: relative to the journal's preset.
    """
    from edgefl.run.api import simulate
    from edgefl.scenario.scenario import Scenario

    def whole(preset: str, load: float) -> float:
        scenario = {
            "name": "presets",
            "layout": {"rings": 1, "isd_m": 500},
            "devices": {"count": devices, "mobility": {"name": "random_waypoint", "area_factor": 1.0}},
            "radio": {"preset": preset, "neighbour_load": load, "propagation": {"shadowing": "spatial"}},
            "sessions": {"name": "schedule", "count": 1, "rounds": rounds},
            "rounds": {"every_s": 60},
            "workload": {"payload_bits": 251_200, "flops_per_sample": 47_040},
        }
        with tempfile.TemporaryDirectory() as folder:
            simulate(Scenario.model_validate(scenario), Path(folder) / "run")
        return 1.0

    rates = interleaved(
        {
            "journal": partial(whole, "journal", 0.0),
            "nr": partial(whole, "nr", 0.0),
            f"nr, load {LOAD} by slot": partial(whole, "nr", LOAD),
        },
        repeats,
    )
    wall_s = {name: 1.0 / rate for name, rate in rates.items()}
    return {"wall_s": wall_s, "ratio": {name: s / wall_s["journal"] for name, s in wall_s.items()}}


def _simpy(rho: float) -> float:
    """Run a process per device with a timeout per slot; to save time, only for a hundredth of the slots."""
    env, rng, slots = simpy.Environment(), np.random.default_rng(0), SLOTS // 100
    noise = math.sqrt((1 - rho**2) / 2)

    def device() -> Generator[simpy.Event, None, None]:
        re = im = bits = 0.0
        draws = rng.standard_normal((slots, 2)).tolist()
        for x, y in draws:
            re, im = rho * re + noise * x, rho * im + noise * y
            bits += BANDWIDTH_HZ * SLOT_S * math.log2(1 + SNR * (re * re + im * im))
            yield env.timeout(SLOT_S)

    for _ in range(DEVICES):
        env.process(device())
    env.run()
    return DEVICES * slots


def _vector(rho: float) -> float:
    rng = np.random.default_rng(0)
    noise = math.sqrt((1 - rho**2) / 2)
    h, bits = np.zeros((2, DEVICES)), np.zeros(DEVICES)
    for _ in range(SLOTS):
        h = rho * h + noise * rng.standard_normal((2, DEVICES))
        bits += BANDWIDTH_HZ * SLOT_S * np.log2(1 + SNR * (h[0] ** 2 + h[1] ** 2))
    return DEVICES * SLOTS


def _loop(rho: float) -> float:
    """Loop over devices and slots in Python; to save time, only for a tenth of the devices."""
    rng = np.random.default_rng(0)
    noise = math.sqrt((1 - rho**2) / 2)
    devices = DEVICES // 10
    for _ in range(devices):
        re = im = bits = 0.0
        for x, y in rng.standard_normal((SLOTS, 2)).tolist():
            re, im = rho * re + noise * x, rho * im + noise * y
            bits += BANDWIDTH_HZ * SLOT_S * math.log2(1 + SNR * (re * re + im * im))
    return devices * SLOTS


def _many_by_renewal(rho: float) -> Callable[[], float]:
    rng = np.random.default_rng(0)
    mean_rate = 5.884  # closed form of the ergodic rate at SNR 100, in bits/s/Hz
    payload_bits = RENEWAL_SLOTS * mean_rate * BANDWIDTH_HZ * SLOT_S

    def job() -> float:
        for _ in range(RENEWAL_TRANSFERS):
            slots_renewal(payload_bits, CARRIER, snr=SNR, correlation=rho, rng=rng)
        return RENEWAL_TRANSFERS

    return job

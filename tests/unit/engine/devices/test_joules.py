"""Test that every joule is counted once, so that battery and ledger agree however a device's work ends."""

from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from edgefl.engine.power_models.phone_5g import Phone5G
from edgefl.engine.records import DeviceRound, Event, LedgerRow, Round
from edgefl.errors import EdgeflError
from edgefl.testing import Scripted, SmallWorld, small_world
from tests.tools.constants import made

SAME = 1e-9  # relative; float64 sums of some hundred activities
FRAMES = [None, {"pattern": "DDDSU"}, {"pattern": "DSUUD"}, {"pattern": "UDDU"}, {"pattern": "S"}]


def drawn_world(
    seed: int, classes: bool = False, power: Any = "journal"
) -> tuple[SmallWorld, dict[str, Any]]:
    """Draw a world of three rounds and one to three devices, in which all outcomes occur; return it and its settings.

    Args: classes: two classes with batteries and a class on mains, of one device each. power: the devices' radio
    power model; models other than `journal` have their own circuits.
    """
    rng = np.random.default_rng(seed)

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    def times(most: int) -> list[float]:
        return sorted(rng.uniform(0.0, 0.5, rng.integers(most + 1)).tolist())

    def one(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    count = int(rng.integers(1, 4))
    work = (5, one(0, 300, int(between(1, 3000))), *(one(0, int(between(1, 3e6))) for _ in range(2)))
    devices = {
        "battery_j": between(1e-3, 0.1),
        "recharge_w": one(0.0, between(1e-3, 0.3)),
        "return_share": between(0.05, 1.0),
        "idle_power_w": one(0.0, between(1e-3, 0.2)),
        "circuit_power_w": one(0.0, 0.1),
        "power": power,
    }
    if power != "journal":
        del devices["circuit_power_w"]
        devices["battery_j"] *= 30
    if classes:
        count = 3
        own = [
            {
                "count": 1,
                "battery_j": between(1e-3, 0.1),
                "recharge_w": one(0.0, between(1e-3, 0.3)),
                "idle_power_w": one(0.0, between(1e-3, 0.2)),
                "circuit_power_w": one(0.0, between(1e-2, 1.0)),
                "pa_efficiency": between(0.1, 1.0),
                "clock_hz": between(1e8, 1e10),
            }
            for _ in range(2)
        ]
        devices["classes"] = {"a": own[0], "b": own[1], "mains": {"battery_j": "mains"}}
        devices["classes_by"] = "ids"
    world = small_world(
        rng.uniform(10.0, 250.0, count).tolist(),
        learner=Scripted(work=work, flops_per_sample=one(0.0, 1.0e6, 1.2345e6)),
        policy={"name": "schedule", "count": 1, "rounds": 3},
        crossings_s={0: times(4)},
        switches_s=[[0.0, *times(3)] for _ in range(count)],
        devices=devices,
        radio={
            "path_loss": "free_space",  # the path loss is high as soon as a device leaves
            "tdd": one(*FRAMES),
            "sharing": one("static", "dynamic"),
            "scheduler": one("equal_share", "min_max_latency"),
            "slot_s": one(0.5e-3, 0.125e-3),
            "bandwidth_hz": between(1e6, 1e7),
        },
        rules={"deadline_s": one(None, between(5e-3, 0.5)), "max_wait_s": 2.0},
        handover={"policy": one("drop", "finish")},
        seed=seed,
    )
    return world, devices


def ledger(world: SmallWorld, idle_power_w: float) -> list[LedgerRow]:
    """Return a world's ledger as a run writes it."""
    power = world.simulation.network.power
    return list(world.simulation.ledger.rows(power.running_s(), idle_power_w, power.charges()))


@pytest.mark.parametrize(
    "power",
    [
        "journal",
        made(Phone5G, tail_s=0.03, tail_w=1.5),
        {"name": "tr38840", "inactivity_s": 0.01, "drx_cycle_s": 0.02, "release_s": 0.05},
    ],
    ids=["journal", "phone_5g", "tr38840"],
)
@given(seed=st.integers(0, 2**32 - 1))
# no bits are received, and each round begins in the previous round's tail
@example(seed=2574)
@settings(max_examples=40)
def test_a_battery_gives_what_the_ledger_says(power: Any, seed: int) -> None:
    """Capacity + recharge - remainder is the sum of the ledger's parts; no round is shorter than its mean latency."""
    world, devices = drawn_world(seed, power=power)
    try:
        world.run()
    except EdgeflError as nobody:  # all devices are empty or off; check the energy until then
        if nobody.place not in (("rounds", "max_wait_s"), ("devices", "battery_j")):
            raise
    for row in world.rows.of[DeviceRound]:
        event(row.outcome)
    capacity_j = devices["battery_j"]
    for row in ledger(world, devices["idle_power_w"]):
        assert row.recharged_j is not None
        assert row.left_j is not None
        # relative to all energy that the battery ever held, which limits the precision of its level
        tolerance_j = SAME * (capacity_j + row.recharged_j)
        assert capacity_j + row.recharged_j - row.left_j == pytest.approx(row.total_j, abs=tolerance_j)
        assert 0 <= row.left_j <= capacity_j
    for round_ in world.rows.of[Round]:
        assert 0 <= round_.latency_mean_s <= round_.latency_s


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_every_class_has_its_battery_and_its_idle_power(seed: int) -> None:
    """Each device's energies balance in two classes with their own batteries and a class on mains."""
    world, devices = drawn_world(seed, classes=True)
    try:
        world.run()
    except EdgeflError as nobody:
        if nobody.place not in (("rounds", "max_wait_s"), ("devices", "battery_j")):
            raise
    own = [*list(devices["classes"].values())[:2], devices]
    idle_w = np.array([settings["idle_power_w"] for settings in own])
    power = world.simulation.network.power
    rows = list(
        world.simulation.ledger.rows(power.running_s(), world.simulation.fleet.idle_power_w, power.charges())
    )
    assert world.simulation.fleet.idle_power_w.tolist() == idle_w.tolist()
    for row, its in zip(rows[:2], own, strict=False):
        assert row.recharged_j is not None
        assert row.left_j is not None
        filled_j = its["battery_j"] + row.recharged_j
        assert filled_j - row.left_j == pytest.approx(row.total_j, abs=SAME * filled_j)
        assert 0 <= row.left_j <= its["battery_j"]
    assert (rows[2].recharged_j, rows[2].left_j) == (None, None)
    assert not [
        event for event in world.rows.of[Event] if event.event.startswith("battery") and event.device == 2
    ]


@pytest.mark.parametrize("slots_late", [-4e-7, 4e-7, 0.5])
@pytest.mark.parametrize("frame", FRAMES)
def test_a_computation_that_ends_beside_a_slots_boundary(slots_late: float, frame: Any) -> None:
    """No time is counted twice or left out, whichever slot a device's upload begins in."""
    slot_s, idle_w = 0.5e-3, 0.05
    flops = 8e9 * slot_s * (20 + slots_late)  # one sample at 8 GFLOP/s
    world = small_world(
        [50.0],
        learner=Scripted(work=(1, 1, 1, 1), flops_per_sample=flops),
        devices={"battery_j": 1.0, "idle_power_w": idle_w},
        radio={"tdd": frame, "slot_s": slot_s},
    ).run()
    (row,) = ledger(world, idle_w)
    assert row.left_j is not None
    assert 1.0 - row.left_j == pytest.approx(row.total_j, rel=1e-12, abs=1e-15)
    (part,) = world.rows.of[DeviceRound]
    assert part.uplink_start_s >= part.compute_end_s * (1 - 1e-14)

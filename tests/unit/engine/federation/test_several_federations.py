"""Derive the rounds of two federations on one band by hand.

On 10 MHz with a cap of 1 bit/s/Hz, which every link reaches, a slot of 0.5 ms carries 5,000 bits, so that a model
of 3 Mbit takes 600 slots alone. A device computes for 0.08 s, or 160 slots.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import simpy

from edgefl.channel.units import dbm_to_watt
from edgefl.engine.federation.by_federation import ByFederation
from edgefl.engine.federation.federations import Seat
from edgefl.engine.records import DeviceRound, Event, Position, Recorder, Round
from edgefl.rng import Streams
from edgefl.run.composition import compose
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from edgefl.testing.cell import HAND_RADIO, Placed, Rows, Scripted, within

SLOT_S = 0.5e-3
MODEL_S, COMPUTE_S = 0.3, 0.08  # MODEL_S: the time of a model alone in the band
EXACT = 1e-9  # rounding error in s


def two(
    devices: int = 2,
    weights: tuple[float, float] = (1.0, 1.0),
    radio: Mapping[str, Any] | None = None,
    rules: Mapping[str, Any] | None = None,
    of_b: Mapping[str, Any] | None = None,
    work_of_b: tuple[int, int, int, int] | None = None,
) -> tuple[Rows, World]:
    """Run federations a and b, each with half of the devices of a static cell."""
    scenario = Scenario.model_validate(
        {
            "name": "two",
            "devices": {
                "count": devices,
                "mobility": Placed(places_m=[(20.0 + k, 0.0) for k in range(devices)]),
            },
            "radio": within(
                {**HAND_RADIO, "sharing": "dynamic", "link": {"max_efficiency": 1.0}}, radio or {}
            ),
            "rounds": dict(rules or {}),
            "sessions": {"name": "schedule", "count": 1, "rounds": 1},
            "workload": {"payload_bits": 1, "flops_per_sample": 1},
            "federations": {
                "a": {"share": 0.5, "weight": weights[0]},
                "b": {"share": 0.5, "weight": weights[1], **(of_b or {})},
            },
        }
    )
    world, rows = World(scenario, Streams(7)), Rows()
    carry_out(world, rows, Scripted(work=work_of_b) if work_of_b else Scripted())
    return rows, world


def carry_out(world: World, recorder: Recorder, of_b: Scripted) -> None:
    env = simpy.Environment()
    learners = {Seat(0, "a"): Scripted(), Seat(0, "b"): of_b}
    simulation, servers = compose(world, world.radio(env), recorder, learners)
    simulation.run(*(env.process(server.run()) for server in servers.values()))


def ends_s(rows: Rows) -> list[float]:
    return [row.end_s for row in rows.of[Round]]


def test_equal_federations_take_twice_as_long_as_one_alone() -> None:
    rows, _ = two()
    down_s = up_s = 2 * MODEL_S
    assert ends_s(rows) == pytest.approx([down_s + COMPUTE_S + up_s] * 2, abs=EXACT)


def test_a_weight_counts_while_both_send() -> None:
    """At weights 3 : 1, a slot carries 3,750 bits of a and 1,250 bits of b while both send.

    Federation a receives its model by slot 800, trains until 960, and uploads 2 Mbit alone until 1360. The rest takes
    1 Mbit / 3,750 = 267 slots shared with b, until 1627. Federation b receives 1 Mbit by slot 800 and the rest alone
    by 1200, trains until 1360, uploads 267 x 1,250 bits until 1627, and 2,666,250 bits alone until 2161.
    """
    rows, _ = two(weights=(3.0, 1.0))
    assert ends_s(rows) == pytest.approx([1627 * SLOT_S, 2161 * SLOT_S], abs=EXACT)
    received_s = [row.downlink_end_s for row in rows.of[DeviceRound]]
    assert received_s == pytest.approx([800 * SLOT_S, 1200 * SLOT_S], abs=EXACT)


@pytest.mark.parametrize("weights", [(1.0, 1.0), (100.0, 1.0), (0.01, 1.0)])
def test_a_weight_does_not_count_where_the_other_sends_nothing(weights: tuple[float, float]) -> None:
    """Federation b transfers no bits, so a has the whole band at any weights."""
    rows, _ = two(weights=weights, work_of_b=(1, 640, 0, 0))
    assert ends_s(rows) == pytest.approx([COMPUTE_S, MODEL_S + COMPUTE_S + MODEL_S], abs=EXACT)


@pytest.mark.parametrize(
    ("rule", "a_s", "b_s"),
    [
        ("full", 0.4, 0.6),  # each share has full power while in use
        ("per_resource_block", 0.75 * 0.4, 0.25 * 0.4 + 0.2),  # power is divided like the band
    ],
)
def test_each_server_is_billed_for_its_part_of_the_power(rule: str, a_s: float, b_s: float) -> None:
    rows, world = two(weights=(3.0, 1.0), radio={"budget": {"power_over_share": rule}})
    radio = world.scenario.radio
    server_w = dbm_to_watt(radio.budget.server_power_dbm)
    billed = [row.energy_server_j for row in rows.of[Round]]
    assert billed == pytest.approx([server_w * a_s, server_w * b_s], rel=1e-9)


def test_a_device_belongs_to_one_federation_for_good() -> None:
    rows, world = two(devices=9, of_b={"sessions": {"name": "schedule", "count": 3, "rounds": 2}})
    of = world.federation_of.tolist()
    assert sorted(of.count(place) for place in (0, 1)) == [4, 5]
    assert len(rows.of[Round]) == 1 + 3 * 2
    for session in (1, 2, 3):
        took_part = [row.device for row in rows.of[DeviceRound] if row.session == session]
        assert set(took_part) == (set(range(9)) if session == 1 else {k for k in range(9) if of[k] == 1})


def test_a_deadline_of_one_is_not_the_others() -> None:
    """Federation b gives up at its deadline of 0.5 s during its download; from then on a has the band alone.

    Until then a has half of the band and receives 2.5 of 3 Mbit; the rest takes 100 slots, until 0.55 s.
    """
    rows, _ = two(of_b={"rounds": {"deadline_s": 0.5}})
    assert ends_s(rows) == pytest.approx([0.5, 0.55 + COMPUTE_S + MODEL_S], abs=EXACT)
    assert [row.completed for row in rows.of[Round]] == [0, 1]


def test_each_federation_has_its_own_rows() -> None:
    both, world = two(devices=4)
    own = {"a": Rows(), "b": Rows()}
    carry_out(world, ByFederation(own, world.federation_of), Scripted())
    for place, rows in enumerate(own.values()):
        events = [row.event for row in rows.of[Event]]
        assert events.count("session_start") == events.count("session_end") == 1
        devices = {row.device for row in rows.of[DeviceRound]}
        assert devices == {id_ for id_, of in enumerate(world.federation_of.tolist()) if of == place}
        assert rows.of[Round][0] in both.of[Round]


def test_columns_of_many_devices_are_divided_among_their_federations() -> None:
    own = {"a": Rows(), "b": Rows()}
    of = np.array([0, 1, 1, 0])
    ids = [3, 1, 2]
    columns = {"device": ids, "time_s": 2.0, "x_m": np.array([3.0, 1.0, 2.0]), "y_m": 0.0, "cell": 0}
    ByFederation(own, of).write_columns(Position, **columns, gain_db=[None, -1.0, -2.0], sinr_db=None)
    held = {
        name: [(row.device, row.x_m, row.gain_db) for row in rows.of[Position]] for name, rows in own.items()
    }
    assert held == {"a": [(3, 3.0, None)], "b": [(1, 1.0, -1.0), (2, 2.0, -2.0)]}


def test_tiers_are_of_a_federations_own_devices() -> None:
    """The meters of b have two speeds, both slower than the phones of a, and form two tiers of one device each.

    If tiers were formed over all devices, both meters would be in one slow tier, and its rounds would wait for both.
    """
    scenario = Scenario.model_validate(
        {
            "name": "tiers",
            "devices": {
                "count": 4,
                "mobility": Placed(places_m=[(20.0 + k, 0.0) for k in range(4)]),
                "classes": {
                    "phone": {"share": 0.5, "flops_per_cycle": 100},
                    "meter": {"share": 0.25, "flops_per_cycle": 4},
                    "old": {"flops_per_cycle": 1},
                },
            },
            "radio": {**HAND_RADIO, "sharing": "dynamic", "link": {"max_efficiency": 1.0}},
            "sessions": {"name": "schedule", "count": 1, "rounds": 4},
            "workload": {"payload_bits": 1, "flops_per_sample": 1},
            "federations": {
                "a": {"classes": ["phone"]},
                "b": {"classes": ["meter", "old"], "rounds": {"server": {"name": "tiers", "count": 2}}},
            },
        }
    )
    world, of_b = World(scenario, Streams(7)), Scripted()
    carry_out(world, Rows(), of_b)
    own = {(id_,) for id_ in world.of_federation("b").only or ()}
    made = [call[1] for call in of_b.calls if call[0] == "aggregate"]
    assert len(made) == 4
    assert set(made) == own

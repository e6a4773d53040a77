"""Test the members of a federation, which are numbered from 0."""

from typing import Any

import numpy as np

from edgefl import load_scenario
from edgefl.rng import Streams
from edgefl.scenario.members import Members, members_of
from edgefl.scenario.world import World
from tests.refusals import refused_at
from tests.tables import sections

BASE: dict[str, Any] = sections("""
    name=members; devices={count: 9, classes: {phone: {share: 0.5, samples: 0.25}, meter: {}}}
    radio={preset: journal, sharing: dynamic, scheduler: equal_share}
    sessions={name: schedule, count: 2, rounds: 1}; learning={dataset: digits, model: logistic}
    federations.a.share=0.5; federations.b.share=0.5
""")


def of(name: str, **devices: Any) -> tuple[World, Members]:
    scenario = load_scenario({**BASE, "devices": {**BASE["devices"], **devices}})
    world = World(scenario, Streams(7))
    return world, members_of(world.of_federation(name))


def test_numbers_go_as_ids_do() -> None:
    world, members = of("a")
    assert members.ids.tolist() == np.flatnonzero(world.federation_of == 0).tolist()
    assert members.count == len(members.ids)
    assert members.populations == [range(members.count)]
    np.testing.assert_array_equal(members.homes_m, world.movement.positions_m(0.0)[members.ids])
    kept = [0.25 if name == "phone" else 1.0 for name in world.fleet.class_names(members.ids.tolist())]
    assert members.kept.tolist() == kept


def test_without_federations_a_number_is_an_id() -> None:
    world = World(load_scenario({**BASE, "federations": None}), Streams(7))
    members = members_of(world)
    assert (members.ids, members.count) == (None, 9)
    assert members.populations == world.populations


def test_populations_have_the_devices_that_they_have_in_all() -> None:
    world, members = of("b", populations=3)
    for whole, own in zip(world.populations, members.populations, strict=True):
        assert [int(members.ids[number]) for number in own] == [id_ for id_ in members.ids if id_ in whole]
    assert sum(map(len, members.populations)) == members.count


def test_a_population_without_devices_of_a_federation_is_refused() -> None:
    with refused_at("devices.populations"):
        of("a", populations=9)

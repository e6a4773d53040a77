"""Build the simulation of a scenario's world, with a server per federation."""

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import simpy

from edgefl.contract import Learner
from edgefl.engine.air.coverage import remedies
from edgefl.engine.air.radio import Radio
from edgefl.engine.cells.network import Network
from edgefl.engine.cells.positions import looks, recorded_positions
from edgefl.engine.devices.ledger import Ledger
from edgefl.engine.federation.attendance import Attendance
from edgefl.engine.federation.by_federation import ByFederation
from edgefl.engine.federation.cloud import Cloud, CloudLink
from edgefl.engine.federation.deciding.excess import Excess
from edgefl.engine.federation.device import Device, Devices, Processors
from edgefl.engine.federation.federations import Federations, Seat
from edgefl.engine.federation.made import Columns, Observer
from edgefl.engine.federation.observers import access, learning, stalls, versions
from edgefl.engine.federation.open_tails import OpenTails
from edgefl.engine.federation.rounds import Rounds
from edgefl.engine.federation.server import Server
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.records import Recorder, Round
from edgefl.mobility import ends_s
from edgefl.scenario.world import World


def compose(
    world: World,
    radio: Radio,
    recorder: Recorder,
    learners: Mapping[Any, Learner],
    announce: Callable[[Round], None] = lambda row: None,
) -> tuple[Simulation, dict[Any, Server]]:
    """Return the simulation of a run, which uses the radio's clock, and its servers; nothing is started yet.

    Args:
        radio: this world's radio.
        recorder: recorder of all rows; a `ByFederation` if several federations share the cells.
        learners: cell (or `Seat`, if several federations share the cells) -> the learner of the cell's server.
        announce: called with the row of each finished round, whose joules include radio tails up to the round's end.
    """
    scenario, own, env = world.scenario, world.sections, radio.env
    network = world.network(env, recorder, radio.coverage)
    if world.movement.moves:
        radio.follow(network.positions_m, network.survey)
    radio.at_work = network.at_work
    fleet = world.fleet
    devices = Devices(fleet, lambda id_, draws: Device(env, id_, radio.air, draws, network))
    reach = remedies(world.layout, world.fleet)
    federations = Federations(env, own.rounds.max_wait_s, ends_s(world.movement), reach)
    simulation = Simulation(
        env=env,
        radio=radio,
        network=network,
        devices=devices,
        ledger=Ledger(world.count),
        recorder=recorder,
        streams=world.streams,
        federations=federations,
        fleet=fleet,
        open_tails=OpenTails(network.power.tails),
        duration_s=own.duration_s or math.inf,
        announce=announce,
    )
    records = _records_of_positions(world, radio, network, recorder)
    for process in (*network.processes(), *world.background(radio), *records):
        env.process(process)
    cloud = None if own.cloud is None else Cloud(env, own.cloud, federations, recorder)
    recorders = recorder.own if isinstance(recorder, ByFederation) else {}
    servers = {}
    for key, learner in learners.items():
        seat = Seat.of(key)
        part = replace(simulation, recorder=recorders.get(seat.federation, recorder))
        one, excess = world.of_federation(seat.federation), scenario.record.energy_excess
        servers[key] = _server(part, seat.cell, learner, one, cloud, excess=excess)
    return simulation, servers


def _records_of_positions(
    world: World, radio: Radio, network: Network, recorder: Recorder
) -> Iterator[Generator[simpy.Event, None, None]]:
    """Yield the simulation process that records positions; none if they are not recorded."""
    every_s = world.scenario.record.positions_s
    if every_s == "auto":
        times_s = looks(world.count, world.sections.latest_end_s) if network.moves else iter([0.0])
        yield recorded_positions(radio.env, network, recorder, times_s)
    elif every_s != "none":
        times_s = (number * every_s for number in itertools.count())
        by_place = world.extent.radio.propagation.shadowing == "spatial"
        readings = radio.readings if by_place else None
        yield recorded_positions(radio.env, network, recorder, times_s, readings)


def rounds_of(simulation: Simulation, cell: int, learner: Learner, world: World) -> Rounds:
    """Return the object that runs the rounds of a server; `world` is the world of the server's federation."""
    own, processors = world.sections, Processors(simulation.fleet, learner.flops_per_sample)
    only = None if world.only is None else sorted(world.only)
    return Rounds(simulation, Seat(cell, own.name), own.rounds, processors, own.reports, only)


def _server(
    simulation: Simulation, cell: int, learner: Learner, world: World, cloud: Cloud | None, *, excess: bool
) -> Server:
    own, rounds = world.sections, rounds_of(simulation, cell, learner, world)
    link = None if cloud is None else CloudLink(cloud, cell, learner.payload_bits)
    attendance = Attendance(simulation, cell, rounds.seat.label, world.members)
    fleet, radio = simulation.fleet, simulation.radio
    observers: list[Observer] = [
        *[lambda made: Columns(of_devices={"class": fleet.class_names(made.local.ids)})] * bool(fleet.names),
        *[versions] * own.rounds.overlap,
        attendance.without_link,
        *[Excess(simulation, cell, rounds.processors, rounds.reports.bits)] * excess,
        *([link.columns] if link else []),
        *[access] * (radio.air.settings.access is not None),
        *[partial(stalls, simulation)] * radio.may_fail,
        learning,
        lambda made: rounds.choice.note(made),  # build `choice` late, since building it examines all devices
    ]
    return Server(
        simulation,
        rounds,
        learner=learner,
        policy=own.sessions,
        attendance=attendance,
        observers=observers,
        exchange=link.after_round if link else None,
        stop=own.stop,
    )

"""What can be known of a run before it begins, found out on its built world: numbers that do not fit, and round 1.

Keys that contradict each other are refused when the scenario is read (`edgefl/scenario/`); what is
found here needs the drop of the devices, their places, the data or the model.
"""

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from edgefl.config import registry
from edgefl.engine.air import AirInterface
from edgefl.engine.device import Processors
from edgefl.engine.fleet import Fleet
from edgefl.engine.links import DIRECTIONS, Links
from edgefl.engine.many_transfers import sure_to_end, time_transfers
from edgefl.engine.rounds import Rounds
from edgefl.engine.scene import Scene
from edgefl.errors import EdgeflError, about, refused
from edgefl.learning.device_data import DeviceData
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World

SLOWEST = 4  # links of a cell whose transfers are timed
DEEP_FADE = 1e-4  # power that one slot in 10,000 does not have, relative to the mean
Members = Callable[[int], Collection[int] | None]  # session -> the only devices that may take part; None: all
LONGEST_S = 1e9  # of a device's computing in a round, some 30 years: nobody simulates that on purpose


class Nowhere:
    """A recorder that keeps nothing."""

    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        pass

    def write_columns(
        self, row_type: type, *, further: Mapping[str, Sequence[Any]] | None = None, **columns: Any
    ) -> None:
        pass

    def flush(self) -> None:
        pass


def check_world(world: World, *, reports: bool = False) -> None:
    """Check what the drop decides, before any data are read.

    Args:
        reports: whether a learner stands in place of the workload, which may report losses.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    scenario = world.scenario
    scenario.numbers.check(world.count)
    # not a rule of the schema: in a small world for tests a workload may stand for a learner that reports
    if scenario.workload is not None and scenario.sessions.report_bits and not reports:
        name = registry.name_of("sessions", scenario.sessions)
        raise EdgeflError(
            f"{name} sessions end by the devices' losses, and a workload trains nothing: take schedule or"
            " membership, or learning in place of workload",
            ("sessions",),
        )


def check_learners(world: World, scene: Scene, learners: Mapping[int, Any]) -> list[str]:
    """Check data, model and the first round of every federation.

    Args:
        scene: of a rehearsal, not of the run.
        learners: cell -> its learner; they stay as they are.

    Returns:
        Notes: what is allowed, but hardly wanted.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    if world.scenario.learning is not None:
        _check_further_deals(world.scenario, learners)
    return [*_check_first_rounds(world, scene, learners), *_notes(world.scenario)]


def _check_further_deals(scenario: Scenario, learners: Mapping[int, Any]) -> None:
    """Deal the second session's samples too: where label sets take turns, it is the first with the other set."""
    if scenario.sessions.count == 1:
        return
    # any cell's: they all deal alike; of a copy, so that the first session's are not dealt again
    device_data: DeviceData = copy.copy(next(iter(learners.values())).device_data)
    with about("learning", "partition"):
        device_data.deal(2)


def _check_first_rounds(world: World, scene: Scene, learners: Mapping[int, Any]) -> list[str]:
    """Open round 1 of every federation that has devices at time 0, and time its slowest transfers.

    It is the run's own round 1, to the last bit: streams are drawn by name, not in turn.

    Returns:
        Notes.
    """
    scenario, members, network = world.scenario, world.members, scene.network
    empty = [cell for cell in learners if not network.present(cell)] if network.still else []
    if network.still:
        _check_somebody_is_there(scenario, {cell: network.present(cell) for cell in learners}, members)
    for cell, learner in learners.items():
        present = _allowed(members, 1, network.present(cell))
        if present:
            processors = Processors(scene.fleet, learner.flops_per_sample)
            rounds = Rounds(scene, cell, scenario.rounds, processors, scenario.sessions.report_bits)
            _check_first_round(scenario, rounds, present, learner.payload_bits)
    if empty:
        cells = ", ".join(map(str, empty))
        return [f"no device is in cell {cells}, and none will ever come: devices do not move"]
    return []


def _check_somebody_is_there(
    scenario: Scenario, present: Mapping[int, Sequence[int]], members: Members
) -> None:
    """Refuse a run without a result: all devices of some session are elsewhere, and will always be."""
    listed = getattr(scenario.devices.churn, "sessions", ())
    populations = scenario.devices.populations
    groups = max(len(listed), min(populations, scenario.sessions.count or populations))
    for session in range(1, 1 + max(1, groups)):
        if not any(_allowed(members, session, ids) for ids in present.values()):
            place = ("churn", "sessions", str(session - 1)) if listed else ()
            raise EdgeflError(
                f"no device of session {session} is in any cell that has a server, and none will ever come: devices"
                " do not move; take more of them, or a mobility model",
                ("devices", *place),
            )


def _allowed(members: Members, session: int, present: Sequence[int]) -> list[int]:
    """Return who of those present may take part in a session."""
    allowed = members(session)
    return [id_ for id_ in present if allowed is None or id_ in allowed]


def _check_first_round(scenario: Scenario, rounds: Rounds, present: Sequence[int], payload_bits: int) -> None:
    radio = rounds.scene.radio
    phase = "train" if scenario.learning is None else "pilot"
    with refused("radio"):
        selection = rounds.select((1, phase, 1), present, 0)
        many = len(selection.ids)
        down_bits, up_bits = [payload_bits] * many, [payload_bits + rounds.report_bits] * many
        opened = radio.open_round(selection.survey, rounds.cell, {"downlink": down_bits, "uplink": up_bits})
        links = opened.links.at(opened.in_sync())  # the others are given up
        compute_s = _compute_s(scenario, rounds.scene.fleet, rounds.processors)
        if not radio.air.dynamic and len(links):  # else one transfer's end depends on all others
            _check_slowest(radio.air, links, payload_bits, payload_bits + rounds.report_bits, compute_s)


def _check_slowest(air: AirInterface, links: Links, down_bits: int, up_bits: int, compute_s: float) -> None:
    """Time the transfers that take longest: if these end, the others do, and to time thousands takes as many ms."""
    # a link without Doppler keeps the power of its first slot
    static = np.array([link.static for link in links.fading], dtype=bool)
    power = np.array([link.power(0, 1)[0] if link.static else 1.0 for link in links.fading])
    faded = np.where(static, power, DEEP_FADE)
    for direction, bits, from_s in zip(DIRECTIONS, (down_bits, up_bits), (0.0, compute_s), strict=True):
        if sure_to_end(air, links, direction, bits, faded):
            continue
        rate = links.share[direction] * np.log1p(links.snr[direction] * power)
        slowest = links.at(np.argsort(rate)[:SLOWEST].tolist())
        many = len(slowest)
        time_transfers(air, slowest, direction, [bits] * many, np.full(many, from_s))


def _compute_s(scenario: Scenario, fleet: Fleet, processors: Processors) -> float:
    """Compute how long the slowest class of devices computes in a round of e local steps (or of one epoch's)."""
    task = scenario.learning or scenario.workload
    assert task is not None  # the schema wants one of the two
    section = "workload" if scenario.learning is None else "learning"
    try:
        # one device of each class
        _, firsts = np.unique(fleet.of, return_index=True)
        costs = [processors.cost(device, task.steps * task.batch) for device in firsts.tolist()]
        time_s, energy_j = max(cost[0] for cost in costs), max(cost[1] for cost in costs)
    except (ValueError, OverflowError) as error:
        raise EdgeflError(str(error), (section, "flops_per_sample")) from error
    if not (time_s <= LONGEST_S and np.isfinite(energy_j)):
        raise EdgeflError(
            f"a round's computing takes a device {time_s:g} s and {energy_j:g} J: lower flops_per_sample, steps or"
            " batch, or raise devices.clock_hz or devices.flops_per_cycle",
            (section, "flops_per_sample"),
        )
    return time_s


def _notes(scenario: Scenario) -> list[str]:
    learning, sessions = scenario.learning, scenario.sessions.count
    if learning is None or sessions is None or learning.pilot_sessions < sessions:
        return []
    name = registry.name_of("warm_starts", learning.warm_start)
    if name == "previous":  # as pilot sessions begin anyway
        return []
    return [
        f"learning.warm_start {name} never comes to work: sessions 1 to {learning.pilot_sessions} are pilot ones"
        f" (learning.pilot_sessions), and there are {sessions}"
    ]

"""What can be known of a run before it begins, found out on its built world: numbers that do not fit, and round 1.

Keys that contradict each other are refused when the scenario is read (`edgefl/scenario/`); what is
found here needs the drop of the devices, their places, the data or the model.
"""

import copy
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from channel.tdd import Direction
from channel.units import FloatArray
from edgefl.config import registry
from edgefl.contract import Expected
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.links import DIRECTIONS, Links
from edgefl.engine.air.many_transfers import sure_to_end, time_transfers
from edgefl.engine.devices.fleet import Fleet
from edgefl.engine.federation.device import Processors
from edgefl.engine.federation.rounds import Rounds
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.selectors import Decider
from edgefl.engine.servers import OverlappingServer
from edgefl.engine.sessions import TimedPolicy
from edgefl.errors import EdgeflError, about, refused
from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.settings import LearningSettings
from edgefl.learning.warm_starts import WarmStart
from edgefl.scenario import private
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World

MANY_ROUNDS = 100_000  # in a run: about where a day of rounds at once becomes hours of wall time
SHORTEST_ROUND_S = 1e-9
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
    for name in scenario.federations or ():
        one = world.of_federation(name)
        with scenario.naming_federation(name):
            one.scenario.numbers.check_part(len(one.only or ()), name)
            _check_tasks(one.scenario, reports)
    scenario.numbers.check(world.count)
    if not scenario.federations:
        _check_tasks(scenario, reports)


def _check_tasks(scenario: Scenario, reports: bool) -> None:
    """Check that what decides knows what it goes by."""
    if reports and isinstance(scenario.rounds.server, OverlappingServer):
        raise EdgeflError(
            "a learner from outside is asked round by round, and with this server rounds overlap: take synchronous",
            ("rounds", "server"),
        )
    # not a rule of the schema: in a small world for tests a workload may stand for a learner that reports
    if scenario.workload is not None and scenario.sessions.report_bits and not reports:
        name = registry.name_of("sessions", scenario.sessions)
        raise EdgeflError(
            f"{name} sessions end by the devices' losses, and a workload trains nothing: take schedule or"
            " membership, or learning in place of workload",
            ("sessions",),
        )
    selector = scenario.rounds.selector
    asks = isinstance(selector, Decider) and (selector.asks_loss or selector.asks_norm)
    if scenario.workload is not None and asks and not reports:
        name = registry.name_of("selectors", selector)
        raise EdgeflError(
            f"{name} chooses by what devices report of their training, and a workload trains nothing: take learning"
            " in place of workload, or another selector",
            ("rounds", "selector"),
        )


def check_learners(world: World, simulation: Simulation, learners: Mapping[Any, Any]) -> list[str]:
    """Check data, model and the first round of every federation.

    Args:
        simulation: of a rehearsal, not of the run.
        learners: cell, or `Seat` -> its learner; they stay as they are.

    Returns:
        Notes: what is allowed, but hardly wanted.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    if world.scenario.federations:
        notes: list[str] = []
        for name in world.scenario.federations:
            own = {seat.cell: learner for seat, learner in learners.items() if seat.federation == name}
            with world.scenario.naming_federation(name):
                found = check_learners(world.of_federation(name), simulation, own)
            notes += [f"federation {name}: {note}" for note in found]
        return notes
    if world.scenario.learning is not None:
        _check_further_deals(world.scenario, learners)
    return [*_check_first_rounds(world, simulation, learners), *_notes(world.scenario)]


def _check_further_deals(scenario: Scenario, learners: Mapping[int, Any]) -> None:
    """Deal the second session's samples too: where label sets take turns, it is the first with the other set."""
    if scenario.sessions.count == 1:
        return
    # any cell's: they all deal alike; of a copy, so that the first session's are not dealt again
    device_data: DeviceData = copy.copy(next(iter(learners.values())).device_data)
    with about("learning", "partition"):
        device_data.deal(2)


def _check_first_rounds(world: World, simulation: Simulation, learners: Mapping[Any, Any]) -> list[str]:
    """Open round 1 of every federation that has devices at time 0, and time its slowest transfers.

    It is the run's own round 1, to the last bit: streams are drawn by name, not in turn.

    Returns:
        Notes.
    """
    scenario, members, network = world.scenario, world.members, simulation.network
    empty = [cell for cell in learners if not network.present(cell)] if network.still else []
    lengths: list[FirstRound] = []
    if network.still:
        _check_somebody_is_there(scenario, {cell: network.present(cell) for cell in learners}, members)
    for cell, learner in learners.items():
        present = _allowed(members, 1, network.present(cell))
        if present:
            processors = Processors(simulation.fleet, learner.flops_per_sample)
            rounds = Rounds(simulation, cell, scenario.rounds, processors, scenario.report_bits)
            lengths += [_check_first_round(scenario, rounds, present, learner.payload_bits)]
    notes = _notes_of_lengths(scenario, lengths)
    if empty:
        cells = ", ".join(map(str, empty))
        notes.append(f"no device is in cell {cells}, and none will ever come: devices do not move")
    return notes


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
    """Return the devices present that may take part in a session."""
    allowed = members(session)
    return [id_ for id_ in present if allowed is None or id_ in allowed]


@dataclass(frozen=True)
class FirstRound:
    """How long the fastest and the slowest device take in a cell's first round, about: at the links' mean SNR."""

    fastest_s: float
    slowest_s: float


def _check_first_round(
    scenario: Scenario, rounds: Rounds, present: Sequence[int], payload_bits: int
) -> FirstRound:
    radio = rounds.simulation.radio
    phase = "train" if scenario.learning is None else "pilot"
    with refused("radio"):
        task = scenario.learning or scenario.workload
        assert task is not None  # the schema wants one of the two
        work = task.steps * task.batch

        def tell(ids: Sequence[int]) -> Expected:
            """Tell what all devices would do that are alike, in place of a learner whose session has not begun."""
            samples, bits = (work,) * len(ids), (payload_bits,) * len(ids)
            return Expected(tuple(ids), samples, samples, bits, bits)

        selection = rounds.select((1, phase, 1), present, 0, tell)
        many = len(selection.ids)
        down_bits, up_bits = [payload_bits] * many, [payload_bits + rounds.report_bits] * many
        opened = rounds.open(selection, down_bits, up_bits)
        links = opened.links.at(opened.in_sync())  # the others are given up
        computes_s = _computes_s(scenario, rounds.simulation.fleet, rounds.processors)
        both_bits = payload_bits, payload_bits + rounds.report_bits
        if not radio.air.dynamic and len(links):  # else one transfer's end depends on all others
            _check_slowest(radio.air, links, *both_bits, max(computes_s))
    moves_s = np.zeros(len(links))
    for direction, bits in zip(DIRECTIONS, both_bits, strict=True):
        moves_s += _transfers_s(radio.air, links, direction, bits)
    some = len(links) > 0
    return FirstRound(
        min(computes_s) + (float(moves_s.min()) if some else math.inf),
        max(computes_s) + (float(moves_s.max()) if some else 0.0),
    )


def _transfers_s(air: AirInterface, links: Links, direction: Direction, bits: int) -> FloatArray:
    """Return [links] about how long a transfer takes: in a dynamic band, where nobody else has one."""
    if not bits:
        return np.zeros(len(links))
    carrier = air.carriers[direction]
    share = np.ones(len(links)) if air.dynamic else links.share[direction]
    rate = carrier.efficiency(carrier.share_snr(share, links.snr[direction])) * carrier.frame.mean
    with np.errstate(divide="ignore"):
        slots = carrier.needs(np.full(len(links), float(bits)), share) / rate
    taken_s: FloatArray = np.ceil(slots) * air.slot_s
    return taken_s


def _notes_of_lengths(scenario: Scenario, lengths: Sequence[FirstRound]) -> list[str]:
    """Return what the lengths of first rounds say of a run: no update in time, or more rounds than anybody wants."""
    if not lengths:
        return []
    notes, rules = [], scenario.rounds
    fastest_s, round_s = (min(getattr(one, name) for one in lengths) for name in ("fastest_s", "slowest_s"))
    if rules.deadline_s is not None and fastest_s > rules.deadline_s:
        notes.append(
            f"rounds.deadline_s {rules.deadline_s:g}: hardly any update can arrive in time; the fastest device of"
            f" the first round needs about {fastest_s:.3g} s"
        )
    length_s = scenario.latest_end_s
    many = length_s / max(round_s, SHORTEST_ROUND_S)
    at_once = rules.every_s is None and not rules.pause_s
    if at_once and isinstance(scenario.sessions, TimedPolicy) and many > MANY_ROUNDS:
        notes.append(
            f"rounds follow one another at once for {length_s:,.0f} s: about {many:,.0f} of {round_s:.2g} s; set"
            " rounds.every_s or rounds.pause_s"
        )
    return notes


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


def _computes_s(scenario: Scenario, fleet: Fleet, processors: Processors) -> list[float]:
    """Compute how long each class of devices computes in a round of e local steps (or of one epoch's)."""
    task = scenario.learning or scenario.workload
    assert task is not None  # the schema wants one of the two
    section = "workload" if scenario.learning is None else "learning"
    try:
        # one device of each class
        _, firsts = np.unique(fleet.of, return_index=True)
        costs = [processors.cost(device, task.steps * task.batch) for device in firsts.tolist()]
        times_s = [cost[0] for cost in costs]
        time_s, energy_j = max(times_s), max(cost[1] for cost in costs)
    except (ValueError, OverflowError) as error:
        raise EdgeflError(str(error), (section, "flops_per_sample")) from error
    if not (time_s <= LONGEST_S and np.isfinite(energy_j)):
        raise EdgeflError(
            f"a round's computing takes a device {time_s:g} s and {energy_j:g} J: lower flops_per_sample, steps or"
            " batch, or raise devices.clock_hz or devices.flops_per_cycle",
            (section, "flops_per_sample"),
        )
    return times_s


def _notes(scenario: Scenario) -> list[str]:
    learning = scenario.learning
    if learning is None:
        return []
    return [
        *_of_warm_start(learning, scenario.sessions.count),
        *_of_personal_models(learning),
        *_of_chosen_models(learning),
        *_of_theory(learning),
        *private.notes(scenario.rounds, scenario.sessions, learning),
    ]


def _of_warm_start(learning: LearningSettings, sessions: int | None) -> Iterator[str]:
    name = registry.name_of("warm_starts", learning.warm_start)
    # previous: as pilot sessions begin anyway
    if sessions is not None and learning.pilot_sessions >= sessions and name != "previous":
        yield (
            f"learning.warm_start {name} never comes to work: sessions 1 to {learning.pilot_sessions} are pilot ones"
            f" (learning.pilot_sessions), and there are {sessions}"
        )


def _of_personal_models(learning: LearningSettings) -> Iterator[str]:
    """Note personal models that nobody tests."""
    if learning.algorithm.has_personal() and learning.tested_on == "labels":
        name = registry.name_of("algorithms", learning.algorithm)
        yield (
            f"learning.algorithm {name}: accuracy is the global model's, and no table has that of personal models;"
            " learning.tested_on: devices tests them, as accuracy_personal of rounds.csv and devices.csv"
        )


def _of_chosen_models(learning: LearningSettings) -> Iterator[str]:
    """Note which costs of choosing among models are not booked."""
    left_out = []
    if learning.booked != "all":
        left_out.append("the passes in which devices choose a model (learning.booked: all counts them)")
    if learning.payload != "exchanged":
        left_out.append("all models but one on the way down (learning.payload: exchanged)")
    if learning.algorithm.chooses_model and left_out:
        name = registry.name_of("algorithms", learning.algorithm)
        as_one = "booked as fedavg is, " if len(left_out) == 2 else ""
        yield f"learning.algorithm {name}: {as_one}its costs leave out {' and '.join(left_out)}"


def _of_theory(learning: LearningSettings) -> Iterator[str]:
    """Note gradients that are measured for a theorem which does not cover the run."""
    if learning.theory is None:
        return
    algorithm = registry.name_of("algorithms", learning.algorithm)
    start = registry.name_of("warm_starts", learning.warm_start)
    adds_terms = type(learning.warm_start).anchor is not WarmStart.anchor
    optimiser = registry.name_of("optimisers", learning.optimiser)
    beyond = [
        *([f"learning.optimiser is {optimiser}, not sgd"] if optimiser != "sgd" else []),
        *([f"learning.{key} is set" for key in ("weight_decay", "clip_norm") if getattr(learning, key)]),
        *([f"learning.momentum is {learning.momentum:g}, not 0"] if learning.momentum else []),
        *([f"learning.algorithm is {algorithm}, not fedavg"] if algorithm != "fedavg" else []),
        *([f"learning.warm_start {start} adds to the local loss"] if adds_terms else []),
    ]
    if beyond:
        yield (
            f"learning.theory: Theorem 1 supposes plain SGD and FedAvg, and {' and '.join(beyond)}: what is measured"
            " is right, but the terms of edgefl theory are a description, not a bound"
        )

"""Check the built world of a run before it begins: refuse numbers that do not fit, and write notes.

Keys that contradict each other are refused when the scenario is read (`edgefl/scenario/`); these checks need the
placed devices, the data or the model.
"""

import copy
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edgefl.config import registry, scenario_files
from edgefl.config.scenario_fields import given_keys
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.selectors import Selector
from edgefl.engine.sessions import SessionPolicy
from edgefl.errors import EdgeflError, about
from edgefl.learners.building import Learners
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.settings import LearningSettings
from edgefl.learning.warm_starts import WarmStart
from edgefl.places.masts import SitesFile
from edgefl.run import coverage_notes, first_round, whereabouts
from edgefl.scenario.numbers import Numbers
from edgefl.scenario.own_sections import OwnSections
from edgefl.scenario.world import World


def check_world(world: World, *, reports: bool = False) -> list[str]:
    """Check everything that depends on the random placement of the devices, before any data are read.

    Args:
        reports: whether the workload is replaced by a learner that may report losses.

    Returns:
        Notes on settings that are allowed but probably unintended.
    """
    for name, one in world.by_federation.items():
        with one.sections.naming_places():
            if one.only is not None:
                Numbers(world.devices, one.sections).check_part(len(one.only), name)
            _check_task(one.sections, reports=reports)
    Numbers(world.devices, world.sections).check(world.count)
    doubts = world.measured.doubts() if world.measured else ()
    there = (
        whereabouts.in_range,
        whereabouts.beyond_edge,
        whereabouts.never_inside,
        whereabouts.never_served,
        whereabouts.beyond_traces,
        whereabouts.unmoving,
        whereabouts.of_recordings,
    )
    return [*_of_masts(world), *doubts, *(note for check in there for note in check(world))]


def _of_masts(world: World) -> Iterator[str]:
    """Note how many rows of a sites file became sites, and which rows were left out."""
    scenario, source = world.scenario, world.scenario.source
    sites = (given_keys(source.data.get("layout")) or {}).get("sites")
    if isinstance(sites, Mapping):
        with scenario_files.beside(source.folder or Path.cwd()):
            file = SitesFile.model_validate(sites)
            world.places.used.add("plane")  # the sites were read with `plane`, so this key counts as used
            yield file.masts(scenario.origin_lon_lat, scenario.layout.radius_m).note


def _check_task(own: OwnSections, *, reports: bool) -> None:
    """Check that a federation's selector and session policy receive the reports they use."""
    rounds, sessions = own.rounds, own.sessions
    if reports and rounds.overlap:
        raise EdgeflError(
            "an external learner works round by round, but rounds of this server overlap: set server: synchronous",
            ("rounds", "server"),
        )
    # the schema does not check this, since in a small test world a workload may replace a learner that reports
    if own.workload is None or reports:
        return
    if own.stop is not None:
        raise EdgeflError(
            "a score would end this run, but a workload trains nothing: leave stop out, or set learning instead of"
            " workload",
            ("stop",),
        )
    if sessions.report_bits:
        name = registry.name_of("sessions", sessions)
        raise EdgeflError(
            f"{name} ends sessions by the losses that devices report, but a workload trains nothing: set "
            "sessions to schedule or membership, or replace workload with learning",
            ("sessions",),
        )
    if own.reports.bits > 0:
        name = registry.name_of("selectors", rounds.selector)
        raise EdgeflError(
            f"{name} selects devices by reports on their training, but a workload trains nothing: "
            "set learning instead of workload, or another selector",
            ("rounds", "selector"),
        )


def check_learners(world: World, simulation: Simulation, learners: Learners) -> list[str]:
    """Check data, model and the first round of every federation.

    Args:
        simulation: the simulation of a rehearsal, not of the run.
        learners: the learners of each federation, which are not changed.

    Returns:
        Notes on settings that are allowed but probably unintended.
    """
    network = simulation.network
    notes = [
        *world.fleet.notes,
        *whereabouts.in_cells(world, network),
        *coverage_notes.at_start(world, network),
    ]
    for name, own in learners.items():
        one = world.of_federation(name)
        learning, sessions = one.sections.learning, one.sections.sessions
        with one.sections.naming_places():
            if learning is not None:
                _check_further_deals(own, min(learning.partition.turns, sessions.count or math.inf))
            found = first_round.check(one, simulation, own)
            last = (sessions.count or 0) * (
                sessions.longest or 0
            )  # number of a run's last round, 0 if unknown
            if learning is not None:
                learner = next(iter(own.values()))
                found += [
                    *learner.doubts,
                    *learner.device_data.untested(),
                    *_of_steps(learning),
                    *_of_batch(learning, learner.device_data, range(one.members_count)),
                    *_of_warm_start(learning, sessions.count),
                    *(_of_intervals(learning, last) if last else ()),
                    *(learning.drift.notes(last) if learning.drift and last else ()),
                    *_of_personal_models(learning),
                    *_of_costs(learning),
                    *_of_reports(learning, one.sections.rounds.selector, sessions),
                ]
        notes += one.sections.named(found)
    return notes


def _check_further_deals(learners: Mapping[int, Any], sessions: float) -> None:
    """Deal samples for the sessions after the first, to find errors in label sets that only these sessions use."""
    # all cells deal samples alike, so any cell's data will do; a copy leaves the first session's samples unchanged
    device_data: DeviceData = copy.copy(next(iter(learners.values())).device_data)
    with about("learning", "partition"):
        for session in range(2, 1 + int(sessions)):
            device_data.deal(session)


def _of_steps(learning: LearningSettings) -> Iterator[str]:
    """Note a number of steps, other than the default, that epochs replace."""
    local = learning.local
    if local.epochs is not None and local.steps != type(local).model_fields["steps"].default:
        yield (
            f"learning.local.steps {local.steps:,} has no effect, since learning.local.epochs is {local.epochs:,}:"
            " leave out one of the two"
        )


def _of_batch(learning: LearningSettings, device_data: DeviceData, devices: range) -> Iterator[str]:
    """Note a batch, other than the default, that no device can fill in session 1."""
    batch = learning.local.batch
    if batch == type(learning.local).model_fields["batch"].default:
        return
    most = max(device_data.sizes(devices).values(), default=0)
    if batch > most:
        yield (
            f"learning.local.batch {batch:,} exceeds the number of samples of every device (at most {most:,}): each"
            " local step of a device uses all of its samples"
        )


def _of_reports(learning: LearningSettings, selector: Selector, sessions: SessionPolicy) -> Iterator[str]:
    """Note reports that devices send without noise."""
    asks = selector.asks_loss or selector.asks_norm
    names = (
        registry.name_of("selectors", selector) if asks else None,
        registry.name_of("sessions", sessions) if sessions.report_bits else None,
    )
    yield from learning.privacy.unaccounted(*names) if learning.privacy else ()


def _of_warm_start(learning: LearningSettings, sessions: int | None) -> Iterator[str]:
    name = registry.name_of("warm_starts", learning.warm_start)
    # `previous` needs no note: pilot sessions begin that way anyway
    if sessions is not None and learning.pilot_sessions >= sessions and name != "previous":
        pilots = learning.pilot_sessions
        are = "session 1 is a pilot session" if pilots == 1 else f"sessions 1 to {pilots} are pilot sessions"
        yield (
            f"learning.warm_start {name} has no effect: {are} (learning.pilot_sessions), but the run has only"
            f" {sessions}"
        )


def _of_intervals(learning: LearningSettings, last: int) -> Iterator[str]:
    """Note measurements that never fall due, since their interval exceeds the number of the run's last round."""
    intervals = {
        "theory": learning.theory,
        "evaluation.scores_every": learning.evaluation.scores_every,
        "evaluation.every": learning.evaluation.every,
    }
    for key, every in intervals.items():
        if every is not None and every > last:
            yield (
                f"learning.{key} {every:,} measures nothing: it counts the rounds of all sessions, and the run has at"
                f" most {last:,}; set it to {last:,} or less"
            )


def _of_personal_models(learning: LearningSettings) -> Iterator[str]:
    """Yield a note if personal models are trained but never evaluated."""
    if learning.algorithm.has_personal() and learning.evaluation.tested_on == "labels":
        name = registry.name_of("algorithms", learning.algorithm)
        yield (
            f"learning.algorithm {name}: only the global model is tested; to test personal models too, set "
            "learning.evaluation.tested_on: devices (accuracy_personal in rounds.csv and devices.csv)"
        )


def _of_costs(learning: LearningSettings) -> Iterator[str]:
    """Note transmissions and computations of the scenario's algorithm that the costs leave out."""
    name = registry.name_of("algorithms", learning.algorithm)
    sent = list(_not_paid_of_sent(learning)) if learning.cost.payload == "model" else []
    computed = list(_not_paid_of_computed(learning)) if learning.cost.booked != "all" else []
    left_out = [
        *([f"{' and '.join(sent)} (learning.cost.payload: exchanged counts them)"] if sent else []),
        *([f"{' and '.join(computed)} (learning.cost.booked: all counts them)"] if computed else []),
    ]
    if left_out:
        yield f"learning.algorithm {name}: costs of this run leave out {', and '.join(left_out)}"


def _not_paid_of_sent(learning: LearningSettings) -> Iterator[str]:
    """Yield the parts of a transfer that the costs leave out, that is, all parts except one model."""
    algorithm = learning.algorithm
    if algorithm.chooses_model:
        yield "all but one of the models in the downlink"
    for many, way in ((algorithm.vectors_down, "down"), (algorithm.vectors_up, "up")):
        if many > 1:
            yield f"{many - 1} of {many} vectors in the {way}link"
    if algorithm.vectors_at_start:
        yield "an additional vector in the downlink until a device's first update of a session arrives"


def _not_paid_of_computed(learning: LearningSettings) -> Iterator[str]:
    """Yield the computation that the costs leave out: all forward and backward passes outside local training."""
    algorithm, start = learning.algorithm, learning.warm_start
    if algorithm.trains_personal and learning.cost.booked == "nominal":
        yield "the passes that train personal models"
    if algorithm.chooses_model:
        yield "the passes in which devices choose a model"
    if learning.local.early_stopping is not None or algorithm.keeps_apart():
        yield "the forward passes that decide when devices stop"
    if algorithm.whole_gradients:
        yield "the passes over all samples for the algorithm's gradients"
    if type(algorithm).term is not Algorithm.term:
        yield "the passes of the models that the algorithm's loss compares with the trained model"
    if type(start).anchor is not WarmStart.anchor:
        yield (
            f"the passes of the model that warm start {registry.name_of('warm_starts', start)} compares with"
            " the trained model"
        )

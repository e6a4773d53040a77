"""Describe a run before it begins, by building it and probing the costs of its first rounds.

Rounds and simulated time follow from the scenario and the latency of a few rounds; wall time, memory and disk space
are measured by the probe. Later sessions may have longer or shorter rounds, so the figures are rough.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from edgefl.engine.sessions import BoundedPolicy, SessionPolicy
from edgefl.learning import memory
from edgefl.learning.settings import LearningSettings
from edgefl.run.plan import RunPlan
from edgefl.run.probe import UNTRIED, Probe
from edgefl.run.progress import simulated_time, size, wall_time
from edgefl.scenario import memory_needs
from edgefl.scenario.day import named_days
from edgefl.scenario.own_sections import OwnSections
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World

PYTORCH_BYTES = 180e6  # memory of PyTorch's code, if it is loaded only when the run begins; measured


class Range(NamedTuple):
    """The lower and the upper bound of an amount; they are equal if the amount is known."""

    least: float
    most: float

    def text(self, write: Callable[[float], str]) -> str:
        """Format the range as `least to most`, or as one value."""
        least, most = (write(value) if math.isfinite(value) else "unknown" for value in self)
        return least if least == most else f"{least} to {most}"


def total(parts: Iterable[tuple[Range, Range]]) -> Range:
    """Return the sum of ranges, each multiplied by a number."""
    least = most = 0.0
    for number, amount in parts:
        least += number.least * amount.least if number.least else 0.0  # 0 x inf is 0 here
        most += number.most * amount.most if number.most else 0.0
    return Range(least, most)


@dataclass(frozen=True)
class Forecast:
    """Facts and estimates about a run before it begins.

    Attributes:
        devices: number of devices. about: extra lines of description. notes: notes on settings that are allowed but
            probably unintended. payload_bits: bits of a transfer by federation; '' if there is a single one.
            memory_bytes: estimated memory of the run. All of these attributes are empty if the run was not built.
        probe: costs of the run's first rounds, if probed. own: fraction of the training not reused from another run.
    """

    scenario: Scenario
    devices: int = 0
    about: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    payload_bits: Mapping[str, int] = field(default_factory=dict)
    memory_bytes: float = field(default=math.nan, compare=False)
    probe: Probe = UNTRIED
    own: float = 1.0

    @property
    def where(self) -> str:
        """The number of cells, and of cells with a server, in words."""
        cells, served = self.scenario.layout.cells, len(self.scenario.layout.served)
        return f"{cells} cells, {served} with a server" if cells > 1 else "one cell"

    def lines(self) -> list[str]:
        """Return a few lines that describe the run."""
        devices = f"{self.devices} device{'s' * (self.devices != 1)} in {self.where}"
        return [devices, *self.about, *(f"note: {note}" for note in self.notes)]

    @property
    def rounds(self) -> Range:
        """The number of rounds of all federations together."""
        least, most = map(sum, zip(*(rounds for rounds, _ in self._courses()), strict=True))
        if any(named_days(None, self.scenario.devices).values()):
            # there are no rounds while a cell's devices are elsewhere, and rounds take less time while devices rest
            least = min(self.probe.rounds, least)
        return Range(least, most)

    @property
    def simulated_s(self) -> Range:
        """The simulated time, s, at which the last federation ends: least and most."""
        return Range(*(max(ends_s) for ends_s in zip(*(ends for _, ends in self._courses()), strict=True)))

    @property
    def ends_by_the_clock(self) -> bool:
        """Whether `simulated_s` is given by the scenario's duration, and not estimated from the first rounds."""
        return self.simulated_s.least == max(own.latest_end_s for own in self.scenario.by_federation.values())

    def transfer(self, federation: str) -> str:
        """Return the size of a federation's transfer in words."""
        return f"{self.payload_bits[federation] / 1e6:.3g} Mbit"

    @property
    def coded(self) -> bool:
        """Whether fewer bits are sent than `payload_bits`, which the probe's first rounds may not show."""
        return any(_coded(own.learning) for own in self.scenario.by_federation.values())

    @property
    def wall_s(self) -> Range:
        """The wall time of this run, without training that is reused from another run."""
        probe = self.probe
        each_s = (probe.start_wall_s + number * probe.round_wall_s for number in self.rounds)
        return Range(*(self.own * wall_s if self.own else 0.0 for wall_s in each_s))

    @property
    def disk_bytes(self) -> Range:
        """The size of the run's tables and journal, in bytes."""
        return Range(*(number * self.probe.round_bytes for number in self.rounds))

    def row(self) -> dict[str, Any]:
        """Return the run's numbers by name, with bounds of its costs if it was probed."""
        known = {
            "devices": self.devices,
            "cells": self.scenario.layout.cells,
            "payload_bits": max(self.payload_bits.values(), default=0),
            "memory_bytes": self.memory_bytes,
        }
        if self.probe is UNTRIED:
            return known
        costs = {
            "rounds": self.rounds,
            "simulated_s": self.simulated_s,
            "wall_s": self.wall_s,
            "disk_bytes": self.disk_bytes,
        }
        bounds = {
            f"{bound}_{name}": value for name, of in costs.items() for bound, value in of._asdict().items()
        }
        return {**known, "memory_bytes": self.probe.memory_bytes, **bounds}

    def costs(self) -> list[str]:
        """Return the run's costs, one line each."""
        probe, cells = self.probe, len(self.scenario.layout.served)
        wall_s = probe.start_wall_s + probe.rounds * probe.round_wall_s
        tried = f"{probe.rounds} round{'s' * (probe.rounds != 1)}"
        return [
            f"expected from a probe of {tried} in a scratch directory ({wall_time(wall_s)}), roughly:",
            f"  rounds          {self.rounds.text('{:,.0f}'.format)}{f' in {cells} cells' if cells > 1 else ''}",
            f"  simulated time  {self.simulated_s.text(simulated_time)}",
            f"  wall time       {self.wall_s.text(wall_time)}",
            f"  memory          {size(probe.memory_bytes)}",
            f"  disk            {self.disk_bytes.text(size)}, plus snapshots of models",
        ]

    def _courses(self) -> list[tuple[Range, Range]]:
        cells = len(self.scenario.layout.served)
        return [_course(one, cells, self.probe.of(name)) for name, one in self.scenario.by_federation.items()]


def _course(own: OwnSections, cells: int, probe: Probe) -> tuple[Range, Range]:
    """Return a federation's number of rounds in all its cells, and the time at which the last round ends, s."""
    rules = own.rounds
    taken_s, probes = probe.later_s + rules.pause_s, _probes_of_sessions(own)
    spacing_s, probing_s = max(rules.every_s or 0.0, taken_s), probes * taken_s
    end_s = own.latest_end_s
    # with every_s, probe rounds take up none of the times at which training rounds may begin
    for_training_s = end_s if rules.every_s else end_s - probing_s
    by_time = math.ceil(for_training_s / spacing_s) if spacing_s and end_s < math.inf else math.inf
    each = [min(rounds, by_time) for rounds in _rounds_of_sessions(own.sessions)]
    if own.stop is not None:  # at the earliest after the rounds that the probe saw
        each[0] = min(each[0], probe.each)
    rounds = Range(*(cells * (number + probes) for number in each))
    # a run with a duration lasts that long, regardless of its rounds, unless its sessions end earlier
    further_s = 0.0 if rules.every_s else probing_s + probe.connecting_s
    # nothing waits after the last round: not for the pause, nor for the next time at which a round may begin
    idle_s = spacing_s - taken_s if spacing_s > taken_s else 0.0
    in_sequence_s = [number * spacing_s + further_s - idle_s - rules.pause_s for number in each]
    simulated_s = Range(
        *(
            end_s if number == by_time else min(end_s, lasts_s)
            for number, lasts_s in zip(each, in_sequence_s, strict=True)
        )
    )
    return rounds, simulated_s


def _rounds_of_sessions(policy: SessionPolicy) -> Range:
    """Return the number of training rounds of all sessions of a federation; inf if only time bounds it."""
    if policy.count is None or policy.longest is None:
        return Range(math.inf, math.inf)
    shortest = policy.min_rounds if isinstance(policy, BoundedPolicy) else policy.longest
    return Range(policy.count * shortest, policy.count * policy.longest)


def _probes_of_sessions(own: OwnSections) -> int:
    """Return the known number of probe rounds in all sessions of a federation."""
    policy, learning = own.sessions, own.learning
    if learning is None or policy.count is None or policy.longest is None:
        return 0
    return learning.warm_start.probes * max(0, policy.count - learning.pilot_sessions)


def forecast_of(run: RunPlan, probe: Probe = UNTRIED) -> Forecast:
    """Return the forecast of a prepared run, with the costs of its first rounds if a probe measured them."""
    scenario, learner = run.world.scenario, run.learner
    worlds = run.world.by_federation.items()
    added = sum(memory_needs.of_first_round(one, run.learner_of(name)) for name, one in worlds)
    loads = scenario.trains and "torch" not in sys.modules
    return Forecast(
        scenario,
        devices=run.world.count,
        about=tuple(_about(run, learner)),
        notes=(*run.notes, *_day_that_hardly_passes(scenario)),
        payload_bits={name: run.learner_of(name).payload_bits for name in run.world.by_federation},
        memory_bytes=memory.held_bytes() + added + (PYTORCH_BYTES if loads else 0),
        probe=probe,
    )


def _about(run: RunPlan, learner: Any) -> list[str]:
    """Return a few lines that describe a run."""
    own = run.world.sections
    if run.world.alone is None:
        worlds = run.world.by_federation.items()
        return [line for name, one in worlds for line in one.sections.named([_shared(run, name, one)])]
    count, longest = own.sessions.count, own.sessions.longest
    sessions = "as many as begin within duration_s" if count is None else count
    rounds = "ended by the clock" if longest is None else f"of at most {longest} round{'s' * (longest != 1)}"
    lines = [f"sessions: {sessions}, {rounds}"]
    name, parameters = run.model["model"]["name"], run.model["model"]["parameters"]
    if parameters is not None:
        flops = f"{learner.flops_per_sample:,.0f} FLOPs per sample"
        lines.append(f"model {name}: {parameters:,} parameters, {flops}")
    lines.append(_transfers(own.learning, learner))
    samples = _samples(run.world, learner)
    return [*lines, f"samples per device: {samples}"] if samples else lines


def _samples(world: World, learner: Any) -> str:
    """Describe the training samples per device in session 1; empty if nothing is trained."""
    if world.sections.learning is None:
        return ""
    sizes = list(learner.device_data.sizes(range(world.members_count)).values())
    return f"{min(sizes)} to {max(sizes)}, median {float(np.median(sizes)):g}"


def _shared(run: RunPlan, name: str, world: World) -> str:
    """Describe one of several federations that share the cells; the caller adds its name."""
    learner, settings = run.learner_of(name), world.sections.settings
    assert settings is not None
    samples = _samples(world, learner)
    said = f"{world.members_count} device{'s' * (world.members_count != 1)}, weight {settings.weight:g}"
    if samples:
        model = run.model["federations"][name]["model"]["name"]
        said += f", model {model}: {learner.parameters:,} parameters, samples per device: {samples}"
    return f"{said}, {_transfers(world.sections.learning, learner)}"


def _transfers(learning: LearningSettings | None, learner: Any) -> str:
    """Describe the bits of a downlink and an uplink transfer, as one number if equal, uncompressed."""
    up_bits = learner.payload_bits
    uncompressed = " (uncompressed)" if _coded(learning) else ""
    if learning is None or learning.cost.payload == "model" or not up_bits:
        return f"bits per transfer: {up_bits:,}{uncompressed}"
    algorithm, model_bits = learning.algorithm, learning.cost.bits_per_parameter * learner.parameters
    down_bits = up_bits + (algorithm.vectors_down - algorithm.vectors_up) * model_bits
    if algorithm.chooses_model:
        down = f"{up_bits:,} down for each model from which devices choose"
    elif algorithm.vectors_at_start:
        down = f"{down_bits:,} down ({down_bits + model_bits:,} until a device's first update of a session arrives)"
    elif algorithm.vectors_down != algorithm.vectors_up:
        down = f"{down_bits:,} down"
    else:
        return f"bits per transfer: {up_bits:,}{uncompressed}"
    return f"bits per transfer: {down}, {up_bits:,} up{uncompressed}"


def _coded(learning: LearningSettings | None) -> bool:
    return learning is not None and (learning.uplink_codec or learning.downlink_codec) is not None


def _day_that_hardly_passes(scenario: Scenario) -> list[str]:
    """Note devices with a daily rhythm in a run that may last only minutes."""
    lasts = scenario.duration_s or scenario.rounds.every_s or scenario.rounds.pause_s
    if scenario.day is None or lasts or scenario.sessions.longest is None:
        return []
    return [
        f"devices follow a day of {scenario.day.day_s:g} s, but rounds follow each other without a pause: "
        "the run may end before any device sets out; set rounds.every_s, or sessions to daily (sessions at "
        "given hours) with duration_s"
    ]

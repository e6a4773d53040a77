"""The checks of `edgefl validate`: everything that can be known of a scenario or a study before it runs."""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.config.yaml_source import Source
from edgefl.errors import EdgeflError
from edgefl.learning import memory
from edgefl.learning.settings import LearningSettings
from edgefl.run.plan import RunPlan, prepare
from edgefl.scenario import memory_needs
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.scenario import load as load_scenario
from edgefl.studies import planning

PYTORCH_BYTES = 180e6  # of its code, where it is only loaded as the run begins; measured
MOST_OWN = 6  # lines that only some runs of a study have


@dataclass(frozen=True)
class BuildCheck:
    """What is known of a run that was built and checked, and not begun.

    sessions: None: as many as begin within duration_s. longest: None: a session ends at a time, not after rounds.
    samples: fewest, median and most training samples of a device in session 1; None: nothing is trained.
    parameters: M; None: nothing is trained. notes: what is allowed, but hardly wanted. shared_by: where several
    federations share the cells, what each is; payload and sessions are then theirs. transfers: what goes down and up,
    where that differs; empty: the payload both ways. memory_bytes: about what a run will hold; nan: not known.
    """

    devices: int
    cells: int
    federations: int
    sessions: int | None
    longest: int | None
    payload_bits: int
    flops_per_sample: float
    model: str | None
    parameters: int | None
    samples: tuple[int, float, int] | None
    notes: tuple[str, ...] = ()
    shared_by: tuple[str, ...] = ()
    transfers: str = ""
    memory_bytes: float = field(default=math.nan, compare=False)

    @property
    def where(self) -> str:
        """Say in how many cells the devices are."""
        return f"{self.cells} cells, {self.federations} with a server" if self.cells > 1 else "one cell"

    def lines(self) -> list[str]:
        """Say it in a few lines."""
        sessions = "as many as begin in time" if self.sessions is None else self.sessions
        rounds = "each until its time" if self.longest is None else f"of at most {self.longest} rounds"
        if self.shared_by:
            notes = [f"note: {note}" for note in self.notes]
            return [f"{self.devices} devices in {self.where}", *self.shared_by, *notes]
        lines = [f"{self.devices} devices in {self.where}", f"sessions: {sessions}, {rounds}"]
        if self.parameters is not None:
            flops = f"{self.flops_per_sample:,.0f} FLOPs per sample"
            lines.append(f"model {self.model}: {self.parameters:,} parameters, {flops}")
        lines.append(self.transfers or f"bits per transfer: {self.payload_bits:,}")
        if self.samples is not None:
            fewest, median, most = self.samples
            lines.append(f"samples per device: {fewest} to {most}, median {median:g}")
        return lines + [f"note: {note}" for note in self.notes]


def check(
    path: Path, device: str = "auto", load: Loaded | None = None, overrides: Sequence[str] = ()
) -> list[BuildCheck]:
    """Check a scenario or a study (a file with `variants`): build all of it, train nothing, write nothing.

    A study is checked with its first seed.

    Args:
        device: as in `simulate`.
        load: reads the data; None: data must be on this machine, nothing is downloaded.
        overrides: `dotted.key=value` strings; of a scenario, not of a study.

    Returns:
        What is known of the scenario, or of each variant in each setting.

    Raises:
        EdgeflError: names file, line and remedy.
    """
    if is_study(path, overrides):
        return check_builds(planning.plan(path).first_runs(), device, load)
    return [check_build(load_scenario(path, overrides), device, load)]


def is_study(path: Path, overrides: Sequence[str] = ()) -> bool:
    """Whether a file is a study, which has its overrides in its variants.

    Raises:
        EdgeflError: it is one, and there are other overrides.
    """
    study = "variants" in Source(path).data
    if study and overrides:
        raise EdgeflError(f"{path}: is a study; --set is for scenarios, a study has variants")
    return study


def check_builds(
    scenarios: Iterable[tuple[str, Scenario]], device: str = "auto", load: Loaded | None = None
) -> list[BuildCheck]:
    """Build and check several runs, say those of a study.

    Args:
        scenarios: label and scenario of each; a label stands in front of its error.
        device, load: as in `check`.

    Raises:
        EdgeflError: of the first that is wrong.
    """
    load = load or Loaded(download=False)
    checks = []
    for label, scenario in scenarios:
        try:
            checks.append(check_build(scenario, device, load))
        except EdgeflError as error:
            raise EdgeflError(f"{label}: {error}") from error
    return checks


def check_build(scenario: Scenario, device: str = "auto", load: Loaded | None = None) -> BuildCheck:
    """Build and check a run as `simulate` does at its beginning, and no more; see `check`."""
    return facts_of(built(scenario, device, load))


def built(scenario: Scenario, device: str = "auto", load: Loaded | None = None) -> RunPlan:
    """Build a run to look at; what learns may know no more than its size."""
    return prepare(scenario, device=device, threads=1, load=load or Loaded(download=False), sizes_only=True)


def facts_of(run: RunPlan) -> BuildCheck:
    """Return what is known of a run that has been built."""
    scenario, learner = run.world.scenario, run.learner
    added = sum(_added(run, name) for name in scenario.by_federation)
    loads = scenario.trains and "torch" not in sys.modules
    return BuildCheck(
        devices=run.world.count,
        cells=scenario.layout.cells,
        federations=len(run.world.served),
        sessions=scenario.sessions.count,
        longest=scenario.sessions.longest,
        payload_bits=learner.payload_bits,
        flops_per_sample=learner.flops_per_sample,
        model=run.model["model"]["name"],
        parameters=run.model["model"]["parameters"],
        samples=None if scenario.federations else _samples(run, ""),
        memory_bytes=memory.held_bytes() + added + (PYTORCH_BYTES if loads else 0),
        transfers=_transfers(scenario.learning, learner),
        shared_by=tuple(_shared(run, name, one.weight) for name, one in (scenario.federations or {}).items()),
        notes=(*run.notes, *_day_that_hardly_passes(scenario)),
    )


def _added(run: RunPlan, federation: str) -> float:
    """Return about what a round of a federation adds to the memory that a run holds when it begins."""
    world, one = run.world.of_federation(federation), _learner(run, federation)
    count = world.count if world.only is None else len(world.only)
    return memory_needs.of_first_round(
        world.scenario,
        count,
        numbers=one.parameters if world.scenario.learning else 0,
        bits=one.payload_bits,
        flops=one.flops_per_sample,
    )


def _learner(run: RunPlan, federation: str) -> Any:
    """Return a learner of a federation; those of all its cells are alike."""
    return next(iter(run.learners[federation].values()))


def _samples(run: RunPlan, federation: str) -> tuple[int, float, int] | None:
    """Return the fewest, the median and the most training samples of a federation's devices in session 1."""
    world = run.world.of_federation(federation)
    if world.scenario.learning is None:
        return None
    count = world.count if world.only is None else len(world.only)
    sizes = list(_learner(run, federation).device_data.sizes(range(count)).values())
    return min(sizes), float(np.median(sizes)), max(sizes)


def _shared(run: RunPlan, name: str, weight: float) -> str:
    """Say in a line what one of several federations is."""
    learner, samples = _learner(run, name), _samples(run, name)
    said = f"federation {name}: {len(run.world.of_federation(name).only or ())} devices, weight {weight:g}"
    if samples is not None:
        fewest, median, most = samples
        model = run.model["federations"][name]["model"]["name"]
        said += f", model {model}: {learner.parameters:,} parameters, samples per device: {fewest} to {most}"
        said += f", median {median:g}"
    sent = _transfers(run.world.of_federation(name).scenario.learning, learner)
    return f"{said}, {sent or f'bits per transfer: {learner.payload_bits:,}'}"


def _transfers(learning: LearningSettings | None, learner: Any) -> str:
    """Say what goes down and up in bits, where that is not the same; no codec is counted."""
    if learning is None or learning.cost.payload == "model" or not learner.payload_bits:
        return ""
    algorithm, up_bits = learning.algorithm, learner.payload_bits
    model_bits = learning.cost.bits_per_parameter * learner.parameters
    up = f"{up_bits:,} up"
    if algorithm.chooses_model:
        return f"bits per transfer: {up_bits:,} down for each model that devices choose from, {up}"
    if algorithm.vectors_down != algorithm.vectors_up or algorithm.vectors_at_start:
        down_bits = up_bits + (algorithm.vectors_down - algorithm.vectors_up) * model_bits
        more = (
            f" ({down_bits + model_bits:,} as a device begins a session)"
            if algorithm.vectors_at_start
            else ""
        )
        return f"bits per transfer: {down_bits:,} down{more}, {up}"
    return ""


def summary(checks: list[BuildCheck]) -> list[str]:
    """Say in a few lines what is known of the runs of a file; what all of them share is said once."""
    counts = Counter(line for each in checks for line in each.lines())
    most = _memory(max(each.memory_bytes for each in checks))
    if len(checks) == 1:
        return [*counts, *most]
    own = [f"{line}   ({count} of them)" for line, count in counts.items() if count < len(checks)]
    if len(own) > MOST_OWN:
        own = [*own[:MOST_OWN], f"... and {len(own) - MOST_OWN} more lines that not all of them share"]
    shared = [line for line, count in counts.items() if count == len(checks)]
    return [f"{len(checks)} runs for each seed; here with the first:", *shared, *own, *most]


def _memory(held_bytes: float) -> list[str]:
    """Say what a run will hold, with no more digits than are known."""
    if math.isnan(held_bytes):
        return []
    return [f"memory: about {float(f'{held_bytes:.2g}') / 1e9:g} GB for a run"]


def _day_that_hardly_passes(scenario: Scenario) -> list[str]:
    """Note a day by whose clock devices live, and a run that nothing makes last for hours."""
    lasts = scenario.duration_s or scenario.rounds.every_s or scenario.rounds.pause_s
    if scenario.day is None or lasts or scenario.sessions.longest is None:
        return []
    return [
        f"devices live by a day of {scenario.day.day_s:g} s, and rounds follow one another at once: the run may be"
        " over before anybody sets out; give rounds.every_s, or sessions by the hour (daily) with duration_s"
    ]

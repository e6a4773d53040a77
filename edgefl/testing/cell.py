"""Compose a small world, in which devices move and switch on or off at given times, to check results by hand."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import simpy
from pydantic import Field

from edgefl.contract import (
    BEGIN,
    Evaluation,
    Expected,
    Learner,
    LocalRound,
    Now,
    Opening,
    SessionStart,
    Stage,
    StageFacts,
)
from edgefl.engine.churn import Churn
from edgefl.engine.clock import Clock
from edgefl.engine.federation.server import Server
from edgefl.engine.federation.simulation import Simulation
from edgefl.mobility import Mobility, Movement
from edgefl.rng import Streams
from edgefl.run.composition import compose
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World

PAYLOAD_BITS = 3_000_000
TICK_S = 0.01  # simulated time between two checks of which devices are in the cell
HAND_RADIO: dict[str, Any] = {
    "preset": "journal",
    "bandwidth_hz": 10e6,
    "fidelity": "slot",
    "propagation": {"shadowing_std_db": 0.0},
}
FAR_AWAY_M = 1e4  # position of a device beyond the cell edge


def within(section: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's section with changed keys, merged into subsections; components are replaced as a whole."""
    changed = dict(section)
    for key, value in changes.items():
        if (
            isinstance(inner := changed.get(key), Mapping)
            and isinstance(value, Mapping)
            and "name" not in value
        ):
            value = within(inner, value)
        changed[key] = value
    return changed


class Rows:
    """A recorder that stores a run's rows in memory, by row type, and extra columns by name."""

    def __init__(self) -> None:
        self.of: dict[type, list[Any]] = defaultdict(list)
        self.further: dict[str, list[Any]] = {}

    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        for row in rows:
            self.of[type(row)].append(row)
        for name, value in (further or {}).items():
            self.further.setdefault(name, []).append(value)

    def write_columns(
        self, row_type: type, *, further: Mapping[str, Sequence[Any]] | None = None, **columns: Any
    ) -> None:
        for name, values in (further or {}).items():
            self.further.setdefault(name, []).extend(values)
        listed = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in columns.items()}
        many = max((len(v) for v in listed.values() if isinstance(v, list)), default=1)
        cells = {k: v if isinstance(v, list) else [v] * many for k, v in listed.items()}
        self.of[row_type] += [
            row_type(**dict(zip(cells, row, strict=True))) for row in zip(*cells.values(), strict=True)
        ]

    def flush(self) -> None:
        pass


class Placed(Mobility):
    """Place devices at given points; each device may leave the cell and return at given times."""

    places_m: list[tuple[float, float]] = Field(min_length=1, description="x and y of each device, m")
    crossings_s: dict[int, list[float]] = Field(
        default_factory=dict, description="device -> times at which it leaves, returns, leaves ..., s"
    )
    doppler_speed_m_s: float = Field(0.0, ge=0, description="speed that sets the links' Doppler shift")

    def area_radius_m(self, cell_radius_m: float) -> float:
        return cell_radius_m

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        return _Placed(self)


class _Placed:
    def __init__(self, model: Placed) -> None:
        self.moves = bool(model.crossings_s)
        self._model = model
        self._places_m = np.array(model.places_m)

    def positions_m(self, time_s: float) -> np.ndarray:
        positions_m = self._places_m.copy()
        for device, times_s in self._model.crossings_s.items():
            if sum(time_s >= crossing_s for crossing_s in times_s) % 2:
                positions_m[device] += FAR_AWAY_M
        return positions_m

    def doppler_speeds_m_s(self) -> np.ndarray:
        return np.full(len(self._places_m), self._model.doppler_speed_m_s)


class SwitchedAt(Churn):
    """Switch each device on, off, on ... at given times."""

    times_s: list[list[float]] = Field(min_length=1, description="times when each device switches on or off")

    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        return iter(self.times_s[device])


@dataclass
class Scripted:
    """A learner that answers from a script, trains nothing, and records each call.

    work: the work of each device in a round: iterations, samples, bits down, bits up. of: device -> work that
        replaces `work` for this device. scalars: name -> a value per device of the run.
    probes, share: number of probe rounds that open each session, and the share of the present devices that take part.
    losses: the loss that all devices report in each coming round, if a session policy needs losses; `scalars`
        overrides this loss.
    """

    work: tuple[int, int, int, int] = (5, 640, PAYLOAD_BITS, PAYLOAD_BITS)
    of: Mapping[int, tuple[int, int, int, int]] = field(default_factory=dict)
    scalars: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    probes: int = 0
    share: float = 1.0
    losses: list[float] = field(default_factory=list)
    opening: Opening = field(default_factory=Opening)
    evaluation: Evaluation | None = None
    flops_per_sample: float = 1.0e6
    payload_bits: int = PAYLOAD_BITS
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    moments: list[Now] = field(default_factory=list)  # the argument `now` of each call of train()

    def session(self, start: SessionStart) -> Iterator[Stage]:
        self.calls.append(("open", start.number, start.ids, start.longest))
        if self.probes:
            yield _ScriptedStage(self, StageFacts("probe", self.probes, self.share, evaluates=False), start)
        self.calls.append(("begin",))
        yield _ScriptedStage(self, StageFacts("train", rounds=None, opening=self.opening), start)
        self.calls.append(("close",))


@dataclass(frozen=True)
class _ScriptedStage:
    """A stage of a scripted learner, which records each call and answers from the script."""

    learner: Scripted
    facts: StageFacts
    start: SessionStart

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        learner = self.learner
        learner.calls.append((self.facts.phase, round_, tuple(ids)))
        learner.moments.append(now)
        work = [learner.of.get(id_, learner.work) for id_ in ids]
        iterations, samples, down_bits, up_bits = zip(*work, strict=True)
        scalars = {name: tuple(values[id_] for id_ in ids) for name, values in learner.scalars.items()}
        local = LocalRound(tuple(ids), iterations, samples, down_bits, up_bits, scalars)
        if self.start.reports and learner.losses:
            reports = (learner.losses.pop(0),) * len(ids)
            local = replace(local, scalars={**scalars, "loss_received": reports})
        return local

    def expected(self, ids: Sequence[int]) -> Expected:
        work = [self.learner.of.get(id_, self.learner.work) for id_ in ids]
        _, samples, down_bits, up_bits = zip(*work, strict=True)
        return Expected(tuple(ids), samples, samples, down_bits, up_bits)

    def aggregate(self, ids: Sequence[int], weights: Sequence[float] | None = None) -> None:
        self.learner.calls.append(("aggregate", tuple(ids), *(() if weights is None else (tuple(weights),))))

    def submit(self) -> int:
        self.learner.calls.append(("submit",))
        return 1

    def adopt(self, cells: Sequence[int], aggregated: bool) -> None:
        self.learner.calls.append(("adopt", tuple(cells), aggregated))

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        return self.learner.evaluation


@dataclass(frozen=True)
class SmallWorld:
    """A run that is composed but not started, with its learner and the rows that the run writes."""

    simulation: Simulation
    server: Server
    learner: Any
    rows: Rows

    @property
    def env(self) -> simpy.Environment:
        """The environment of the simulation; its `now` is the simulated time in seconds."""
        return self.simulation.env

    def run(self) -> "SmallWorld":
        """Simulate until the server's last session has ended."""
        self.simulation.run(self.env.process(self.server.run()))
        return self


def small_world(
    places_m: Sequence[float | tuple[float, float]],
    *,
    learner: Learner | None = None,
    policy: Any = None,
    crossings_s: Mapping[int, Sequence[float]] | None = None,
    switches_s: Sequence[Sequence[float]] | None = None,
    doppler_speed_m_s: float = 0.0,
    seed: int = 7,
    radio: Mapping[str, Any] | None = None,
    devices: Mapping[str, Any] | None = None,
    rules: Mapping[str, Any] | None = None,
    **sections: Any,
) -> SmallWorld:
    """Compose a run of one cell with devices at given places, as `edgefl run` composes any run.

    With the journal paper's radio, without shadowing and Doppler, a link never changes: all times can be computed by
    hand from its |h|^2. The band is 10 MHz wide; slots are drawn one by one.

    Args:
        places_m: each device's distance from the base station, or the device's x and y, m.
        learner: the cell's learner; by default, a `Scripted` learner.
        policy: the session policy, as an instance or as in YAML; by default, one session of one round.
        crossings_s: device -> times at which it leaves the cell, returns, leaves again ...; a crossing takes effect
            at the tick of that time, or at the next tick.
        switches_s: for each device, times at which it is switched on, off, on ...; by default, devices are always on.
        radio, devices, rules: keys of the scenario's sections radio, devices and rounds.
        sections: additional sections of the scenario, each complete.
    """
    here = [place if isinstance(place, tuple) else (place, 0.0) for place in places_m]
    # cross half a tick early, so that rounding errors in the ticks' times do not matter
    crossings = {id_: [time_s - TICK_S / 2 for time_s in times] for id_, times in (crossings_s or {}).items()}
    mobility = Placed(places_m=here, crossings_s=crossings, doppler_speed_m_s=doppler_speed_m_s)
    churn = {} if switches_s is None else {"churn": SwitchedAt(times_s=switches_s)}
    scenario = Scenario.model_validate(
        {
            "name": "small",
            "seed": seed,
            "devices": {"count": len(here), "mobility": mobility, **churn, **(devices or {})},
            "radio": within(HAND_RADIO, radio or {}),
            "rounds": rules or {},
            "sessions": policy or {"name": "schedule", "count": 1, "rounds": 1},
            "workload": {"payload_bits": 1, "flops_per_sample": 1},  # required, but `learner` replaces it
            **sections,
        }
    )
    world, rows = World(scenario, Streams(seed)), Rows()
    if not world.layout.several:
        world.tick_s = TICK_S
    learner = learner or Scripted()
    simulation, servers = compose(world, world.radio(Clock()), rows, {0: learner})
    return SmallWorld(simulation, servers[0], learner, rows)

"""The books of a cell's server: a row for each round, one for each device in it, and the server's energy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from edgefl.channel.units import FloatArray
from edgefl.contract import Evaluation, LocalRound, Opening
from edgefl.engine.air.gains import RoundKey
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.air.sent_time import SentTime
from edgefl.engine.federation.open_session import OpenSession
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.federation.unsettled import PartTails
from edgefl.engine.parts import Part, total
from edgefl.engine.records import (
    ENERGIES,
    DeviceRound,
    DeviceScore,
    Event,
    EventName,
    Round,
    Session,
    average_columns,
    device_columns,
    energy_columns,
    learner_columns,
    round_columns,
    round_energies,
    stall_columns,
)
from edgefl.engine.settings import RoundSettings

NO_JOULES: dict[str, Any] = dict.fromkeys(("energy_j", *ENERGIES), 0.0)


@dataclass(frozen=True)
class RoundDone:
    """A round that is over, or where rounds overlap, all that ended from one model to the next.

    key: session, phase and number. version: of the model after it. distances_m: of each part's device. local: what
    each part's device did, in the order of parts. taken: whether a part's update was aggregated. opened: the round
    on the radio; of several, the last. starts_s: when each part began, where they did not together. billed: where
    rounds overlap, what has been sent so far. of_round, of_devices: further columns.
    """

    key: RoundKey
    version: int
    start_s: float
    distances_m: Sequence[float] | FloatArray
    local: LocalRound
    parts: Sequence[Part]
    taken: Sequence[bool]
    opened: RadioRound
    evaluation: Evaluation | None
    aggregated: bool
    starts_s: Sequence[float] | None = None
    billed: SentTime | None = None
    of_round: Mapping[str, Any] = field(default_factory=dict)
    of_devices: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class Books:
    """What a cell's server writes down.

    Attributes:
        session: the number of the one under way.
    """

    def __init__(self, simulation: Simulation, cell: int, rules: RoundSettings) -> None:
        self._simulation, self._cell, self._rules = simulation, cell, rules
        self.session = 0
        self._billed_slots = 0.0  # of a dynamic band, whose energy is in the rows written so far

    def write(self, done: RoundDone) -> None:
        """Write a round's rows, once its devices' tails are over; tell of it at once."""
        simulation, evaluation, now_s = self._simulation, done.evaluation, self._simulation.env.now
        session, phase, number = done.key
        columns = device_columns(done.parts)
        row = Round(
            session=session,
            round=number,
            version=done.version,
            phase=phase,
            start_s=done.start_s,
            end_s=now_s,
            latency_s=now_s - done.start_s,
            **round_columns(columns, done.start_s, now_s, done.starts_s),
            **NO_JOULES,
            accuracy=evaluation.accuracy if evaluation else None,
            loss=evaluation.loss if evaluation else None,
            energy_server_j=self._server_energy_j(done),
            cell=self._cell,
        )
        scalars = learner_columns(done.local, done.parts, done.taken)
        further = {
            **done.of_round,
            **(evaluation.scalars if evaluation else {}),
            **average_columns(done.local.averaged, scalars),
            **done.opened.columns(done.parts),
        }

        def paid(tails: list[PartTails]) -> tuple[dict[str, Any], Round]:
            """Return the columns of the round's devices and its row, with their joules."""
            of_devices = {**columns, **energy_columns(columns, [of.energy_j for of in tails])}
            wasted_j = total(
                j for j, taken in zip(of_devices["energy_j"], done.taken, strict=True) if not taken
            )
            return of_devices, replace(row, energy_wasted_j=wasted_j, **round_energies(of_devices))

        def settled(tails: list[PartTails]) -> None:
            of_devices, final = paid(tails)
            lasts_s = [of.lasts_s for of in tails]
            simulation.ledger.book(of_devices, done.taken, lasts_s, simulation.env.now)
            simulation.recorder.write(final, further=further)
            self._write_devices(done, final, of_devices, scalars)

        until_now = simulation.unsettled.add(done.parts, now_s, settled)
        simulation.announce(paid(until_now)[1])
        simulation.recorder.flush()

    def _write_devices(
        self, done: RoundDone, row: Round, columns: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> None:
        """Write the rows about devices of a round whose own row this is."""
        simulation, evaluation = self._simulation, done.evaluation
        key = {"session": row.session, "round": row.round, "phase": row.phase, "cell": row.cell}
        stalls = stall_columns(done.parts) if simulation.radio.may_fail else {}
        if stalls:
            simulation.ledger.book_stalls(columns["device"], stalls)
        simulation.recorder.write_columns(
            DeviceRound,
            **key,
            distance_m=done.distances_m,
            **columns,
            further={
                **self._classes(columns["device"]),
                **done.of_devices,
                **stalls,
                **scalars,
            },
        )
        if evaluation is not None and evaluation.devices is not None:
            scores: dict[str, Any] = {name: list(of) for name, of in evaluation.devices.columns.items()}
            scores |= {**key, "end_s": row.end_s, "device": list(evaluation.devices.ids)}
            simulation.recorder.write_columns(DeviceScore, **scores)

    def open(self, session: OpenSession, opening: Opening) -> None:
        """Write the row of a session whose training begins."""
        row = Session(
            session=session.number,
            start_s=session.start_s,
            reason=session.reason,
            devices=" ".join(map(str, session.members)),
            labels=" ".join(map(str, opening.labels)),
            warm_start=opening.warm_start,
            weights=" ".join(f"{z}:{weight:.6g}" for z, weight in opening.weights.items()),
            accuracy_start=opening.accuracy,
            loss_start=opening.loss,
            cell=self._cell,
        )
        self._simulation.recorder.write(row)

    def event(self, name: EventName, detail: str = "") -> None:
        """Write that something has happened to the session of the cell."""
        now_s = self._simulation.env.now
        row = Event(now_s, name, None, self.session, self._cell, detail=detail)
        self._simulation.recorder.write(row)

    def _server_energy_j(self, done: RoundDone) -> float:
        """Return the joules of the base station in a round, and of the server, if it aggregated."""
        rules, downlinks = self._rules, [part.downlink for part in done.parts]
        sent_j = done.opened.server_energy_j(downlinks, self._billed_slots, done.billed)
        self._billed_slots = done.opened.sent_slots
        return sent_j + (rules.server_power_w * rules.server_s if done.aggregated else 0.0)

    def _classes(self, ids: list[int]) -> dict[str, list[str]]:
        """Return the further column `class` of devices.csv, if there are classes."""
        names = self._simulation.fleet.class_names(ids)
        return {"class": names} if names else {}

"""Write the table rows of a cell's server, for each round and each participant, with the server's energy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from edgefl.contract import Opening
from edgefl.engine.air.sent_time import SentTime, server_energy_j
from edgefl.engine.federation.made import Made, Observer
from edgefl.engine.federation.open_session import OpenSession
from edgefl.engine.federation.open_tails import PartTails
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.parts import total
from edgefl.engine.records import (
    ENERGIES,
    DeviceRound,
    DeviceScore,
    Event,
    EventName,
    Round,
    Session,
    device_columns,
    energy_columns,
    round_columns,
    round_energies,
)
from edgefl.engine.settings import RoundSettings

NO_JOULES: dict[str, Any] = dict.fromkeys(("energy_j", *ENERGIES), 0.0)


class Books:
    """Write the table rows of a cell's server.

    Args:
        observers: functions that return additional columns of each round, in the order of the columns.
    """

    def __init__(
        self, simulation: Simulation, cell: int, rules: RoundSettings, observers: Sequence[Observer]
    ) -> None:
        self._simulation, self._cell, self._rules, self._observers = simulation, cell, rules, observers
        self._billed_slots = 0.0  # slots of a dynamic band for which energy has been booked
        self._billed = SentTime()  # sending time booked so far, if rounds overlap

    def write(self, done: Made) -> None:
        """Announce a round now, and write its rows once its devices' tails have ended."""
        simulation, evaluation, now_s = self._simulation, done.evaluation, self._simulation.env.now
        session, phase, number = done.key
        columns, starts_s = device_columns(done.parts), [job.dispatch.start_s for job in done.jobs]
        observed = [observer(done) for observer in self._observers]
        row = Round(
            session=session,
            round=number,
            version=done.version,
            phase=phase,
            start_s=done.start_s,
            end_s=now_s,
            latency_s=now_s - done.start_s,
            **round_columns(columns, done.start_s, now_s, starts_s),
            **NO_JOULES,
            accuracy=evaluation.accuracy if evaluation else None,
            loss=evaluation.loss if evaluation else None,
            energy_server_j=self._server_energy_j(done),
            cell=self._cell,
        )
        of_round = {name: value for one in observed for name, value in one.of_round.items()}
        of_jobs = {name: values for one in observed for name, values in one.of_devices.items()}

        def paid(tails: list[PartTails]) -> tuple[dict[str, Any], Round]:
            """Return the devices' columns and the round's row, including energies."""
            of_devices = {**columns, **energy_columns(columns, [of.energy_j for of in tails])}
            wasted_j = total(
                j for j, taken in zip(of_devices["energy_j"], done.taken, strict=True) if not taken
            )
            return of_devices, replace(row, energy_wasted_j=wasted_j, **round_energies(of_devices))

        def settled(tails: list[PartTails], cut_j: float) -> None:
            of_devices, final = paid(tails)
            final = replace(final, energy_cut_j=cut_j + to_come_j)
            lasts_s = [of.lasts_s for of in tails]
            listened_s = [(down.listened_s, up.listened_s) for down, up in done.accesses]
            simulation.ledger.book(of_devices, done.taken, lasts_s, listened_s, simulation.env.now)
            radios = [simulation.devices[part.device].draws for part in done.parts]
            simulation.ledger.book_circuits(done.parts, radios)
            simulation.recorder.write(final, further=of_round)
            self._write_devices(done, final, of_devices, of_jobs)

        to_come_j = simulation.network.power.tails_of_work_j(done.busy)
        until_now = simulation.open_tails.add(done.parts, now_s, (self, session), settled)
        simulation.announce(paid(until_now)[1])
        simulation.recorder.flush()

    def _write_devices(
        self,
        done: Made,
        row: Round,
        columns: Mapping[str, Any],
        further: Mapping[str, Any],
    ) -> None:
        """Write the device rows of a round."""
        simulation, evaluation = self._simulation, done.evaluation
        key = {"session": row.session, "round": row.round, "phase": row.phase, "cell": row.cell}
        simulation.recorder.write_columns(
            DeviceRound,
            **key,
            distance_m=[job.dispatch.distances_m[job.position] for job in done.jobs],
            **columns,
            further=further,
        )
        if evaluation is not None and evaluation.devices is not None:
            scores: dict[str, Any] = {name: list(of) for name, of in evaluation.devices.columns.items()}
            scores |= {**key, "end_s": row.end_s, "device": list(evaluation.devices.ids)}
            simulation.recorder.write_columns(DeviceScore, **scores)

    def open(self, session: OpenSession, opening: Opening) -> None:
        """Write the row of a session at the start of its training."""
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

    def event(self, session: int, name: EventName, detail: str) -> None:
        """Write an event of one of the cell's sessions."""
        row = Event(self._simulation.env.now, name, None, session, self._cell, detail=detail)
        self._simulation.recorder.write(row)

    def _server_energy_j(self, done: Made) -> float:
        """Return the base station's joules in a round, plus those of the server if it aggregated."""
        rules, downlinks = self._rules, [part.downlink for part in done.parts]
        billed = self._billed if done.overlaps else None
        sent_j = server_energy_j(done.opened, downlinks, self._billed_slots, billed)
        self._billed_slots = done.opened.sent_slots
        self._billed.forget(done.unbooked_s)
        return sent_j + (rules.server_power_w * rules.server_s if done.aggregated else 0.0)

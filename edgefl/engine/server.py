"""The server: opens sessions, runs synchronous rounds, aggregates what arrives."""

from collections.abc import Generator, Sequence

import simpy

from edgefl.contract import Evaluation, Learner, Phase
from edgefl.engine.device import Device, Work
from edgefl.engine.population import Population
from edgefl.engine.radio import Radio
from edgefl.engine.records import DeviceRound, Event, Recorder, Round, Session
from edgefl.engine.selectors import Selector
from edgefl.engine.sessions import SessionPolicy, SessionState
from edgefl.errors import EdgeflError
from edgefl.rng import Streams


class Server:
    """One federation: the devices in its cell, its learner, its sessions."""

    def __init__(
        self,
        env: simpy.Environment,
        *,
        population: Population,
        devices: Sequence[Device],
        radio: Radio,
        learner: Learner,
        policy: SessionPolicy,
        selector: Selector,
        recorder: Recorder,
        streams: Streams,
        max_wait_s: float,
    ) -> None:
        self.env = env
        self._population = population
        self._devices = devices
        self._radio = radio
        self._learner = learner
        self._policy = policy
        self._selector = selector
        self._recorder = recorder
        self._streams = streams
        self._max_wait_s = max_wait_s

    def run(self) -> Generator[simpy.Event, None, None]:
        """All sessions, one after the other."""
        reason = "start"
        for session in range(1, self._policy.count + 1):
            reason = yield from self._session(session, reason)

    def _session(self, session: int, reason: str) -> Generator[simpy.Event, None, str]:
        yield from self._wait_for_devices()
        self._population.session = session
        start_s = self.env.now
        members = self._population.present
        self._recorder.write(Event(start_s, "session_start", None, session, reason))
        opening = self._learner.open_session(session, members, self._policy.longest)
        for number in range(1, opening.probe_rounds + 1):
            yield from self._round(session, "probe", number, opening.probe_share)
        start = self._learner.begin_training()
        self._recorder.write(
            Session(
                session=session,
                start_s=start_s,
                reason=reason,
                devices=" ".join(map(str, members)),
                labels=" ".join(map(str, start.labels)),
                warm_start=start.warm_start,
                weights=" ".join(f"{z}:{weight:.6g}" for z, weight in start.weights.items()),
                accuracy_start=start.accuracy,
                loss_start=start.loss,
            )
        )
        ended = None
        rounds = 0
        while ended is None:
            rounds += 1
            yield from self._round(session, opening.phase, rounds)
            ended = self._policy.reason_to_end(
                SessionState(rounds, frozenset(members), frozenset(self._population.present))
            )
        self._learner.close_session()
        self._recorder.write(Event(self.env.now, "session_end", None, session, ended))
        return ended

    def _round(
        self, session: int, phase: Phase, number: int, share: float = 1.0
    ) -> Generator[simpy.Event, None, None]:
        yield from self._wait_for_devices()
        key = (session, phase, number)
        start_s = self.env.now
        ids = self._select(key, share)
        links = self._radio.open_round(ids, self._population.positions_m(), key)
        iterations = self._learner.local_update(ids, phase, number)
        learner = self._learner
        rows = [DeviceRound(session, number, phase, id_, links[id_].distance_m) for id_ in ids]
        parts = []
        for row in rows:
            work = Work(learner.flops_per_sample, iterations[row.device], learner.batch)
            device = self._devices[row.device]
            parts.append(device.start(device.take_part(row, links[row.device], learner.payload_bits, work)))
        yield self.env.all_of(parts)
        arrived = [row.device for row in rows if row.outcome == "completed"]
        if arrived:
            learner.aggregate(arrived)
        else:
            self._recorder.write(Event(self.env.now, "no_updates", None, session, f"{phase} round {number}"))
        # a probe trains an auxiliary model: the global one has not changed and is not tested
        evaluation = learner.evaluate() if phase != "probe" else None
        self._book(key, start_s, rows, evaluation)

    def _select(self, key: tuple[int, str, int], share: float) -> list[int]:
        """Participants of a round; a probe takes a random share of those the selector chose."""
        chosen = self._selector.select(self._population.present, self._streams("select", *key))
        if share >= 1.0:
            return chosen
        order = self._streams("probe", *key).permutation(len(chosen))
        return sorted(chosen[i] for i in order[: max(1, round(share * len(chosen)))])

    def _wait_for_devices(self) -> Generator[simpy.Event, None, None]:
        """An empty cell holds the federation up until a device enters it."""
        if self._population.present:
            return
        began_s = self.env.now
        self._recorder.write(Event(began_s, "waiting_for_devices", None, self._population.session))
        yield self._population.arrival() | self.env.timeout(self._max_wait_s)
        if not self._population.present:
            raise EdgeflError(
                f"no device entered the cell within {self._max_wait_s} s of simulated time {began_s:.3f} s; "
                "raise devices.count or cell.radius_m, or allow a longer rounds.max_wait_s"
            )

    def _book(
        self,
        key: tuple[int, str, int],
        start_s: float,
        rows: Sequence[DeviceRound],
        evaluation: Evaluation | None,
    ) -> None:
        session, phase, number = key
        ends_s = [_end_s(row, start_s) for row in rows]
        energy_rx_j = sum(row.energy_rx_j for row in rows)
        energy_tx_j = sum(row.energy_tx_j for row in rows)
        energy_compute_j = sum(row.energy_compute_j for row in rows)
        self._recorder.write(
            Round(
                session=session,
                round=number,
                version=self._learner.version,
                phase=phase,
                start_s=start_s,
                end_s=self.env.now,
                latency_s=self.env.now - start_s,
                latency_mean_s=sum(ends_s) / len(ends_s) - start_s,
                participants=len(rows),
                completed=sum(row.outcome == "completed" for row in rows),
                downlink_bits=sum(row.downlink_bits for row in rows),
                uplink_bits=sum(row.uplink_bits for row in rows),
                energy_j=energy_rx_j + energy_tx_j + energy_compute_j,
                energy_rx_j=energy_rx_j,
                energy_tx_j=energy_tx_j,
                energy_compute_j=energy_compute_j,
                accuracy=evaluation.accuracy if evaluation else None,
                loss=evaluation.loss if evaluation else None,
            ),
            *rows,
        )
        self._recorder.flush()


def _end_s(row: DeviceRound, start_s: float) -> float:
    """When a participant was done, or left."""
    return max(t for t in (start_s, row.downlink_end_s, row.compute_end_s, row.uplink_end_s) if t is not None)

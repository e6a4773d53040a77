"""The server of one cell: opens sessions, runs synchronous rounds, aggregates what arrives."""

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass

import simpy

from channel.tdd import Direction
from edgefl.contract import Evaluation, Learner, Phase
from edgefl.engine.device import Device, Work
from edgefl.engine.gains import RoundKey, Survey
from edgefl.engine.ledger import Ledger
from edgefl.engine.network import Network
from edgefl.engine.radio import Radio
from edgefl.engine.records import DeviceRound, Event, Recorder, Round, Session
from edgefl.engine.selectors import Candidates, Selector, with_surplus
from edgefl.engine.sessions import SessionPolicy, SessionState
from edgefl.engine.settings import RoundSettings
from edgefl.errors import EdgeflError
from edgefl.rng import Streams

COMPLETED = "completed"


@dataclass(frozen=True)
class Selection:
    """Who takes part in a round, how many updates it waits for, and what was surveyed of their links."""

    ids: list[int]
    wanted: int
    survey: Survey


class Server:
    """One federation: the devices of its cell, its learner, its sessions.

    Args:
        members: of a session's number, the only devices that may take part; None: all that are present.
    """

    def __init__(
        self,
        env: simpy.Environment,
        *,
        cell: int,
        network: Network,
        devices: Sequence[Device],
        radio: Radio,
        learner: Learner,
        policy: SessionPolicy,
        rules: RoundSettings,
        ledger: Ledger,
        recorder: Recorder,
        streams: Streams,
        members: Callable[[int], Collection[int] | None] = lambda session: None,
    ) -> None:
        self.env = env
        self.cell = cell
        self._network = network
        self._devices = devices
        self._radio = radio
        self._learner = learner
        self._policy = policy
        self._rules = rules
        self._selector: Selector = rules.selector
        self._ledger = ledger
        self._recorder = recorder
        # the streams of one cell alone keep their names: its numbers do not depend on the layout's options
        self._scope: tuple[int, ...] = (cell,) if cell else ()
        self._streams = streams
        self._members = members
        self._session = 0
        self._turn = 0

    def run(self) -> Generator[simpy.Event, None, None]:
        """All sessions, one after the other."""
        reason = "start"
        for session in range(1, self._policy.count + 1):
            reason = yield from self._run_session(session, reason)

    def _run_session(self, session: int, reason: str) -> Generator[simpy.Event, None, str]:
        self._session = session
        yield from self._wait_for_devices()
        start_s = self.env.now
        members = self._present()
        self._event("session_start", reason)
        opening = self._learner.open_session(session, members, self._policy.longest)
        for number in range(1, opening.probe_rounds + 1):
            yield from self._round("probe", number, opening.probe_share)
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
                cell=self.cell,
            )
        )
        ended, rounds = None, 0
        losses: list[float] = []
        while ended is None:
            rounds += 1
            arrived = yield from self._round(opening.phase, rounds)
            if self._policy.report_bits and arrived:
                losses.append(self._learner.reported_loss(arrived))
            now = frozenset(self._present())
            ended = self._policy.reason_to_end(SessionState(rounds, frozenset(members), now, tuple(losses)))
        self._learner.close_session()
        self._event("session_end", ended)
        return ended

    def _round(
        self, phase: Phase, number: int, share: float = 1.0
    ) -> Generator[simpy.Event, None, list[int]]:
        """One synchronous round; returns the devices whose update arrived."""
        yield from self._wait_for_devices()
        key = (self._session, phase, number)
        start_s = self.env.now
        chosen = self._select(key, share)
        learner = self._learner
        uplink_bits = learner.payload_bits + self._policy.report_bits
        payloads: dict[Direction, int] = {"downlink": learner.payload_bits, "uplink": uplink_bits}
        links = self._radio.open_round(chosen.survey, self.cell, payloads)
        iterations = learner.local_update(chosen.ids, phase, number)
        rows = [DeviceRound(*key_of(key), id_, links[id_].distance_m, cell=self.cell) for id_ in chosen.ids]
        parts = []
        for row in rows:
            work = Work(learner.flops_per_sample, iterations[row.device], learner.batch)
            device = self._devices[row.device]
            link = links[row.device]
            parts.append(device.start(device.take_part(row, link, learner.payload_bits, uplink_bits, work)))
        yield from self._wait_for_updates(rows, parts, chosen.wanted)

        arrived = [row.device for row in rows if row.outcome == COMPLETED]
        aggregated = len(arrived) >= self._rules.min_updates
        if aggregated:
            learner.aggregate(arrived)
        else:
            self._event("no_updates", f"{phase} round {number}: {len(arrived)} arrived")
        # a probe trains an auxiliary model: the global one has not changed and is not tested
        evaluation = learner.evaluate() if phase != "probe" else None
        self._book(key, start_s, rows, evaluation, aggregated)
        return arrived

    def _wait_for_updates(
        self, rows: Sequence[DeviceRound], parts: Sequence[simpy.Process], wanted: int
    ) -> Generator[simpy.Event, None, None]:
        """Until all are done, the deadline has come, or with over-selection enough updates are there."""
        everyone = self.env.all_of(parts)
        ends: list[simpy.Event] = [everyone]
        if self._rules.deadline_s is not None:
            ends.append(self.env.timeout(self._rules.deadline_s))
        if wanted < len(parts):
            ends.append(self._enough(rows, parts, wanted))
        yield self.env.any_of(ends)
        if any(part.is_alive for part in parts):
            missing = sum(row.outcome == COMPLETED for row in rows) < wanted
            for row in rows:
                if not row.outcome:
                    self._devices[row.device].leave("late" if missing else "surplus")
            # a new condition: one inside an any_of that has fired no longer listens
            yield self.env.all_of(parts)

    def _enough(
        self, rows: Sequence[DeviceRound], parts: Sequence[simpy.Process], wanted: int
    ) -> simpy.Event:
        enough = self.env.event()

        def count(_: simpy.Event) -> None:
            if not enough.triggered and sum(row.outcome == COMPLETED for row in rows) >= wanted:
                enough.succeed()

        for part in parts:
            part.callbacks.append(count)
        return enough

    def _present(self) -> list[int]:
        present = self._network.present(self.cell)
        allowed = self._members(self._session)
        return present if allowed is None else [id_ for id_ in present if id_ in allowed]

    def _select(self, key: RoundKey, share: float) -> Selection:
        """Participants of a round; a probe takes a random share of those the selector chose."""
        present = self._present()
        survey = self._radio.survey(self._network.positions_m(), present, self.cell, self._named(key))
        wanted = self._selector.wanted(len(present))
        chosen = self._selector.select(
            Candidates(present, survey.gains_db, self._turn),
            with_surplus(wanted, self._rules.over_selection, len(present)),
            self._streams("select", *key, *self._scope),
        )
        if key[1] == "probe":
            wanted = max(1, round(share * len(chosen)))
            order = self._streams("probe", *key, *self._scope).permutation(len(chosen))
            chosen = sorted(chosen[i] for i in order[:wanted])
        else:
            self._turn += 1
        return Selection(chosen, wanted, survey.of(chosen))

    def _wait_for_devices(self) -> Generator[simpy.Event, None, None]:
        """An empty cell holds the federation up until a device is there."""
        if self._present():
            return
        began_s = self.env.now
        self._event("waiting_for_devices")
        limit = self.env.timeout(self._rules.max_wait_s)
        while not self._present():
            yield self._network.arrival(self.cell) | limit
            if limit.processed and not self._present():
                raise EdgeflError(
                    f"cell {self.cell} has had no device for {self._rules.max_wait_s} s since simulated time"
                    f" {began_s:.3f} s; raise devices.count or cell.radius_m, or allow a longer"
                    " rounds.max_wait_s",
                    ("rounds", "max_wait_s"),
                )

    def _book(
        self,
        key: RoundKey,
        start_s: float,
        rows: Sequence[DeviceRound],
        evaluation: Evaluation | None,
        aggregated: bool,
    ) -> None:
        session, phase, number = key
        ends_s = [_end_s(row, start_s) for row in rows]
        energy_rx_j = sum(row.energy_rx_j for row in rows)
        energy_tx_j = sum(row.energy_tx_j for row in rows)
        energy_compute_j = sum(row.energy_compute_j for row in rows)
        energy_wasted_j = 0.0
        for row in rows:
            wasted = not (aggregated and row.outcome == COMPLETED)
            self._ledger.book(row, wasted)
            energy_wasted_j += row.energy_j if wasted else 0.0
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
                completed=sum(row.outcome == COMPLETED for row in rows),
                downlink_bits=sum(row.downlink_bits for row in rows),
                uplink_bits=sum(row.uplink_bits for row in rows),
                energy_j=energy_rx_j + energy_tx_j + energy_compute_j,
                energy_rx_j=energy_rx_j,
                energy_tx_j=energy_tx_j,
                energy_compute_j=energy_compute_j,
                accuracy=evaluation.accuracy if evaluation else None,
                loss=evaluation.loss if evaluation else None,
                energy_server_j=self._radio.server_draw_w * _union_s(rows),
                energy_wasted_j=energy_wasted_j,
                cell=self.cell,
            ),
            *rows,
        )
        self._recorder.flush()

    def _named(self, key: RoundKey) -> RoundKey:
        """The round's name for draws that belong to it."""
        return key if not self._scope else (key[0], f"{key[1]} in cell {self.cell}", key[2])

    def _event(self, name: str, detail: str = "") -> None:
        self._recorder.write(Event(self.env.now, name, None, self._session, self.cell, detail=detail))


def key_of(key: RoundKey) -> tuple[int, int, str]:
    """Session, round and phase in the order of a row."""
    return key[0], key[2], key[1]


def _end_s(row: DeviceRound, start_s: float) -> float:
    """When a participant was done, or left."""
    return max(t for t in (start_s, row.downlink_end_s, row.compute_end_s, row.uplink_end_s) if t is not None)


def _union_s(rows: Sequence[DeviceRound]) -> float:
    """Time in which at least one downlink was under way."""
    intervals = sorted(
        (row.downlink_start_s, row.downlink_end_s)
        for row in rows
        if row.downlink_start_s is not None and row.downlink_end_s is not None
    )
    total_s, covered_s = 0.0, 0.0
    for start_s, end_s in intervals:
        total_s += max(0.0, end_s - max(start_s, covered_s))
        covered_s = max(covered_s, end_s)
    return total_s

"""Run a scenario in a thread that waits for decisions from another thread."""

import queue
import threading
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import PrivateAttr

from edgefl.engine.parts import total
from edgefl.engine.records import Nowhere, Round, Session
from edgefl.engine.selectors import Candidates, Decider, Decision, Memory
from edgefl.run.composition import compose
from edgefl.run.plan import prepare
from edgefl.scenario.scenario import Scenario

Question = tuple[Candidates, int]  # the candidates of a decision, and the maximum number of participants


class _Stopped(Exception):
    """An exception raised in the run's thread when the run is stopped."""


class _Handover:
    """Pass one question and one answer at a time between the run's thread and the thread that decides.

    Attributes:
        questions: one for each decision; at the end, the exception that ended the run, or None.
        answers: the decisions, or the request to stop the run.
    """

    def __init__(self) -> None:
        self.questions: queue.SimpleQueue[Question | BaseException | None] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[Decision | _Stopped] = queue.SimpleQueue()

    def ask(self, candidates: Candidates, number: int) -> Decision:
        """Request a decision on the candidates, in the run's thread, and wait for the answer."""
        self.questions.put((candidates, number))
        answer = self.answers.get()
        if isinstance(answer, _Stopped):
            raise answer
        return answer

    def question(self) -> Question | None:
        """Wait for the next question; return None once the run is over.

        Raises:
            Exception: the exception that ended the run.
        """
        asked = self.questions.get()
        if isinstance(asked, BaseException):
            raise asked
        return asked


class Controlled(Decider):
    """Request each decision from the caller outside the run; while the run is only checked, take the first."""

    fills_places: ClassVar[bool] = True
    sets: ClassVar[frozenset[str]] = frozenset({"shares", "power", "clock"})
    _handover: _Handover | None = PrivateAttr(default=None)

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        if self._handover is None:
            return Decision(list(candidates.ids)[:number])
        return self._handover.ask(candidates, number)

    def listen(self, handover: _Handover) -> None:
        """Pass the run's questions through a given `_Handover` from now on."""
        self._handover = handover


class ControlledWithReports(Controlled):
    """A `Controlled` decider for devices that report their losses and the lengths of their updates."""

    asks_loss: ClassVar[bool] = True
    asks_norm: ClassVar[bool] = True


class _Rounds(Nowhere):
    """A recorder that keeps rows of rounds and sessions in memory, and discards all other rows."""

    def __init__(self) -> None:
        self.rows: list[Round] = []
        self.sessions: list[Session] = []

    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        self.rows += [row for row in rows if isinstance(row, Round)]
        self.sessions += [row for row in rows if isinstance(row, Session)]


class ControlledRun:
    """A run under way that waits for decisions; it writes no files.

    Attributes:
        rows: the rows of the rounds so far, whose joules include radio tails up to each round's end.
        number_of_devices: number of devices in the run.
        waiting: the candidates of the decision for which the run waits, or None. most: the maximum number of
            participants.
    """

    def __init__(self, scenario: Scenario, decider: Controlled, *, device: str = "cpu") -> None:
        rounds = scenario.rounds.model_copy(update={"selector": decider})
        plan = prepare(scenario.model_copy(update={"rounds": rounds}), device=device)
        self._handover, self.rows, self._settled = _Handover(), list[Round](), _Rounds()
        decider.listen(self._handover)
        simulation, servers = compose(
            plan.world, plan.radio, self._settled, plan.learners[""], self.rows.append
        )
        env = simulation.env
        ends = [env.process(server.run()) for server in servers.values()]
        self.number_of_devices = len(simulation.devices)

        def work() -> None:
            error: BaseException | None = None
            try:
                simulation.run(*ends)
            except _Stopped:
                return
            except BaseException as caught:
                error = caught
            self._handover.questions.put(error)

        self._thread = threading.Thread(target=work, name="controlled run", daemon=True)
        self._thread.start()
        self.waiting: Candidates | None = None
        self.most = 0
        self._wait()

    @property
    def spent_j(self) -> float:
        """The joules of all finished rounds, including their radio tails so far."""
        settled = self._settled.rows
        return total(row.energy_j for row in (*settled, *self.rows[len(settled) :]))

    @property
    def accuracy_start(self) -> float:
        """The accuracy of the first session's model before its training; 0 if none is measured."""
        return next((row.accuracy_start or 0.0 for row in self._settled.sessions), 0.0)

    def go_on(self, decision: Decision) -> Candidates | None:
        """Apply a decision; return the next round's candidates, or None once the run is over."""
        self.waiting = None  # a failed run no longer waits for a decision
        self._handover.answers.put(decision)
        self._wait()
        return self.waiting

    def _wait(self) -> None:
        """Wait for the run's next question, or its end."""
        self.waiting, self.most = self._handover.question() or (None, 0)

    def stop(self) -> None:
        """End the run, if it has not ended yet."""
        if self.waiting is not None:
            self.waiting = None
            self._handover.answers.put(_Stopped())
            self._thread.join()

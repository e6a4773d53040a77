"""Choose a cell's participants by calling its selector, and check the result."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from edgefl.config import registry
from edgefl.contract import ForetellingStage, Stage
from edgefl.engine.air.gains import LargeScaleState
from edgefl.engine.federation.deciding.history import History
from edgefl.engine.federation.deciding.outlook import Outlook
from edgefl.engine.federation.device import Processors
from edgefl.engine.federation.made import NOTHING, Columns, Made
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.selectors import Candidates, Decider, Decision, Memory, Selector
from edgefl.engine.sessions import SessionPolicy
from edgefl.errors import EdgeflError

REPORT_BITS = 32  # size of each number that a participant reports


class Reports(NamedTuple):
    """Whether each participant sends its loss and its update's norm with the update, and how many bits these take."""

    bits: int
    loss: bool
    norm: bool

    @classmethod
    def of(cls, selector: Selector, sessions: SessionPolicy) -> "Reports":
        """Return the reports that the selector or the session policy needs; a loss needed by both is sent once."""
        of_loss = sessions.report_bits or REPORT_BITS * selector.asks_loss
        return cls(of_loss + REPORT_BITS * selector.asks_norm, of_loss > 0, selector.asks_norm)


@dataclass(frozen=True)
class Selection:
    """The participants of a round, their links, and the number of updates that the round waits for."""

    decision: Decision
    wanted: int
    large_scale: LargeScaleState

    @property
    def ids(self) -> list[int]:
        """The participants, sorted."""
        return list(self.decision.ids)

    @classmethod
    def of(cls, decision: Decision, wanted: int, state: LargeScaleState) -> "Selection":
        """Return the selection that follows from a decision, given the state of all candidates' links."""
        ids = list(decision.ids)
        return cls(decision, min(wanted, len(ids)), state.of(ids))

    @classmethod
    def whole(cls, ids: list[int], state: LargeScaleState) -> "Selection":
        """Return a selection of exactly the given devices; the round waits for all their updates."""
        return cls.of(Decision(ids), len(ids), state)


class Choice:
    """The selector of a cell, with the data on which it bases its choice of participants.

    A decider sees all of `Candidates`, and has a memory. A plain selector sees only ids, gains_db, turn and last.

    Args:
        report_bits: bits that each participant sends in addition to its update.
    """

    def __init__(
        self,
        selector: Selector,
        simulation: Simulation,
        cell: int,
        processors: Processors,
        deadline_s: float | None,
        report_bits: int,
    ) -> None:
        self._selector, self._report_bits = selector, report_bits
        # number of each device's last selection by a plain selector, [devices], and number of the next selection
        self._last, self._next = np.zeros(len(simulation.devices)), 1
        if isinstance(selector, Decider):
            self._outlook = Outlook(simulation, cell, processors, deadline_s)
            self._history = History(self._outlook.devices)
            self._memory: Memory = {}
            self._session = 0

    def decide(
        self,
        state: LargeScaleState,
        session: int,
        turn: int,
        wanted: int,
        number: int,
        rng: np.random.Generator,
        stage: Stage,
        busy: Sequence[int] = (),
    ) -> Decision:
        """Choose the participants of a round.

        Args:
            state: state of all candidates' links.
            turn: number of earlier rounds of this global model.
            wanted: number of updates that the round waits for. number: maximum number of participants.
            stage: returns the work expected of devices; called once per session and device.
            busy: other devices that are present, but cannot be dispatched now.

        Raises:
            EdgeflError: the selector does not return a valid decision.
        """
        decider = self._selector
        if not isinstance(decider, Decider):
            some = Candidates(state.ids, state.gains_db, turn, self._last[list(state.ids)])
            decision = self._valid(Decision(decider.select(some, number, rng)), some, number)
            self._count(np.asarray(decision.ids, dtype=np.intp))
            return decision
        if session != self._session:
            self._session = session
            self._history.known[:] = False
        ids = np.asarray(state.ids, dtype=np.intp)
        news = ids[~self._history.known[ids]].tolist()
        if news:
            told = cast(ForetellingStage, stage).expected(news)
            self._history.expect(told, self._report_bits)
        fades, history = decider.sees_fading, self._history
        candidates = self._outlook.candidates(state, history, turn, wanted, busy, fades=fades)
        decision = self._valid(decider.decide(candidates, number, rng, self._memory), candidates, number)
        self._memory = decision.memory
        return decision

    def _count(self, ids: np.ndarray) -> None:
        """Number the selections of these devices [n], sorted, in the order of their last selections and ids."""
        order = np.argsort(self._last[ids], kind="stable")
        self._last[ids[order]] = self._next + np.arange(len(ids))
        self._next += len(ids)

    def _valid(self, decision: Decision, candidates: Candidates, number: int) -> Decision:
        fault = f"returned {decision!r:.40}: return a Decision"
        if isinstance(decision, Decision):
            fault = decision.fault(getattr(self._selector, "sets", ()), candidates, number)
        if fault:
            raise EdgeflError(
                f"{registry.name_of('selectors', self._selector)} {fault}", ("rounds", "selector")
            )
        # convert NumPy integers, which would overflow in keys of random streams
        return replace(decision, ids=[int(id_) for id_ in decision.ids])

    def note(self, made: Made) -> Columns:
        """Record the outcome of a round for a decider."""
        if isinstance(self._selector, Decider) and made.facts.evaluates:
            self._history.note(made.local, made.parts, made.turn - 1, self._report_bits)
        return NOTHING

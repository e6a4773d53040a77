"""How a cell's server asks its decider, and what it looks at in the answer."""

from collections.abc import Callable, Sequence

import numpy as np

from edgefl.config import registry
from edgefl.contract import Expected, LocalRound, Stage
from edgefl.engine.air.gains import LargeScaleState
from edgefl.engine.federation.device import Processors
from edgefl.engine.federation.history import History
from edgefl.engine.federation.outlook import Outlook
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.parts import Part
from edgefl.engine.selectors import Candidates, Decider, Decision, Memory
from edgefl.engine.sessions import SessionPolicy
from edgefl.errors import EdgeflError

Tell = Callable[[Sequence[int]], Expected]  # ids -> what the learner expects of them
REPORT_BITS = 32  # of a number that a participant reports
TOLERANCE = 1e-9  # of the sum of shares


def report_bits(selector: object) -> int:
    """Return what each participant sends beside its update for a selector."""
    return REPORT_BITS * (selector.asks_loss + selector.asks_norm) if isinstance(selector, Decider) else 0


def bits_of_reports(selector: object, sessions: SessionPolicy) -> int:
    """Return what each participant sends beside its update; a loss that both ask for is sent once."""
    asked: int = sessions.report_bits
    if asked and isinstance(selector, Decider) and selector.asks_loss:
        return asked + REPORT_BITS * selector.asks_norm
    return asked + report_bits(selector)


def told_by(stage: Stage) -> Tell:
    """Return what tells a decider what devices would do in a stage."""

    def refuse(ids: Sequence[int]) -> Expected:
        raise EdgeflError(
            "the selector asks what devices would do in a round, and the learner does not say: give its stage"
            " expected(ids) (edgefl.contract.ForetellingStage), or take one that does not ask, such as uniform",
            ("rounds", "selector"),
        )

    expected: Tell = getattr(stage, "expected", refuse)
    return expected


class Deciding:
    """A cell's decider with all that it is told: what it remembers, and what has become of its participants.

    Args:
        report_bits: what each participant sends beside its update.
    """

    def __init__(
        self,
        simulation: Simulation,
        cell: int,
        decider: Decider,
        processors: Processors,
        deadline_s: float | None,
        report_bits: int,
    ) -> None:
        self._decider = decider
        self._report_bits = report_bits
        self._history = History(len(simulation.devices))
        self._memory: Memory = {}
        self._session = 0
        self._outlook = Outlook(simulation, cell, processors, deadline_s)

    def decide(
        self,
        state: LargeScaleState,
        session: int,
        turn: int,
        wanted: int,
        number: int,
        rng: np.random.Generator,
        tell: Tell,
    ) -> Decision:
        """Ask the decider.

        Args:
            state: of the links of all who are present.
            wanted: how many updates the round asks for. number: how many may take part, at most.
            tell: what the learner expects of devices; asked once in a session about each.

        Raises:
            EdgeflError: its answer is no decision.
        """
        if session != self._session:
            self._session = session
            self._history.known[:] = False
        ids = np.asarray(state.ids, dtype=np.intp)
        news = ids[~self._history.known[ids]].tolist()
        if news:
            self._history.expect(tell(news), self._report_bits)
        candidates = self._outlook.candidates(
            state, self._history, turn, wanted, fades=self._decider.sees_fading
        )
        decision = self._decider.decide(candidates, number, rng, self._memory)
        self._check(decision, candidates, number)
        self._memory = decision.memory
        return decision

    def note(self, local: LocalRound, parts: Sequence[Part], turn: int) -> None:
        """Take in a round that is over."""
        self._history.note(local, parts, turn, self._report_bits)

    def _check(self, decision: Decision, candidates: Candidates, number: int) -> None:
        """Refuse what is no decision."""
        if not isinstance(decision, Decision):
            raise self._wrong(f"returned {decision!r:.40}: return a Decision")
        ids = list(decision.ids)
        if not 1 <= len(ids) <= number or ids != sorted(set(ids)) or not set(ids) <= set(candidates.ids):
            raise self._wrong(f"chose {ids}: return 1 to {number} of the candidates' ids, in ascending order")
        own_hz = candidates.clock_hz[np.searchsorted(candidates.ids, ids)]
        for name, key, most in (
            ("down_shares", "shares", 1.0),
            ("up_shares", "shares", 1.0),
            ("power", "power", 1.0),
            ("clock_hz", "clock", own_hz * (1 + TOLERANCE)),
        ):
            values = getattr(decision, name)
            if values is None:
                continue
            if key not in self._decider.sets:
                raise self._wrong(f"gave {name}: add {key!r} to its `sets`")
            if np.shape(values) != (len(ids),) or not np.all((values > 0) & (values <= most)):
                raise self._wrong(
                    f"gave {name} {values}: one for each of {len(ids)} devices, above 0 to {most}"
                )
            if key == "shares" and np.sum(values) > 1 + TOLERANCE:
                raise self._wrong(f"gave {name} that sum to {np.sum(values):g}: at most 1")

    def _wrong(self, what: str) -> EdgeflError:
        name = registry.name_of("selectors", self._decider)
        return EdgeflError(f"{name} {what}", ("rounds", "selector"))

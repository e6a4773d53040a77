"""Track the progress of a wrapped strategy's session, and keep the models of past sessions."""

from collections.abc import Mapping
from numbers import Integral, Real
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from edgefl.config import registry
from edgefl.errors import EdgeflError, quoted
from edgefl.learning.warm_starts import Final, Saved, WarmStart
from edgefl.learning.warm_starts._answers import opening_of, pilot_of, retained_by

if TYPE_CHECKING:
    from torch import Tensor

# attributes that change from session to session, in addition to the saved sessions
CHANGING = (
    "number",
    "probes_left",
    "opening",
    "weights",
    "told",
    "probe",
    "_trained",
    "_nodes",
    "_initial",
    "_pilot",
    "_gradient",
)


def _is_count(given: object) -> bool:
    return isinstance(given, Integral) and not isinstance(given, bool) and int(given) >= 1


def _check(name: str, given: object, fits: bool, wanted: str) -> None:
    if not fits:
        raise EdgeflError(f"{name} is {quoted(given)}: pass {wanted}")


class Openings:
    """The models of past sessions, and the progress of the current session; a model is arrays by name."""

    def __init__(
        self, warm_start: WarmStart, rounds: int | None, changed_share: float | None, pilot_sessions: int
    ) -> None:
        own = isinstance(warm_start, WarmStart)
        _check("warm_start", warm_start, own, "one of edgefl.learning.warm_starts, such as Similarity()")
        name = registry.name_of("warm_starts", warm_start)
        if name == "continuous" or getattr(warm_start, "check", False):
            raise EdgeflError(
                f"{name}: a strategy cannot run the training or the check of this warm start; choose "
                "similarity without check"
            )
        if getattr(warm_start, "pilot_model", "mean") == "good":
            raise EdgeflError("pilot_model good needs accuracies of pilot sessions: choose mean or ema")
        _check("pilot_sessions", pilot_sessions, _is_count(pilot_sessions), "a whole number of at least 1")
        _check("rounds", rounds, rounds is None or _is_count(rounds), "a whole number of at least 1, or None")
        share: object = changed_share
        fits = share is None or (
            isinstance(share, Real) and not isinstance(share, bool) and 0 < float(share) <= 1
        )
        _check("changed_share", share, fits, "a number above 0 and up to 1, or None")
        self.name, self._warm_start = name, warm_start
        self._rounds, self._changed_share, self._pilots = rounds, changed_share, pilot_sessions
        self.number = 0  # number of the session
        self.probes_left = 0
        # model sent to nodes until a training round has made a model
        self.opening: dict[str, np.ndarray] | None = None
        self.weights: Mapping[int, float] = {}
        self.told = False  # whether the scenario decides when sessions begin
        self._trained = 0  # number of training rounds in this session
        self._nodes: frozenset[int] = frozenset()  # nodes connected at the start of the session
        self._initial: dict[str, np.ndarray] = {}
        self._finals: list[Final] = []
        self._saved: list[Saved] = []
        self._pilot: Tensor | None = None
        self.probe: dict[str, np.ndarray] = {}
        self._gradient: Tensor | None = None

    def due(self, nodes: frozenset[int]) -> bool:
        """Return whether a session begins with this round in Flower's own runs; in edgefl the scenario decides."""
        if self.told:
            return False
        if self.number == 0:
            return True
        if self.probes_left or not self._trained:
            return False
        if self._rounds is not None and self._trained >= self._rounds:
            return True
        gone = len(self._nodes - nodes) / max(1, len(self._nodes))
        return self._changed_share is not None and gone >= self._changed_share

    def begin(self, model: Mapping[str, np.ndarray], nodes: frozenset[int] = frozenset()) -> int:
        """Save the open session's last model, and begin the next session; return the number of probe rounds."""
        if self.number == 0:
            self._initial = dict(model)
        elif self.number <= self._pilots:
            self._finals.append(Final(self._flat(model), 0.0))
        else:
            self._saved.append(Saved(self.number, self._flat(model), self._gradient))
            self._saved = retained_by(self._warm_start, self._saved)
        self.number, self._trained, self._nodes = self.number + 1, 0, nodes
        self._gradient, self.weights = None, {}
        self.probes_left = self._warm_start.probes if self.number > self._pilots else 0
        if self.probes_left:
            if self._pilot is None:
                self._warm_start = self._warm_start.of_model(self._layout(model))
                self._pilot = pilot_of(self._warm_start, self._finals, self._flat(self._initial))
            self.probe = self._named(self._pilot, model)
        return self.probes_left

    def probed(self, measured: Mapping[str, np.ndarray] | None) -> None:
        """Record the average model of a probe round, or None if no update arrived."""
        self.probes_left -= 1
        if measured is not None:
            assert self._pilot is not None
            self.probe = dict(measured)
            self._gradient = self._flat(measured) - self._pilot

    def open(self, model: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the model that the session's training starts from."""
        self.opening = dict(model)
        if self.number > self._pilots:
            opening = opening_of(self._warm_start, self._flat(model), self._saved, self._gradient)
            self.opening, self.weights = self._named(opening.model, model), opening.weights
        return self.opening

    def trained(self) -> None:
        """Record that a round of training begins."""
        self._trained += 1

    def aggregated(self) -> None:
        """Record that the session has made its first model."""
        self.opening = None

    @property
    def is_pilot(self) -> bool:
        """Whether the session is a pilot session."""
        return self.number <= self._pilots

    @property
    def opened(self) -> bool:
        """Whether the session's training has begun, or its opening model has been made."""
        return self._trained > 0 or self.opening is not None

    def state_dict(self) -> dict[str, Any]:
        """Return the sessions' models and progress as data."""
        kept = {name: getattr(self, name) for name in CHANGING}
        return kept | {
            "weights": dict(self.weights),
            "finals": [(one.model, one.accuracy) for one in self._finals],
            "saved": [(one.session, one.model, one.gradient) for one in self._saved],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the sessions' models and progress as returned by `state_dict`."""
        for name in CHANGING:
            setattr(self, name, state[name])
        self._finals = [Final(*one) for one in state["finals"]]
        self._saved = [Saved(*one) for one in state["saved"]]
        if self._pilot is not None:
            self._warm_start = self._warm_start.of_model(self._layout(self._initial))

    def _flat(self, model: Mapping[str, np.ndarray]) -> "Tensor":
        """Return a model's floating-point values as a vector [M]; integers, such as counters, are left out."""
        import torch

        parts = [np.asarray(array, np.float64).ravel() for array in _trained(model).values()]
        return torch.from_numpy(np.concatenate(parts))

    def _named(self, flat: "Tensor", like: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        made, at, numbers = dict(like), 0, flat.numpy()
        for name, array in _trained(like).items():
            made[name] = numbers[at : at + array.size].reshape(array.shape).astype(array.dtype)
            at += array.size
        return made

    def _layout(self, model: Mapping[str, np.ndarray]) -> Any:
        parts = _trained(model)
        return SimpleNamespace(names=[*parts], shapes=[array.shape for array in parts.values()])


def _trained(model: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array for name, array in model.items() if np.issubdtype(array.dtype, np.floating)}

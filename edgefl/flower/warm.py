"""Warm starts of recurring sessions for any Flower strategy."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.strategy import Strategy as OldStrategy
from flwr.server.strategy.aggregate import aggregate
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy
from flwr.serverapp.strategy.strategy_utils import aggregate_arrayrecords

from edgefl.errors import EdgeflError
from edgefl.flower.keeping import restore, state_of
from edgefl.flower.openings import Openings
from edgefl.learning.warm_starts import WarmStart


def warm_started(
    strategy: Any,
    warm_start: WarmStart | None = None,
    *,
    rounds: int | None = None,
    changed_share: float | None = None,
    pilot_sessions: int = 1,
) -> Any:
    """Wrap a strategy so that each session starts from a weighted mix of past sessions' models.

    Each session after the pilot sessions begins with `warm_start.probes` rounds in which the nodes train from the
    pilot model; the plain average of their models yields the gradient of this session's data, and is then discarded.
    The session starts from a mean of the saved models, weighted by their gradients' similarity to this gradient.

    Inside edgefl (`edgefl.flower.learner`) the scenario defines the sessions. In Flower's own runs, the next session
    begins after `rounds` rounds of training, or when a share `changed_share` of the nodes connected at the start of
    the current session have left, whichever comes first. Probe rounds count towards Flower's `num_rounds`.

    The strategy keeps its own state, such as server momentum, in all sessions; its reference model is set to the
    opening model.

    Args:
        strategy: a strategy from flwr.serverapp or flwr.server.
        warm_start: a warm start of `edgefl.learning.warm_starts`; None: Similarity(). Warm starts that change
            training (continuous), or that need test accuracies (pilot_model: good) or a check, are not supported.
        pilot_sessions: the number P of pilot sessions; sessions 1 to P start with the last model.
    """
    from edgefl.learning.warm_starts.similarity import Similarity

    openings = Openings(warm_start or Similarity(), rounds, changed_share, pilot_sessions)
    if isinstance(strategy, Strategy):
        return _WarmStarted(strategy, openings)
    if isinstance(strategy, OldStrategy):
        return _OldWarmStarted(strategy, openings)
    raise EdgeflError(f"{type(strategy).__name__} is not a Flower strategy")


def _arrays(record: ArrayRecord) -> dict[str, np.ndarray]:
    return {name: array.numpy() for name, array in record.items()}


def _record(model: Mapping[str, np.ndarray]) -> ArrayRecord:
    return ArrayRecord({name: Array(array) for name, array in model.items()})


class _Around:
    """Base class of the wrappers that add warm starts to a strategy, for both kinds of strategies."""

    def __init__(self, inner: Any, openings: Openings) -> None:
        self.inner, self.openings = inner, openings
        self._probing = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # such as __deepcopy__, which would copy only the inner strategy
            raise AttributeError(name)
        return getattr(vars(self)["inner"], name)

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the wrapped strategy and of its sessions as data."""
        return {
            "inner": state_of(self.inner),
            "openings": self.openings.state_dict(),
            "probing": self._probing,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the wrapped strategy and its sessions as returned by `state_dict`."""
        restore(self.inner, state["inner"])
        self.openings.load_state_dict(state["openings"])
        self._probing = state["probing"]

    def begin_session(self, arrays: ArrayRecord) -> int:
        """Begin a session of the scenario; return its number of probe rounds."""
        self.openings.told = True
        return self.openings.begin(_arrays(arrays))

    def open_session(self, arrays: ArrayRecord) -> ArrayRecord:
        """Return the model that the session's training starts from."""
        return _record(self.openings.open(_arrays(arrays)))

    def _to_send(
        self, model: Mapping[str, np.ndarray], nodes: frozenset[int]
    ) -> Mapping[str, np.ndarray] | None:
        """Begin a round; return the model to send instead of the last aggregated model, or None."""
        openings = self.openings
        if openings.due(nodes):
            openings.begin(model, nodes)
        self._probing = openings.probes_left > 0
        if self._probing:
            return openings.probe
        if not openings.opened:
            openings.open(model)
        openings.trained()
        return openings.opening


class _WarmStarted(_Around, Strategy):  # type: ignore[misc]
    """A flwr.serverapp strategy with warm starts."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        sent = self._to_send(_arrays(arrays), frozenset(grid.get_node_ids()))
        if sent is not None:
            arrays = _record(sent)
        # the reference model that the strategy measures changes from
        opens = sent is not None and not self._probing
        if opens and getattr(self.inner, "current_arrays", None) is not None:
            self.inner.current_arrays = None
        return self.inner.configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        if not self._probing:
            arrays, metrics = self.inner.aggregate_train(server_round, replies)
            if arrays is not None:
                self.openings.aggregated()
            return arrays, metrics
        whole = [reply.content for reply in replies if reply.has_content()]
        key = getattr(self.inner, "weighted_by_key", "num-examples")
        self.openings.probed(_arrays(aggregate_arrayrecords(whole, key)) if whole else None)
        return None, None

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        return [] if self._probing else self.inner.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        return None if self._probing else self.inner.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        self.inner.summary()


class _OldWarmStarted(_Around, OldStrategy):  # type: ignore[misc]
    """An older flwr.server strategy with warm starts."""

    def initialize_parameters(self, client_manager: Any) -> Any:
        return self.inner.initialize_parameters(client_manager)

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> Any:
        nodes = frozenset(map(int, client_manager.all()))
        sent = self._to_send(_named_by_number(parameters_to_ndarrays(parameters)), nodes)
        if sent is not None:
            parameters = ndarrays_to_parameters(list(sent.values()))
        if sent is not None and not self._probing:
            if hasattr(self.inner, "current_weights"):  # FedOpt's reference model
                self.inner.current_weights = parameters_to_ndarrays(parameters)
            elif getattr(self.inner, "initial_parameters", None) is not None:  # FedAvgM's reference model
                self.inner.initial_parameters = parameters
        return self.inner.configure_fit(server_round, parameters, client_manager)

    def aggregate_fit(self, server_round: int, results: Sequence[Any], failures: Sequence[Any]) -> Any:
        if not self._probing:
            parameters, metrics = self.inner.aggregate_fit(server_round, results, failures)
            if parameters is not None:
                self.openings.aggregated()
            return parameters, metrics
        probed = None
        if results:
            probed = _named_by_number(
                aggregate([(parameters_to_ndarrays(one.parameters), one.num_examples) for _, one in results])
            )
        self.openings.probed(probed)
        return None, {}

    def configure_evaluate(self, server_round: int, parameters: Any, client_manager: Any) -> Any:
        return (
            [] if self._probing else self.inner.configure_evaluate(server_round, parameters, client_manager)
        )

    def aggregate_evaluate(self, server_round: int, results: Sequence[Any], failures: Sequence[Any]) -> Any:
        return self.inner.aggregate_evaluate(server_round, results, failures)

    def evaluate(self, server_round: int, parameters: Any) -> Any:
        return None if self._probing else self.inner.evaluate(server_round, parameters)


def _named_by_number(arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {str(number): np.asarray(array) for number, array in enumerate(arrays)}

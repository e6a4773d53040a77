"""One interface to Flower's two kinds of strategies, new ones (flwr.serverapp) and older ones (flwr.server)."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.common import (
    Code,
    GetParametersIns,
    MessageType,
    MessageTypeLegacy,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
)
from flwr.compat.common import recorddict_compat as compat
from flwr.server.client_manager import SimpleClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import Strategy as OldStrategy
from flwr.serverapp.strategy import Strategy

from edgefl.errors import EdgeflError, quoted
from edgefl.flower.nodes import TOO_FEW, Nodes, device_of, lost, node_of

MOST_SAMPLES = 10**12
NUMBERS = "fiub"  # `dtype.kind` of real numbers in NumPy
Metrics = Mapping[str, Any]
EvaluateFn = Callable[[int, ArrayRecord], MetricRecord | None]


class _OfMessages:
    """The rounds of a flwr.serverapp strategy, which makes messages and aggregates replies.

    Attributes:
        arrays: the global model's arrays. combines: whether Flower's own code combines replies array by array.
    """

    def __init__(
        self,
        strategy: Strategy,
        nodes: Nodes,
        initial: Any,
        config: Mapping[str, Any],
        evaluate: EvaluateFn | None,
    ) -> None:
        self.strategy, self._nodes, self._evaluate = strategy, nodes, evaluate
        self._config = config
        self._key = getattr(strategy, "weighted_by_key", "num-examples")
        self.combines = _by_flower(strategy.aggregate_train)
        if initial is None:
            raise EdgeflError(
                "a strategy of flwr.serverapp needs a first model: pass initial=, a list of NumPy arrays or an"
                " ArrayRecord"
            )
        self.arrays = _first_model(initial)

    def configure(self, number: int) -> list[Message]:
        """Return the messages that the strategy sends to devices for training in a round."""
        config = ConfigRecord(dict(self._config))
        return list(self.strategy.configure_train(number, self.arrays, config, self._nodes))

    def aggregate(self, number: int, arrived: Sequence[Message], missing: Sequence[Message]) -> None:
        """Aggregate the replies that arrived into the new model; `missing` are messages without a reply."""
        replies = [*arrived, *map(lost, missing)]
        arrays, _ = self.strategy.aggregate_train(number, replies)
        self.arrays = self.arrays if arrays is None else arrays

    def test(self, number: int) -> Metrics | None:
        """Test the model at the server; return None if the strategy has no test there."""
        return None if self._evaluate is None else self._evaluate(number, self.arrays)

    def configure_test(self, number: int) -> list[Message]:
        """Return the messages with which the strategy requests tests on devices."""
        config = ConfigRecord(dict(self._config))
        return list(self.strategy.configure_evaluate(number, self.arrays, config, self._nodes))

    def tested(self, number: int, replies: Sequence[Message]) -> Metrics:
        """Combine the devices' test results by the strategy's rule."""
        for reply in replies:
            for record in reply.content.metric_records.values():
                if self._key in record:
                    whole(record[self._key], f"the test of device {device_of(reply.metadata.src_node_id)}")
        return self.strategy.aggregate_evaluate(number, list(replies)) or {}

    def examples(self, reply: Message) -> object:
        """Return the number of training samples that a reply reports."""
        for record in reply.content.metric_records.values():
            if self._key in record:
                return record[self._key]
        raise EdgeflError(
            f"the ClientApp's reply has no {self._key!r} in its MetricRecord: add the number of training samples"
        )


class _OfResults:
    """The rounds of an older flwr.server strategy, which exchanges FitIns and FitRes."""

    def __init__(self, strategy: OldStrategy, nodes: Nodes, initial: Any) -> None:
        self.strategy, self._nodes = strategy, nodes
        self.combines = _by_flower(strategy.aggregate_fit)
        parameters = None
        if initial is not None:
            parameters = ndarrays_to_parameters(_first_model(initial).to_numpy_ndarrays())
        else:
            with nodes.of((), "begin"):
                parameters = strategy.initialize_parameters(_Manager(nodes)) or self._of_a_client()
        self._parameters = parameters

    @property
    def arrays(self) -> ArrayRecord:
        return ArrayRecord(parameters_to_ndarrays(self._parameters))

    @arrays.setter
    def arrays(self, arrays: ArrayRecord) -> None:
        self._parameters = ndarrays_to_parameters(arrays.to_numpy_ndarrays())

    def _of_a_client(self) -> Any:
        content = compat.getparametersins_to_recorddict(GetParametersIns(config={}))
        asked = Message(content, node_of(0), MessageTypeLegacy.GET_PARAMETERS)
        reply = self._nodes.answers([asked])[0]
        answer = compat.recorddict_to_getparametersres(reply.content, keep_input=False)
        if answer.status.code != Code.OK:
            raise EdgeflError(
                "there is no first model: pass initial=, or give the strategy initial_parameters, or the "
                "clients get_parameters()"
            )
        return answer.parameters

    def configure(self, number: int) -> list[Message]:
        asked = self.strategy.configure_fit(number, self._parameters, _Manager(self._nodes))
        return [
            Message(compat.fitins_to_recorddict(ins, keep_input=True), proxy.node_id, MessageType.TRAIN)
            for proxy, ins in asked
        ]

    def aggregate(self, number: int, arrived: Sequence[Message], missing: Sequence[Message]) -> None:
        results: list[Any] = []
        failures: list[Any] = [ConnectionError("its update did not arrive") for _ in missing]
        for reply in arrived:
            result = compat.recorddict_to_fitres(reply.content, keep_input=False)
            pair = _Proxy(reply.metadata.src_node_id), result
            (results if result.status.code == Code.OK else failures).append(pair)
        parameters, _ = self.strategy.aggregate_fit(number, results, failures)
        self._parameters = self._parameters if parameters is None else parameters

    def test(self, number: int) -> Metrics | None:
        tested = self.strategy.evaluate(number, self._parameters)
        return None if tested is None else {**tested[1], "loss": tested[0]}

    def configure_test(self, number: int) -> list[Message]:
        asked = self.strategy.configure_evaluate(number, self._parameters, _Manager(self._nodes))
        return [
            Message(
                compat.evaluateins_to_recorddict(ins, keep_input=True), proxy.node_id, MessageType.EVALUATE
            )
            for proxy, ins in asked
        ]

    def tested(self, number: int, replies: Sequence[Message]) -> Metrics:
        results = []
        for reply in replies:
            result = compat.recorddict_to_evaluateres(reply.content)
            if result.status.code == Code.OK:
                whole(result.num_examples, f"the test of device {device_of(reply.metadata.src_node_id)}")
                results.append((_Proxy(reply.metadata.src_node_id), result))
        if not results:
            return {}
        loss, metrics = self.strategy.aggregate_evaluate(number, results, [])
        if not metrics and results:  # without a function that aggregates metrics, Flower omits them
            metrics = _averaged(results)
        return {**metrics, "loss": loss}

    def examples(self, reply: Message) -> object:
        return compat.recorddict_to_fitres(reply.content, keep_input=True).num_examples


def _by_flower(aggregate: Callable[..., Any]) -> bool:
    """Return whether a strategy's aggregation is Flower's own code."""
    return aggregate.__module__.startswith("flwr.")


def _first_model(initial: Any) -> ArrayRecord:
    """Convert the first model to an ArrayRecord, and reject numbers that are not finite."""
    try:
        made = (
            initial if isinstance(initial, ArrayRecord) else ArrayRecord([np.asarray(one) for one in initial])
        )
    except (TypeError, ValueError) as error:
        raise EdgeflError(
            f"initial is not a list of arrays ({error}): pass NumPy arrays or an ArrayRecord"
        ) from error
    if not all(np.isfinite(array).all() for array in numbers_of(made, "initial")):
        raise EdgeflError("initial has numbers that are not finite: pass a finite model")
    return made


def _averaged(results: Sequence[Any]) -> dict[str, float]:
    """Average the devices' accuracies, weighted by number of examples, as in Flower's tutorials."""
    total = sum(result.num_examples for _, result in results)
    have = total and all("accuracy" in result.metrics for _, result in results)
    if not have:
        return {}
    return {
        "accuracy": sum(result.num_examples * result.metrics["accuracy"] for _, result in results) / total
    }


class _Proxy(ClientProxy):  # type: ignore[misc]
    """A device as older strategies see it; strategies may pass the proxy on, but not call its methods."""

    def __init__(self, node: int) -> None:
        super().__init__(str(node))
        self.node_id = node

    def _nobody(self, *_: Any, **__: Any) -> Any:
        raise EdgeflError(
            "inside edgefl a strategy can use devices only in configure_fit and configure_evaluate"
        )

    get_properties = get_parameters = fit = evaluate = reconnect = _nobody


class _Manager(SimpleClientManager):  # type: ignore[misc]
    """The client manager of older strategies, which knows the currently connected devices."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__()
        self.clients = {str(node_of(device)): _Proxy(node_of(device)) for device in nodes.connected}

    def wait_for(self, num_clients: int, timeout: int = 86400) -> bool:
        if len(self.clients) < num_clients:
            raise EdgeflError(TOO_FEW.format(many=len(self.clients)))
        return True

    def sample(self, num_clients: int, min_num_clients: int | None = None, criterion: Any = None) -> Any:
        self.wait_for(max(num_clients, min_num_clients or 0))
        fitting = [one for one in self.clients.values() if criterion is None or criterion.select(one)]
        return random.sample(fitting, num_clients) if num_clients <= len(fitting) else []


def rounds_of(
    strategy: Any, nodes: Nodes, initial: Any, config: Mapping[str, Any], evaluate: EvaluateFn | None
) -> _OfMessages | _OfResults:
    """Return the interface to a strategy's rounds, for either kind of strategy.

    Raises:
        EdgeflError: the object is not a Flower strategy, or lacks something that training rounds need.
    """
    if isinstance(strategy, Strategy):
        return _OfMessages(strategy, nodes, initial, config, evaluate)
    if isinstance(strategy, OldStrategy):
        if evaluate is not None or config:
            raise EdgeflError(
                "a strategy of flwr.server has its own evaluate_fn and on_fit_config_fn: leave out evaluate, config"
            )
        return _OfResults(strategy, nodes, initial)
    raise EdgeflError(
        f"{type(strategy).__name__} is not a Flower strategy: extend flwr.serverapp.strategy.Strategy or"
        " flwr.server.strategy.Strategy"
    )


def whole(given: object, who: str) -> int:
    """Return a reported number of samples, an integer from 0 to MOST_SAMPLES, or raise for any other value."""
    fits = isinstance(given, int | float) and 0 <= given <= MOST_SAMPLES and given == int(given)
    if not fits:
        raise EdgeflError(
            f"{who} reports {quoted(given)} samples: reply with an integer from 0 to {MOST_SAMPLES:g}"
        )
    return int(given)  # type: ignore[call-overload]


def numbers_of(record: ArrayRecord, who: str) -> list[np.ndarray]:
    """Return the arrays of an ArrayRecord as NumPy arrays.

    Raises:
        EdgeflError: an array cannot be read, or does not contain real numbers.
    """
    arrays = []
    for name, array in record.items():
        try:
            read = array.numpy()
        except Exception as error:  # NumPy's reader raises nearly anything
            raise EdgeflError(
                f"{who}: array {quoted(name)} cannot be read ({error}): give a NumPy array"
            ) from error
        if read.dtype.kind not in NUMBERS:
            raise EdgeflError(f"{who}: array {quoted(name)} is of {read.dtype}: give real numbers")
        arrays.append(read)
    return arrays

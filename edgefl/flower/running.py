"""Make a scenario's learner from any Flower strategy and ClientApp."""

import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message
from flwr.clientapp import ClientApp

from edgefl.contract import (
    BEGIN,
    Evaluation,
    LocalRound,
    Now,
    Opening,
    SessionStart,
    Stage,
    StageFacts,
)
from edgefl.errors import EdgeflError, quoted
from edgefl.flower import arguments
from edgefl.flower.keeping import Arrays, Unkept, pack, restore, state_of, unpack
from edgefl.flower.nodes import Nodes, bits_of
from edgefl.flower.strategies import EvaluateFn, Metrics, numbers_of, rounds_of, whole
from edgefl.learners.own import Assignment

ACCURACY, LOSS = ("accuracy", "eval_acc", "eval_accuracy"), ("loss", "eval_loss")
OF_BYTES = np.dtype(np.uint8)  # type of models that are not arrays of numbers, such as trees
FLOPS_PER_PARAMETER = 6.0  # FLOPs per sample and parameter of a dense layer: 2 forward, 4 backward


def learner(
    client_app: ClientApp,
    strategy: Any,
    *,
    initial: Any = None,
    evaluate: EvaluateFn | None = None,
    tests_on_devices: bool = True,
    config: Mapping[str, Any] | None = None,
    epochs: int = 1,
    batch: int | None = None,
    flops_per_sample: float | None = None,
    columns: Sequence[str] = (),
) -> Callable[[Assignment], "_FlowerLearner"]:
    """Return a learner for `edgefl.simulate` from a Flower ClientApp and a strategy.

    The scenario's selector chooses participants among the present devices, and in a round the strategy sees only the
    participants' nodes. A node that the strategy does not use has 0 bits and 0 joules in devices.csv. The ClientApp
    runs in this process; device d is the node with partition-id d. An upload takes as many bits as its message; the
    strategy receives the replies that arrive, and an error for each missing reply. An interrupted run can be resumed
    if all attributes of the strategy are data or functions, or if the strategy has state_dict() and
    load_state_dict(); otherwise it restarts, with a warning.

    Args:
        client_app: runs on each device and keeps its context; node_config has partition-id, num-partitions and seed.
        strategy: a strategy of flwr.serverapp or flwr.server, which is copied for each run and cell; or a function
            of `Assignment` that makes a strategy.
        initial: the first model, a list of NumPy arrays or an ArrayRecord; optional for flwr.server strategies.
        evaluate: function (round, arrays) -> MetricRecord or None that tests the model at the server (evaluate_fn).
        tests_on_devices: whether to use the strategy's evaluation on present devices if there is no test at the
            server. These tests take neither time nor energy.
        config: settings that are sent with every message of training and testing.
        epochs, batch: a device's work is counted as this many epochs over the number of examples in its reply, in
            iterations of `batch` samples; None: one iteration per epoch.
        flops_per_sample: FLOPs of one sample's forward and backward pass; None: 6 per parameter, as for dense layers.
        columns: extra metrics of the test, which become columns of rounds.csv.

    Raises:
        EdgeflError: an argument is of the wrong kind; the message names it.
    """

    arguments.check(
        client_app, strategy, evaluate=evaluate, config=config, epochs=epochs, batch=batch, columns=columns
    )

    own_of = strategy if callable(strategy) else arguments.copies_of(strategy)

    def make(told: Assignment) -> _FlowerLearner:
        own = own_of(told)
        nodes = Nodes(client_app, told.devices, told.streams.below("flower", told.cell))
        rounds = rounds_of(own, nodes, initial, config or {}, evaluate)
        kind: type[_FlowerLearner] = _ResumableFlowerLearner
        try:
            state_of(own)
        except Unkept as error:
            warnings.warn(f"an interrupted run will restart: {error}", stacklevel=1)
            kind = _FlowerLearner
        flops = flops_per_sample
        if flops is None:
            shapes = [one.shape for one in rounds.arrays.values() if np.issubdtype(one.dtype, np.inexact)]
            flops = FLOPS_PER_PARAMETER * sum(map(math.prod, shapes))
        return kind(rounds, nodes, own, epochs, batch, flops, tests_on_devices, columns)

    named = strategy if callable(strategy) else type(strategy)
    # the learner's name in run.json
    make.__module__, make.__qualname__ = "edgefl.flower", f"learner({getattr(named, '__name__', named)})"
    make.own_parts = (named, *_functions_of(client_app))  # type: ignore[attr-defined]
    return make


def _functions_of(client_app: ClientApp) -> list[Any]:
    """Return the user's functions in a ClientApp, without Flower's wrappers around them."""
    waiting, functions = [*vars(client_app).values()], []
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif inspect.isfunction(one) and one.__module__.startswith("flwr."):
            waiting += [cell.cell_contents for cell in one.__closure__ or ()]
        elif inspect.isfunction(one):
            functions.append(one)
    return functions


@dataclass(eq=False)
class _FlowerLearner:
    """A cell's learner, which consists of a Flower strategy and devices that run a ClientApp."""

    rounds: Any
    nodes: Nodes
    strategy: Any
    epochs: int
    batch: int | None
    flops_per_sample: float
    tests_on_devices: bool
    columns: Sequence[str]
    tested: bool = False  # whether a test had metrics
    number: int = 0  # number of the strategy's round, counted from 1 over the whole run
    stage: StageFacts = field(default_factory=lambda: StageFacts("train", None))  # the open stage
    sent: dict[int, Message] = field(default_factory=dict)
    replies: dict[int, Message] = field(default_factory=dict)

    @property
    def payload_bits(self) -> int:
        """Size of the model in bits."""
        return 8 * int(self.rounds.arrays.count_bytes())

    def session(self, start: SessionStart) -> Iterator[Stage]:
        """Yield the session's stages: probes if the strategy is `warm_started`, then training."""
        begin = getattr(self.strategy, "begin_session", None)
        if begin is not None and (probes := begin(self.rounds.arrays)):
            yield self._stage(StageFacts("probe", probes, evaluates=False))
        yield self._training()

    def _training(self) -> Stage:
        opening = Opening()
        if hasattr(self.strategy, "open_session"):
            self.rounds.arrays = self.strategy.open_session(self.rounds.arrays)
            openings = self.strategy.openings
            opening = Opening("" if openings.is_pilot else openings.name, openings.weights)
        return self._stage(StageFacts("train", None, opening=opening))

    def _stage(self, facts: StageFacts) -> Stage:
        self.stage = facts
        return _FlowerStage(self, facts)

    def train(self, ids: Sequence[int]) -> LocalRound:
        """Let the strategy make messages for the given devices, and run the ClientApp on each message."""
        self.number += 1
        with self.nodes.of(ids, "train", self.number):
            with _of_strategy("make the messages of", self.number):
                messages = self.rounds.configure(self.number)
            self.sent = {message.metadata.dst_node_id - 1: message for message in messages}
            self.replies = self.nodes.answers(messages)
        if strangers := sorted(self.sent.keys() - set(ids)):
            raise EdgeflError(
                f"the strategy has messages for devices {strangers}, which are not in this round"
            )
        work = [self._work(id_) for id_ in ids]
        iterations, samples, down_bits, up_bits = zip(*work, strict=True)
        model = self.rounds.arrays
        spoilt = [
            id_
            for id_, reply in self.replies.items()
            if not _check_reply(id_, reply, model, self.rounds.combines)
        ]
        return LocalRound(
            tuple(ids), iterations, samples, down_bits, up_bits, not_finite=tuple(sorted(spoilt))
        )

    def _work(self, device: int) -> tuple[int, int, int, int]:
        """Return a device's iterations, samples, bits down and bits up; all 0 if the strategy sent it no message."""
        if device not in self.sent:
            return 0, 0, 0, 0
        reply = self.replies[device]
        with _of_strategy(f"read the number of samples of device {device} in", self.number):
            examples = whole(self.rounds.examples(reply), f"the ClientApp of device {device}")
        iterations = self.epochs * (math.ceil(examples / self.batch) if self.batch else 1)
        return iterations, self.epochs * examples, bits_of(self.sent[device].content), bits_of(reply.content)

    def aggregate(self, ids: Sequence[int]) -> None:
        """Pass the replies that arrived to the strategy, in order of device ids."""
        arrived = [self.replies[id_] for id_ in ids if id_ in self.replies]
        missing = [message for id_, message in sorted(self.sent.items()) if id_ not in set(ids)]
        with self.nodes.of(ids, "aggregate", self.number):
            if arrived:
                with _of_strategy("aggregate the replies of", self.number):
                    self.rounds.aggregate(self.number, arrived, missing)

    def evaluate(self, present: Sequence[int]) -> Evaluation:
        """Test the model at the server; without a server test, `tests_on_devices` tests it on the present devices."""
        with self.nodes.of(present, "test", self.number):
            with _of_strategy("test the model of", self.number):
                metrics = self.rounds.test(self.number)
            if metrics is None and self.tests_on_devices and present:
                replies = self.nodes.answers(self.rounds.configure_test(self.number))
                with _of_strategy("combine the tests of", self.number):
                    metrics = self.rounds.tested(self.number, list(replies.values())) if replies else None
        if not isinstance(metrics, Mapping | None):
            raise EdgeflError(
                f"the test of round {self.number} returned {quoted(metrics)}: make evaluate, or the strategy's"
                " aggregate_evaluate, return a MetricRecord such as MetricRecord({'accuracy': 0.9}), or None"
            )
        metrics = metrics or {}
        self._warn_of_missing(metrics)
        return Evaluation(
            _first(metrics, ACCURACY),
            _first(metrics, LOSS),
            {name: _first(metrics, (name,)) for name in self.columns},
        )

    def _warn_of_missing(self, metrics: Metrics) -> None:
        """Warn once if the first test lacks metrics of `columns`; later tests may have them."""
        missing = [name for name in self.columns if name not in metrics]
        if metrics and missing and not self.tested:
            warnings.warn(
                f"columns={missing}: the first test has only the metrics {quoted(list(metrics))}, so the column is"
                " empty; correct columns, or return these metrics from the test",
                stacklevel=1,
            )
        self.tested = self.tested or bool(metrics)


class _ResumableFlowerLearner(_FlowerLearner):
    """A Flower learner that can resume runs, because its strategy's state is data."""

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return everything that training changes, as arrays and JSON."""
        arrays: Arrays = {}
        stage, opening = self.stage, self.stage.opening
        kept = {
            "number": self.number,
            "arrays": self.rounds.arrays,
            "strategy": state_of(self.strategy),
            "nodes": self.nodes.state(),
            "stage": {"phase": stage.phase, "rounds": stage.rounds, "evaluates": stage.evaluates},
            "opening": opening and (opening.warm_start, dict(opening.weights)),
        }
        return arrays, {"flower": pack(kept, arrays)}

    def restore(self, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        """Restore the learner from the result of `state`."""
        kept = unpack(facts["flower"], dict(arrays))
        restore(self.strategy, kept["strategy"])
        self.nodes.restore(kept["nodes"])
        self.number, self.rounds.arrays = kept["number"], kept["arrays"]
        opening = kept["opening"] and Opening(*kept["opening"])
        self.stage = StageFacts(**kept["stage"], opening=opening)

    def stages(self) -> Iterator[Stage]:
        """Yield the stages of the open session, from the current one on."""
        probing = self.stage.rounds is not None
        yield _FlowerStage(self, self.stage)
        if probing:
            yield self._training()


@dataclass(frozen=True)
class _FlowerStage:
    """A stage of a Flower learner's session, either probe rounds or training."""

    learner: _FlowerLearner
    facts: StageFacts

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        return self.learner.train(ids)

    def aggregate(self, ids: Sequence[int], weights: Sequence[float] | None = None) -> None:
        if weights is not None:
            reason = "a Flower strategy weights replies itself: set unbiased: false"
            raise EdgeflError(reason, ("rounds", "server"))
        self.learner.aggregate(ids)

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        return self.learner.evaluate(present)


def _first(metrics: Metrics, names: Sequence[str]) -> float | None:
    for name in names:
        if name in metrics and metrics[name] is not None:
            try:
                return float(metrics[name])
            except (TypeError, ValueError) as error:
                raise EdgeflError(f"the test's {name} is {quoted(metrics[name])}: return a number") from error
    return None


@contextmanager
def _of_strategy(what: str, number: int) -> Iterator[None]:
    """Turn an exception raised by a strategy into an error that names the round."""
    try:
        yield
    except EdgeflError:
        raise
    except Exception as error:
        raise EdgeflError(
            f"the strategy cannot {what} round {number}: {type(error).__name__}: {error}; fix the strategy, or the"
            " ClientApp's reply"
        ) from error


def _check_reply(device: int, reply: Message, model: ArrayRecord, alike: bool) -> bool:
    """Return whether all numbers in a device's reply are finite.

    Args:
        model: the global model.
        alike: whether the server combines replies with the model array by array.

    Raises:
        EdgeflError: the reply's arrays cannot be read, or with `alike` do not have the shapes of the model's arrays.
    """
    who = f"the reply of device {device}"
    records = [numbers_of(record, who) for record in reply.content.array_records.values()]
    if alike and len(records) == 1:
        shapes, own = [array.shape for array in records[0]], numbers_of(model, "the model")
        wanted = [array.shape for array in own]
        of_bytes = any(array.dtype == OF_BYTES for array in [*records[0], *own])
        if shapes != wanted and not of_bytes:
            raise EdgeflError(
                f"{who} has arrays of shapes {quoted(shapes)}, but the model has {quoted(wanted)}: reply "
                "with all arrays of the model in their shapes"
            )
    return all(np.isfinite(array).all() for arrays in records for array in arrays)

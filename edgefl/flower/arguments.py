"""Check the arguments of `edgefl.flower.learner` before a run begins, and copy its strategy for each run."""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flwr.clientapp import ClientApp
from flwr.server.strategy import Strategy as OldStrategy
from flwr.serverapp.strategy import Strategy

from edgefl.config.outside import misfit
from edgefl.errors import EdgeflError, clipped
from edgefl.learners.own import Assignment

STRATEGIES = (Strategy, OldStrategy)


def check(
    client_app: object,
    strategy: object,
    *,
    evaluate: object,
    config: object,
    epochs: object,
    batch: object,
    columns: object,
) -> None:
    """Check the types of the arguments of `edgefl.flower.learner`.

    Raises:
        EdgeflError: an argument is wrong; the message names it and says what to pass.
    """
    if not isinstance(client_app, ClientApp):
        raise EdgeflError(
            f"client_app is {_kind(client_app)}: pass the ClientApp first, and the strategy second"
        )
    _check_strategy(strategy)
    if evaluate is not None and not callable(evaluate):
        raise EdgeflError(
            f"evaluate is {clipped(repr(evaluate))}: pass a function (round, arrays) -> MetricRecord, or None"
        )
    if config is not None and not isinstance(config, Mapping):
        raise EdgeflError(f"config is {clipped(repr(config))}: pass a dict of settings, or None")
    for name, number, otherwise in (("epochs", epochs, ""), ("batch", batch, ", or None")):
        whole = isinstance(number, int) and not isinstance(number, bool) and number >= 1
        if not (whole or (otherwise and number is None)):
            raise EdgeflError(
                f"{name} is {clipped(repr(number))}: pass a whole number of at least 1{otherwise}"
            )
    if not _are_names(columns):
        raise EdgeflError(f"columns is {clipped(repr(columns))}: pass a list of metric names, such as ['f1']")


def _check_strategy(strategy: object) -> None:
    remedy = "pass a strategy, such as FedAvg(), or a function that makes one from an Assignment"
    if isinstance(strategy, ClientApp) or (isinstance(strategy, type) and issubclass(strategy, STRATEGIES)):
        raise EdgeflError(f"strategy is {_kind(strategy)}: {remedy}")
    if callable(strategy) and not isinstance(strategy, STRATEGIES) and misfit(strategy, None):
        raise EdgeflError(f"strategy is {_kind(strategy)}, which does not take one argument: {remedy}")


def _kind(given: object) -> str:
    """Name a class or function, or the class of any other object."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if inspect.isfunction(given):
        return f"the function {given.__name__}"
    return f"of type {type(given).__name__}"


def _are_names(columns: object) -> bool:
    listed = isinstance(columns, Sequence) and not isinstance(columns, str)
    return listed and all(isinstance(name, str) for name in columns)  # type: ignore[attr-defined]


def copies_of(strategy: Any) -> Callable[[Assignment], Any]:
    """Return a function that gives each cell of each run a new copy of a strategy, as the strategy is now.

    A strategy that trains changes its own state.
    """
    try:
        kept = copy.deepcopy(strategy)
    except Exception as error:  # an attribute's own code may raise nearly anything
        return _once(strategy, error)
    return lambda told: copy.deepcopy(kept)


def _once(strategy: Any, why: Exception) -> Callable[[Assignment], Any]:
    """Return a function that gives away a strategy that cannot be copied, and raises if it is called again."""
    left = [strategy]

    def give(told: Assignment) -> Any:
        if not left:
            raise EdgeflError(
                f"{type(strategy).__name__} has already trained, and cannot be copied ({why}): for several runs or"
                " cells, pass a function that makes a strategy from an Assignment"
            )
        return left.pop()

    return give

"""Store the state of a Flower run as arrays and JSON in a snapshot, without pickles, so that loading runs no code.

A strategy's state consists of those attributes that are data: numbers, strings, NumPy arrays, tensors, Flower's
records and parameters, and lists, tuples and dicts of these; strategies within a strategy are treated alike.
Functions are ignored. A strategy with attributes of any other type must have two methods:

    state_dict() -> dict          return all state as data of these types
    load_state_dict(dict)         restore the state returned by `state_dict`
"""

import functools
import logging
import math
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.common import Parameters
from flwr.server.strategy import Strategy as OldStrategy
from flwr.serverapp.strategy import Strategy

from edgefl.errors import EdgeflError

CODE = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
    functools.partial,
    logging.Logger,
    type,
)
MAPPINGS = {
    kind.__name__: kind for kind in (dict, OrderedDict, ArrayRecord, MetricRecord, ConfigRecord, RecordDict)
}
SEQUENCES = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}
BOTH = (Strategy, OldStrategy)
Arrays = dict[str, np.ndarray]


class Unkept(EdgeflError):
    """An error raised when a strategy's attribute is not data that a snapshot can store."""


def state_of(strategy: Any) -> dict[str, Any]:
    """Return a strategy's state: its `state_dict`, or its attributes that are data.

    Raises:
        Unkept: an attribute is not data, and the strategy has no `state_dict` method.
    """
    if _says_itself(strategy):
        return dict(strategy.state_dict())
    states = {}
    for name, value in vars(strategy).items():
        if isinstance(value, BOTH):
            states[name] = state_of(value)
        elif not isinstance(value, CODE):
            try:
                pack(value, {})
            except Unkept as error:
                raise Unkept(
                    f"{type(strategy).__name__}.{name} is {error}, which a snapshot cannot hold: give the strategy"
                    " state_dict() and load_state_dict(dict), for a dict of numbers, strings and arrays"
                ) from None
            states[name] = value
    return states


def restore(strategy: Any, state: Mapping[str, Any]) -> None:
    """Restore a strategy from the state returned by `state_of`."""
    if _says_itself(strategy):
        strategy.load_state_dict(dict(state))
        return
    for name, value in state.items():
        if isinstance(within := getattr(strategy, name, None), BOTH):
            restore(within, value)
        else:
            setattr(strategy, name, value)


def _says_itself(strategy: Any) -> bool:
    """Return whether a strategy defines its state by `state_dict` and `load_state_dict`."""
    return hasattr(strategy, "state_dict") and hasattr(strategy, "load_state_dict")


def pack(value: Any, arrays: Arrays) -> Any:
    """Convert data to JSON, and add the bytes of NumPy arrays to `arrays`; `unpack` reverses the conversion.

    Raises:
        Unkept: the value is not data that a snapshot can store.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    name, of = kind.__name__, functools.partial(pack, arrays=arrays)
    if kind is float:
        return [name, repr(value)]
    if kind is bytes:
        return [name, _put(value, arrays)]
    if kind is Array:
        return [name, value.dtype, list(value.shape), value.stype, _put(value.data, arrays)]
    if kind is Parameters:
        return [name, value.tensor_type, [_put(one, arrays) for one in value.tensors]]
    if MAPPINGS.get(name) is kind:
        return [name, [[of(key), of(inner)] for key, inner in value.items()]]
    if SEQUENCES.get(name) is kind:
        return [name, [of(inner) for inner in value]]
    if isinstance(value, np.ndarray | np.generic):
        whole = np.asarray(value)
        if not whole.dtype.hasobject and np.dtype(whole.dtype.str) == whole.dtype:
            form = "ndarray" if isinstance(value, np.ndarray) else "number"
            return [form, whole.dtype.str, list(whole.shape), _put(whole.tobytes(), arrays)]
    torch = sys.modules.get("torch")
    if torch is not None and kind is torch.Tensor:
        return ["tensor", of(value.detach().cpu().numpy())]
    raise Unkept(f"a {kind.__module__}.{kind.__qualname__}")


def unpack(facts: Any, arrays: Arrays) -> Any:
    """Rebuild data from the JSON and the arrays that `pack` returned."""
    if not isinstance(facts, list):
        return facts
    name, first, *rest = facts
    of = functools.partial(unpack, arrays=arrays)
    if name in MAPPINGS:
        return MAPPINGS[name]({of(key): of(inner) for key, inner in first})
    if name in SEQUENCES:
        return SEQUENCES[name](of(inner) for inner in first)
    return _LEAVES[name](arrays, first, *rest)


def _put(content: bytes, arrays: Arrays) -> str:
    key = str(len(arrays))
    arrays[key] = np.frombuffer(content, np.uint8)
    return key


def _array(arrays: Arrays, dtype: str, shape: list[int], key: str) -> np.ndarray:
    return np.frombuffer(arrays[key].tobytes(), np.dtype(dtype)).reshape(shape).copy()


def _tensor(arrays: Arrays, facts: Any) -> Any:
    import torch

    return torch.from_numpy(unpack(facts, arrays))


_LEAVES: dict[str, Callable[..., Any]] = {
    "float": lambda arrays, text: float(text),
    "bytes": lambda arrays, key: arrays[key].tobytes(),
    "Array": lambda arrays, dtype, shape, stype, key: Array(
        dtype=dtype, shape=tuple(shape), stype=stype, data=arrays[key].tobytes()
    ),
    "Parameters": lambda arrays, kind, keys: Parameters(
        tensors=[arrays[key].tobytes() for key in keys], tensor_type=kind
    ),
    "ndarray": _array,
    "number": lambda *given: _array(*given)[()],
    "tensor": _tensor,
}

"""The registry of components, named in YAML by their files; adding a component changes no other file.

A name is looked up in this order: a file in the kind's package (`edgefl/learning/algorithms/fedprox.py` is
`fedprox`), an entry point of an installed package in the group `edgefl.<kind>`, or `module:Class` written
in the scenario, with the module in the scenario's folder or the current folder (`edgefl.config.outside`).
"""

import difflib
import importlib
import inspect
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from edgefl.config import outside, own_code
from edgefl.config.component import SHAPES, AnyComponent, parameters_of
from edgefl.config.gone_keys import NAMED_ABROAD
from edgefl.errors import EdgeflError

# kind -> (package with the components and their base class, meaning)
_TABLE = {
    "algorithms": ("edgefl.learning.algorithms", "how devices train and the server aggregates"),
    "codecs": ("edgefl.learning.codecs", "how a model update is encoded, and its size in bits"),
    "tasks": ("edgefl.learning.tasks", "the learning task, with its loss and its score"),
    "optimisers": ("edgefl.learning.optimisers", "how devices turn gradients into steps"),
    "lr_schedules": ("edgefl.learning.lr_schedules", "how the learning rate changes from round to round"),
    "warm_starts": ("edgefl.learning.warm_starts", "how a session's first model is made"),
    "models": ("edgefl.learning.models", "what is trained"),
    "datasets": ("edgefl.learning.datasets", "the samples"),
    "partitions": ("edgefl.learning.partitions", "which device holds which samples"),
    "drifts": ("edgefl.learning.drifts", "how the devices' data change during a run"),
    "mobility": ("edgefl.mobility", "how devices move"),
    "selectors": ("edgefl.engine.selectors", "which devices take part in a round"),
    "servers": ("edgefl.engine.servers", "when devices are dispatched, and when a new model is made"),
    "sessions": ("edgefl.engine.sessions", "when a session ends"),
    "churn": ("edgefl.engine.churn", "when devices are switched on"),
    "power_models": ("edgefl.engine.power_models", "the power that a device's radio draws"),
    "backgrounds": ("edgefl.engine.backgrounds", "how much of the band other users occupy"),
    "schedulers": ("edgefl.channel.schedulers", "which device gets which share of the band"),
    "path_loss": ("edgefl.channel.path_loss", "how much of the transmitted power is received"),
}
KINDS = tuple(_TABLE)
PACKAGES = {kind: package for kind, (package, _) in _TABLE.items()}
MEANINGS = {kind: meaning for kind, (_, meaning) in _TABLE.items()}


def names(kind: str) -> list[str]:
    """Return the sorted names of a kind's components."""
    _check_kind(kind)
    return sorted({*_modules(kind), *_entry_points(kind)})


def get(kind: str, name: str, *, trusted: bool = False) -> type[AnyComponent]:
    """Return the class of a component.

    Args:
        trusted: whether the user, not only a scenario, named the component and thereby allows its code to run.

    Raises:
        EdgeflError: the kind or component is unknown, or the named object is not a component of this kind.
    """
    _check_kind(kind)
    if ":" in name:  # a run's scenario.yaml names an installed component this way
        return _component_at(kind, name, trusted=trusted or name in _entry_points(kind).values())
    if name in _modules(kind):
        return _only_component(kind, f"{PACKAGES[kind]}.{name}")
    if name in _entry_points(kind):
        _refuse_namesakes(kind, name)
        return _component_at(kind, _entry_points(kind)[name], trusted=True)
    raise EdgeflError(_unknown(kind, name))


def name_of(kind: str, component: AnyComponent) -> str:
    """Return the name by which `get` finds a component's class."""
    module, cls = type(component).__module__, type(component).__name__
    package, _, last = module.rpartition(".")
    return last if package == PACKAGES[kind] else f"{module}:{cls}"


@cache
def base(kind: str) -> type[AnyComponent]:
    """Return the base class of a kind: the class in its package that directly extends a Component."""
    package = importlib.import_module(PACKAGES[kind])
    return next(cls for cls in _classes(package, SHAPES) if set(SHAPES) & set(cls.__bases__))


def did_you_mean(word: str, known: list[str]) -> str:
    """Return a hint for an error message: `: did you mean 'x'?` with a similar word, or all known words."""
    near = nearest(word, known)
    return f": did you mean '{near}'?" if near else f"; known: {', '.join(known)}"


def nearest(word: str, known: list[str]) -> str | None:
    """Return the known word most similar to a word, or None; ignore case, hyphens and underscores."""
    by_letters = {_letters(each): each for each in reversed(known)}
    near = difflib.get_close_matches(_letters(word), by_letters, n=1, cutoff=0.75)
    return by_letters[near[0]] if near else None


def _letters(word: str) -> str:
    return word.casefold().replace("-", "").replace("_", "") or word


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise EdgeflError(f"no kind '{kind}'{did_you_mean(kind, list(KINDS))}")


def _unknown(kind: str, name: str) -> str:
    singular = {"path_loss": "path loss", "mobility": "mobility model", "churn": "churn model"}.get(
        kind, kind.removesuffix("s").replace("_", " ")
    )
    meant, known = NAMED_ABROAD.get(name, name), names(kind)
    other = next((one for one in KINDS if _letters(name) in map(_letters, names(one))), "")
    if not other or nearest(meant, known):
        return f"no {singular} '{name}'{did_you_mean(meant, known)}"
    there = nearest(name, names(other))
    return (
        f"no {singular} '{name}', a name of {other}: `edgefl describe {other}/{there}` shows where it belongs"
    )


@cache
def _modules(kind: str) -> tuple[str, ...]:
    package = importlib.import_module(PACKAGES[kind])
    # a leading underscore marks a helper shared by the package's components
    return tuple(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_"))


@cache
def _entry_points(kind: str) -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=f"edgefl.{kind}")}


@cache
def _refuse_namesakes(kind: str, name: str) -> None:
    values = sorted({point.value for point in entry_points(group=f"edgefl.{kind}", name=name)})
    if len(values) > 1:
        raise EdgeflError(
            f"installed packages register '{name}' for several components, {' and '.join(values)}: write one of these"
            " instead of the name, with --allow-code, or uninstall the other's package"
        )


@cache
def _only_component(kind: str, module_name: str) -> type[AnyComponent]:
    module, parent = importlib.import_module(module_name), base(kind)
    classes = _classes(module, parent)
    if len(classes) != 1:
        raise EdgeflError(f"{module_name} must define exactly one {parent.__name__}, found {len(classes)}")
    return classes[0]


def _classes(
    module: Any, parent: type[AnyComponent] | tuple[type[AnyComponent], ...]
) -> list[type[AnyComponent]]:
    return [
        value
        for _, value in inspect.getmembers(module, inspect.isclass)
        if issubclass(value, parent) and value.__module__ == module.__name__
    ]


def _component_at(kind: str, path: str, *, trusted: bool = False) -> type[AnyComponent]:
    component_class = outside.load(path, trusted=trusted)
    parent = base(kind)
    if not issubclass(component_class, parent):
        name = parent.__name__
        raise EdgeflError(
            f"'{path}' is not a{'n' * (name[0] in 'AEIOU')} {name}: make it extend {parent.__module__}.{name}"
            + getattr(parent, "if_foreign", "")
        )
    try:
        parameters_of(component_class)
    except Exception as error:  # annotations may be unreadable, or bounds may be impossible
        raise EdgeflError(f"'{path}' has malformed parameters: {error}") from error
    outside.require_methods(path, component_class, parent)
    _refuse_misspelt_methods(path, component_class, parent)
    return component_class


def _refuse_misspelt_methods(path: str, component: type[AnyComponent], parent: type[AnyComponent]) -> None:
    """Refuse a method with a misspelt name, since edgefl would silently call the default method."""
    written, known = (
        {
            name
            for cls in component.__mro__
            if issubclass(cls, parent) and own_code.is_ours(cls.__module__) == ours
            for name in vars(cls)
            if inspect.isroutine(getattr(cls, name, None)) and not name.startswith("_")
        }
        for ours in (False, True)
    )
    for name in sorted(written - known):
        if near := nearest(name, sorted(known - written)):
            raise EdgeflError(
                f"'{path}' has a method '{name}', which edgefl never calls: did you mean '{near}'? A method of"
                f" your own needs another name, such as '_{name}'"
            )

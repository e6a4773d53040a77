"""Change scenario and study files at random: values, types, components, keys, or the YAML text itself."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

import edgefl
from edgefl.config import registry
from edgefl.config.component import parameters_of
from edgefl.config.yaml_source import Source
from tests.tools.fuzz_schema import Key, at, bounds, keys_in, keys_of, put, valid
from tests.tools.fuzz_values import ALIAS_BOMB, FAR, NAMES, PIECES, SLOW, STRANGE

SHIPPED = Path(edgefl.__file__).parents[1] / "scenarios"


@dataclass(frozen=True)
class FuzzCase:
    """Files to try: the first is passed to edgefl, and the others are in the same folder."""

    files: dict[str, bytes]

    @property
    def main(self) -> str:
        """Return the name of the file that is passed to edgefl."""
        return next(iter(self.files))


def case(seed: int, number: int) -> FuzzCase:
    """Return the case of this number: a scenario or a study with a few changes."""
    rng = Random(f"validate {seed} {number}")
    if rng.random() < 0.25:
        study = study_data(rng)
        base = scenario_data(rng)
        if rng.random() < 0.2:
            mutate(base, rng)
            tame(base)
        return FuzzCase({"study.yaml": damaged(study, rng, 0.15), "base.yaml": text_of(base)})
    data = scenario_data(rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        mutate(data, rng)
    tame(data)
    return FuzzCase({"scenario.yaml": damaged(data, rng, 0.15)})


def scenario_data(rng: Random) -> dict[str, Any]:
    """Return the content of a shipped scenario, in most cases with a data set that every machine has."""
    data = copy.deepcopy(rng.choice(_shipped()))
    if "learning" in data and rng.random() < 0.9:
        data["learning"] |= {"dataset": rng.choice(("digits", "digits", "synthetic")), "model": "logistic"}
    return data


def study_data(rng: Random) -> dict[str, Any]:
    """Return the content of a study of `base.yaml`, with sensible and unusual labels and overrides."""
    keys = [key for key in keys_of(_scenario()) if key.place[0] not in ("name", "learning", "workload")]

    def overrides() -> Any:
        changes = {".".join(key.place): value_for(key, rng) for key in rng.sample(keys, rng.randint(0, 2))}
        if rng.random() < 0.2:
            changes[rng.choice(("seed", "a..b", "", ".", "devices", "no.such.key", "radio.path_loss.x"))] = (
                value(rng)
            )
        return rng.choice((changes, changes, changes, changes, value(rng)))

    def label() -> Any:
        return rng.choice(
            ("a", "b", "proposed", "100 MHz", "", "../x", "/x", "a/b", "[/x]", "x" * 300, 1, True, None)
        )

    variants = {label(): overrides() for _ in range(rng.randint(1, 3))}
    reference = rng.choice(list(variants))
    study = {
        "name": "study",
        "scenario": rng.choice(("base.yaml",) * 8 + ("none.yaml", "", ".", "/dev/null", "study.yaml")),
        "seeds": rng.choice(([1], [1, 2], [1, 2], [], [1, 1], [-1], ["a"], 1, None))
        if rng.random() < 0.4
        else [1],
        "reference": reference if rng.random() < 0.9 else value(rng),
        "variants": variants if rng.random() < 0.9 else value(rng),
    }
    if rng.random() < 0.4:
        dotted = ".".join(rng.choice(keys).place)
        grids: tuple[Any, ...] = (
            *({dotted: [value(rng), value(rng)]}, {"axis": {label(): overrides(), "low": overrides()}}),
            *({"a.lr": [1], "b.lr": [2]}, {label(): []}, {1: {1: 1}}, value(rng)),
        )
        study["grid"] = rng.choice(grids)
    if rng.random() < 0.1:
        study.pop(rng.choice(list(study)))
    return study


def mutate(data: dict[str, Any], rng: Random) -> None:
    """Make one random change to a scenario's content."""
    rng.choice(CHANGES)(data, rng)


def tame(data: dict[str, Any]) -> None:
    """Reduce numbers that are allowed but would make a case take minutes."""
    for place, most in SLOW.items():
        held = at(data, place)
        if isinstance(held, int | float) and most < held < math.inf:
            put(data, place, min(held, most) if held < 1e8 else held)


def value(rng: Random) -> Any:
    """Draw a value that few keys allow."""
    return rng.choice((*FAR, *STRANGE))


def value_for(key: Key, rng: Random) -> Any:
    """Draw a value that a key allows."""
    return component(key.kind, rng) if key.kind else valid(key.schema, rng)


def component(kind: str, rng: Random) -> Any:
    """Draw a component of a kind, with parameters that are allowed individually."""
    name = rng.choice(registry.names(kind))
    keys = keys_of(parameters_of(registry.get(kind, name)))
    chosen = [key for key in keys if key.required or rng.random() < 0.3]
    return {"name": name, **{key.place[0]: valid(key.schema, rng) for key in chosen}} if chosen else name


def any_key(data: dict[str, Any], rng: Random, wanted: Callable[[Key], bool] = lambda key: True) -> Key:
    """Draw a key that this scenario may have."""
    mine = [key for key in keys_in(data) if wanted(key) and _belongs(key, data)]
    return rng.choice(mine)


def allowed(data: dict[str, Any], rng: Random) -> None:
    """Set a key to an allowed value."""
    key = any_key(data, rng, lambda key: key.kind is not None or key.schema.get("type") != "object")
    put(data, key.place, value_for(key, rng))


def at_bound(data: dict[str, Any], rng: Random) -> None:
    """Set a number to its bound, or just beyond."""
    key = any_key(data, rng, lambda key: bool(bounds(key.schema)))
    bound = rng.choice(bounds(key.schema))
    around = (
        bound,
        bound,
        math.nextafter(bound, math.inf),
        math.nextafter(bound, -math.inf),
        bound + 1,
        bound - 1,
    )
    put(data, key.place, rng.choice(around))


def least_or_most(data: dict[str, Any], rng: Random) -> None:
    """Set a number to the lowest or highest allowed value."""
    key = any_key(data, rng, lambda key: bool(bounds(key.schema, strictly=False)))
    put(data, key.place, rng.choice(bounds(key.schema, strictly=False)))


def far(data: dict[str, Any], rng: Random) -> None:
    """Set a number to an extreme value."""
    numbers = lambda key: any(f"'{kind}'" in str(key.schema) for kind in ("integer", "number"))  # noqa: E731
    put(data, any_key(data, rng, numbers).place, rng.choice(FAR))


def strange(data: dict[str, Any], rng: Random) -> None:
    """Set a key to a value that few keys allow."""
    put(data, any_key(data, rng).place, rng.choice(STRANGE))


def other_component(data: dict[str, Any], rng: Random) -> None:
    """Replace a component by another one of its kind."""
    key = any_key(data, rng, lambda key: key.kind is not None)
    assert key.kind is not None
    put(data, key.place, component(key.kind, rng))


def odd_component(data: dict[str, Any], rng: Random) -> None:
    """Name a component that does not exist."""
    key = any_key(data, rng, lambda key: key.kind is not None)
    put(data, key.place, rng.choice((rng.choice(NAMES), {"name": rng.choice(NAMES)}, {"nam": "umi"})))


def without(data: dict[str, Any], rng: Random) -> None:
    """Leave a key out."""
    place = rng.choice(_places(data))
    held = at(data, place[:-1])
    del held[place[-1]]


def unknown(data: dict[str, Any], rng: Random) -> None:
    """Add an unknown key, mostly a misspelt one."""
    place = any_key(data, rng).place
    put(data, (*place[:-1], rng.choice((place[-1] + "s", place[-1][1:], "x" * 2000, "a b", "ü"))), value(rng))


CHANGES = (
    *(allowed,) * 6,
    *(at_bound,) * 3,
    *(far,) * 2,
    strange,
    *(other_component,) * 3,
    odd_component,
    without,
    unknown,
)


def text_of(data: Any) -> bytes:
    """Write data as YAML."""
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True).encode("utf-8", "surrogatepass")


def damaged(data: Any, rng: Random, share: float) -> bytes:
    """Write data as YAML, and in some cases damage the text."""
    raw = text_of(data)
    if rng.random() >= share:
        return raw
    lines = raw.split(b"\n")
    piece = rng.choice(PIECES).encode()
    spot, line = rng.randrange(len(raw) + 1), rng.randrange(len(lines))
    return rng.choice(
        (
            *(raw[:spot] + piece + raw[spot:],) * 6,
            raw[:spot],
            raw[:spot] + raw[spot + rng.randint(1, 9) :],
            b"\n".join([*lines[:line], lines[line], *lines[line:]]),
            b"\n".join([*lines[:line], b"   " + lines[line], *lines[line + 1 :]]),
            b"\n".join([*lines[:line], *lines[line + 1 :]]),
            raw + ALIAS_BOMB.encode(),
            raw.decode("utf-8", "replace").encode("utf-16"),
            b"\xef\xbb\xbf" + raw,
            raw[:spot] + b"\xff\xfe" + raw[spot:],
            raw.replace(b"\n", b"\r\n"),
            b"",
            b"- 1\n",
        )
    )


def _places(data: dict[str, Any], place: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the places of all keys that are set."""
    places = []
    for name, held in data.items():
        places.append((*place, name))
        places += _places(held, (*place, name)) if isinstance(held, dict) else []
    return places


def _belongs(key: Key, data: dict[str, Any]) -> bool:
    """Return whether a key belongs to a scenario: below `learning` or `workload` only if it has this section."""
    return key.place[0] not in ("learning", "workload") or key.place[0] in data


@cache
def _shipped() -> tuple[dict[str, Any], ...]:
    scenarios = []
    for path in sorted(SHIPPED.glob("*.yaml")):
        data = Source(path).data
        trace = at(data, ("devices", "mobility", "path"))
        if trace:
            put(data, ("devices", "mobility", "path"), str(SHIPPED.parent / trace))
        scenarios.append(data)
    return tuple(scenarios)


@cache
def _scenario() -> Any:
    from edgefl.scenario.scenario import Scenario

    return Scenario

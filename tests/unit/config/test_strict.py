"""Test that a scenario accepts no nan, no infinity, no true for 1, and no text for a number. Messages stay short."""

import itertools
import math
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo

from edgefl import studies
from edgefl.commands.descriptions import describe
from edgefl.config import registry
from edgefl.config.component import parameters_of
from edgefl.config.error_messages import LONGEST_MESSAGE
from edgefl.config.gone_keys import MOVED
from edgefl.config.scenario_fields import Section
from edgefl.config.strict import Strict
from edgefl.errors import EdgeflError, clipped, quoted
from edgefl.scenario import scenario as scenarios
from edgefl.scenario.scenario import Scenario

GOOD = """\
name: small
devices: {count: 4}
sessions: {name: schedule, count: 2, rounds: 3}
learning:
  dataset: digits
  model: logistic
"""


def refusal(folder: Path, text: str, *sets: str) -> str:
    (folder / "a.yaml").write_text(text)
    with pytest.raises(EdgeflError) as error:
        scenarios.load(folder / "a.yaml", sets)
    return str(error.value)


def models() -> dict[str, type[BaseModel]]:
    """Return the models that are checked, by name: components, sections, and the models within sections."""
    found: dict[str, type[BaseModel]] = {
        f"{kind}/{name}": parameters_of(registry.get(kind, name))
        for kind in registry.KINDS
        for name in registry.names(kind)
    }
    waiting: list[type[BaseModel]] = [Scenario, studies.Study, *found.values()]
    while waiting:
        model = waiting.pop()
        if issubclass(model, Section):
            found[model.__name__] = model
        for field in model.model_fields.values():
            inner = [each for each in _types(field.annotation) if each not in found.values()]
            waiting += [each for each in inner if each not in waiting]
            found |= {f"{model.__name__}.{each.__name__}": each for each in inner}
    return found


def _types(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _types(argument)


def with_number(annotation: Any, number: float) -> Any:
    """Return a value of this type that contains the number, or None if the type has no float."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is float:
        return number
    if origin in (Union, types.UnionType, Annotated):
        found = [with_number(each, number) for each in arguments]
        return next((each for each in found if each is not None), None)
    if origin is tuple and arguments[-1] is not ...:
        inner = with_number(arguments[0], number)
        return None if inner is None else [inner] * len(arguments)
    if origin in (list, tuple):
        inner = with_number(arguments[0], number)
        return None if inner is None else [inner]
    return None


MODELS = models()
FLOATS = [
    (name, key)
    for name, model in MODELS.items()
    for key, field in model.model_fields.items()
    if with_number(field.annotation, 1.0) is not None
]


def test_the_models_are_found() -> None:
    assert {"algorithms/fedprox", "schedulers/proportional_fair", "RadioSettings", "Scenario"} <= set(MODELS)
    assert {"Study", "Attraction.Spell", "TddSettings", "LearningSettings"} <= set(MODELS)
    assert {"clock_hz", "scale", "centre_m", "flops_per_sample"} <= {key for _, key in FLOATS}


@pytest.mark.parametrize("name", MODELS)
def test_everything_is_strict(name: str) -> None:
    model = MODELS[name]
    assert issubclass(model, Strict)
    assert model.model_config["allow_inf_nan"] is False
    assert model.model_config["extra"] == "forbid"


@pytest.mark.parametrize("name", sorted({name for name, _ in FLOATS}))
def test_no_number_is_infinite_or_nan(name: str) -> None:
    keys = [key for model, key in FLOATS if model == name]
    for key, number in itertools.product(keys, (math.nan, math.inf, -math.inf)):
        value = with_number(MODELS[name].model_fields[key].annotation, number)
        with pytest.raises(ValidationError) as error:
            MODELS[name].model_validate({key: value})
        types = {each["type"] for each in error.value.errors() if each["loc"][0] == key}
        assert "finite_number" in types, f"{name}.{key}: {number}"


def bounds(field: FieldInfo) -> set[str]:
    """Return the sides on which a field or its parts are bounded."""
    found = list(field.metadata)
    waiting = [field.annotation]
    while waiting:
        annotation = waiting.pop()
        for about in getattr(annotation, "__metadata__", ()):
            found += about.metadata if isinstance(about, FieldInfo) else [about]
        waiting += get_args(annotation)
    sides = {Ge: "below", Gt: "below", Le: "above", Lt: "above"}
    return {sides[type(each)] for each in found if type(each) in sides}


def has_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(map(has_number, get_args(annotation)))


@pytest.mark.parametrize("name", MODELS)
def test_every_number_has_a_least_and_a_greatest_value(name: str) -> None:
    """Values beyond these bounds would cause endless runs, or failed allocations with a traceback."""
    fields = MODELS[name].model_fields
    numbers = [key for key, field in fields.items() if has_number(field.annotation)]
    assert {key: bounds(fields[key]) for key in numbers} == {key: {"below", "above"} for key in numbers}


def test_numbers_are_seen_in_every_shape() -> None:
    assert all(map(has_number, (int, float | None, list[int], dict[str, tuple[float, ...]])))
    assert not any(map(has_number, (bool, str | None, list[str])))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (
            "learning.algorithm={name: feddc, correction: false}",
            "learning.algorithm.correction: was removed: ",
        ),
        ("learning.base_model=once", "learning.base_model: was removed: "),
        (
            "learning.algorithm={name: fedadam, beta1: 0.3}",
            "learning.algorithm.beta1: is now a constant, 0.9: ",
        ),
        ("learning.algorithm={name: ditto, pull: 1}", "has a new name: write learning.algorithm.mu"),
        ("radio.broadcast_quantile=0", "radio.broadcast_quantile: is now a constant, 0.05: leave it out"),
    ],
)
def test_keys_of_earlier_versions_say_what_became_of_them(tmp_path: Path, sets: str, message: str) -> None:
    assert message in refusal(tmp_path, GOOD, sets)


@pytest.mark.parametrize("key", MOVED)
def test_keys_of_earlier_versions_say_where_they_are_now(tmp_path: Path, key: str) -> None:
    """Errors about old keys, in overrides and files, name the key's new place, and the key exists there."""
    section, _, name = key.partition(".")
    now = f"{section}.{MOVED[key]}"
    assert f"--set {key}=1 {key}: has moved to another section: write {now}" in refusal(
        tmp_path, GOOD, f"{key}=1"
    )
    text = f"name: old\n{section}:\n  {name}: 1\n"
    assert f"a.yaml:3 {key}: has moved to another section: write {now}" in refusal(tmp_path, text)
    assert describe(now).startswith(now)


class Sample(Strict):
    whole: int = 1
    share: float = 1.0
    maybe: float | None = None
    either: float | Literal["counted"] = "counted"
    choice: Literal["a", "b"] = "a"
    on: bool = False
    text: str = ""
    pair: tuple[float, float] = (0.0, 0.0)
    lists: list[list[int]] = Field(default_factory=list)
    by_name: dict[str, int] = Field(default_factory=dict)
    by_id: dict[int, float] = Field(default_factory=dict)
    deep: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)
    path: Path | None = None


@pytest.mark.parametrize(
    "values",
    [
        {
            "whole": 5.0,
            "share": 3,
            "maybe": None,
            "either": 2,
            "on": True,
            "pair": [1, 2],
            "lists": [[1], []],
        },
        {"by_name": {"a": 1}, "by_id": {"3": 1}, "deep": [1], "path": "a/b", "either": "counted", "maybe": 1},
    ],
)
def test_what_is_meant_is_taken(values: dict[str, Any]) -> None:
    sample = Sample.model_validate(values)
    assert all(type(getattr(sample, key)) is not bool for key in values if key != "on")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("whole", True, "must be a whole number, got true"),
        ("whole", "010", "must be a whole number, got '010': write 10"),
        ("whole", "08", "must be a whole number, got '08': write 8"),
        ("whole", "0x1F", "must be a whole number, got '0x1F': write 31"),
        ("whole", "5", "must be a whole number, got '5': write it without quotes"),
        ("whole", "1:30", "must be a whole number, got '1:30'"),
        ("share", True, "must be a number, got true"),
        (
            "share",
            None,
            "must be a number, got null: null is not allowed here; leave the key out for its default",
        ),
        ("maybe", "none", "must be a number, got 'none': write null for none"),
        ("maybe", False, "must be a number, got false"),
        ("maybe", "1", "must be a number, got '1': write it without quotes"),
        ("either", True, "must be a number or 'counted', got true"),
        ("either", "countd", "must be a number or 'counted', got 'countd'"),
        ("choice", "c", "must be 'a' or 'b', got 'c'"),
        ("choice", [], "must be 'a' or 'b', got []"),
        ("on", 1, "must be true or false, got 1"),
        ("on", "off", "must be true or false, got 'off'"),
        ("pair", [0, True], "must be a number, got true"),
        ("lists", [[1], [True]], "must be a whole number, got true"),
        ("by_name", {"a": True}, "must be a whole number, got true"),
        ("deep", [True], "must be a whole number, got true"),
    ],
)
def test_what_is_a_slip_is_refused(key: str, value: Any, message: str) -> None:
    with pytest.raises(ValidationError) as error:
        Sample.model_validate({key: value})
    (only,) = error.value.errors()
    assert (only["loc"], only["msg"]) == ((key,), message)


STUDY = """\
name: few
scenario: a.yaml
seeds: [1, 2]
reference: "1"
variants:
  1: &first {learning.local.lr: 0.1}
  off: {<<: *first, learning.local.steps: 3}
grid:
  2026: {10: {devices.count: 5}}
"""


def test_a_study_is_read_by_the_same_rules(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "s.yaml").write_text(STUDY)
    one, off, *_ = studies.plan(tmp_path / "s.yaml").runs
    assert (one.member.variants, one.member.setting) == (("1", "off"), {"2026": "10"})
    assert one.scenario.devices.count == 5
    assert off.scenario.learning is not None
    assert (off.scenario.learning.local.lr, off.scenario.learning.local.steps) == (0.1, 3)


@pytest.mark.parametrize(
    "name", ["..:x", ".a:b", ":", "a:", "x.yaml", "", " ", "os:path", "ü", "a/b", "../x"]
)
def test_odd_names_of_components_are_refused(tmp_path: Path, name: str) -> None:
    assert "learning.algorithm: " in refusal(tmp_path, GOOD, f"learning.algorithm='{name}'")


def test_a_mapping_that_is_missing_points_at_the_indent(tmp_path: Path) -> None:
    text = GOOD.replace("devices: {count: 4}", "devices:\ncount: 4")
    assert (
        "a.yaml:2 devices: must be a mapping of keys to values, got null: are the lines below indented?"
        in (refusal(tmp_path, text))
    )


def test_a_name_that_reads_as_a_number(tmp_path: Path) -> None:
    for name in ("1e5", "2026", "true"):
        message = refusal(tmp_path, GOOD.replace("small", name))
        assert "a.yaml:1 name: must be text, got " in message
        assert "write it in quotes" in message
        (tmp_path / "a.yaml").write_text(GOOD.replace("small", f'"{name}"'))
        loaded = scenarios.load(tmp_path / "a.yaml")
        (tmp_path / "again.yaml").write_text(scenarios.dump(loaded))
        again = scenarios.load(tmp_path / "again.yaml")
        assert again.name == loaded.name == name


def test_a_message_is_short_however_much_is_wrong(tmp_path: Path) -> None:
    many = "".join(f"key{n}: 1\n" for n in range(3000))
    lines = refusal(tmp_path, GOOD + many).splitlines()
    assert lines[0].startswith(f"{tmp_path}/a.yaml:7 key0: unknown key")
    named = len(lines) - 1
    assert named > 3
    assert lines[-1] == f"and {3000 - named} more"
    for text, sets in [
        (GOOD + many, ()),
        (GOOD, (f"learning.local.lr={'x' * 5000}",)),
        (GOOD, (f"learning.local.lr={list(range(5000))}",)),
        (GOOD, (f"{'x' * 5000}=1",)),
        (GOOD, ("x" * 5000,)),
        (GOOD, (f"learning.model={'x' * 5000}",)),
        (GOOD, (f"learning.algorithm={{name: fedavg, {'x' * 5000}: 1}}",)),
        (GOOD, ("learning.local.lr=" + "[" * 5000,)),
        (GOOD, (".".join(["a"] * 5000) + "=1",)),
        (GOOD, ("learning.local.lr" + ".a" * 40 + "=1", "seed" + ".a" * 40 + "=1")),
    ]:
        message = refusal(tmp_path, text, *sets)
        assert len(message) <= LONGEST_MESSAGE, sets
        assert max(map(len, message.splitlines())) <= 600


def test_values_are_quoted_on_one_line() -> None:
    assert quoted("a\nb") == r"'a\nb'"
    assert len(quoted("x" * 1000)) == len(quoted([1] * 1000)) == 80
    assert clipped("a\nb [/x]") == r"a\nb [/x]"
    assert len(clipped("x" * 1000)) == 80
    assert [quoted(each) for each in (None, True, 1.0)] == ["null", "true", "1.0"]


def test_a_negative_zero_is_a_zero() -> None:
    from edgefl.learning.datasets.synthetic import Synthetic

    assert str(Synthetic.model_validate({"beta": -0.0}).beta) == "0.0"

"""Test presets of all sections: modelled costs, the meaning of null, and descriptions of defaults."""

import re
from collections.abc import Iterator
from functools import reduce
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefl.commands.descriptions import describe, sections
from edgefl.commands.sections import tree
from edgefl.config import registry
from edgefl.config.component import parameters_of
from edgefl.config.yaml_source import parse_value
from edgefl.engine.air.presets import Preset
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.settings import DeviceSettings, RoundSettings
from edgefl.learning.settings import LearningSettings
from edgefl.scenario import presets
from edgefl.scenario.presets import FOLLOWS, PRESETS, keys_of_presets
from edgefl.scenario.scenario import Scenario, dump, load
from edgefl.studies import planning
from edgefl.testing.cell import within
from tests.refusals import refused_at

WORKLOAD = {"payload_bits": 1000, "flops_per_sample": 1}
SMALL = {"name": "small", "devices": {"count": 4}, "sessions": {"name": "schedule", "count": 1, "rounds": 1}}
LEARNING = {"dataset": "digits", "model": "logistic", "algorithm": "scaffold"}
# key of a preset that may be null -> other keys that a null requires
MAY_BE_NONE: dict[str, dict[str, Any]] = {
    "radio.tdd": {},
    "radio.monitoring.t310_s": {"radio.link.rates": "shannon"},
    "radio.budget.uplink_power_over_share": {},
    "radio.budget.uplink_p0_dbm": {},
    "radio.budget.site_noise_figure_db": {},
    "radio.budget.nlos_array_gain_db": {},
    "radio.monitoring.coverage_margin_db": {},
    "devices.vehicle_above_m_s": {},
}
KEYS = [f"{section}.{key}" for section, keys in keys_of_presets().items() for key in keys]


def scenario(preset: str = "nr", changes: dict[str, Any] | None = None, **sections: Any) -> Scenario:
    task = {} if "workload" in sections or "federations" in sections else {"learning": LEARNING}
    radio = {"preset": preset}
    data = {**SMALL, "radio": radio, **task, **sections}
    for dotted, value in (changes or {}).items():
        for key in reversed(dotted.split(".")):
            value = {key: value}
        data = within(data, value)
    return load(data)


def value_of(one: Scenario, dotted: str) -> Any:
    return attrgetter(dotted)(one)


def again(one: Scenario, tmp_path: Path) -> Scenario:
    path = tmp_path / "scenario.yaml"
    path.write_text(dump(one))
    return load(path)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_is_written_as_null_is_none_or_refused(key: str, preset: str, tmp_path: Path) -> None:
    if key not in MAY_BE_NONE:
        with refused_at(key):
            scenario(preset, {key: None})
        return
    with_null = scenario(preset, {key: None, **MAY_BE_NONE[key]})
    read = again(with_null, tmp_path)
    assert value_of(with_null, key) is value_of(read, key) is None
    assert dump(read) == dump(with_null)
    # a run stays the same if the preset has other values in another version
    other = next(one for one in PRESETS if one != preset)
    (tmp_path / "scenario.yaml").write_text(dump(with_null).replace(f"preset: {preset}", f"preset: {other}"))
    assert value_of(load(tmp_path / "scenario.yaml"), key) is None


def test_null_is_none_however_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(yaml.safe_dump({**SMALL, "workload": WORKLOAD}))
    assert load(path, ["radio.tdd=null"]).radio.tdd is None
    assert load(path).with_(radio__tdd=None).radio.tdd is None
    without_source = Scenario.model_validate({**SMALL, "workload": WORKLOAD, "radio": {"tdd": None}})
    assert without_source.with_(seed=7).radio.tdd is None
    of_object = {**SMALL, "workload": WORKLOAD, "radio": RadioSettings(tdd=None)}
    assert Scenario.model_validate(of_object).radio.tdd is None
    study = tmp_path / "study.yaml"
    study.write_text(
        "name: duplex\nscenario: a.yaml\nseeds: [1]\nvariants: {tdd: {}, fdd: {radio.tdd: null}}\n"
    )
    frames = [run.scenario.radio.tdd for run in planning.plan(study).runs]
    assert sorted(frame is None for frame in frames) == [False, True]


def test_a_section_that_is_null_comes_back(tmp_path: Path) -> None:
    one = scenario(changes={"radio.access": None})
    assert one.radio.access is None
    assert again(one, tmp_path).radio == one.radio


def test_none_in_words_is_null() -> None:
    """Scenarios of earlier versions have the word none in place of null, and their runs can still be read."""
    words, nulls = (
        scenario(changes={"radio.tdd": none, "radio.monitoring.coverage_margin_db": none}).radio
        for none in ("none", None)
    )
    assert words == nulls
    with refused_at("radio.budget.uplink_p0_dbm", "null"):
        scenario(changes={"radio.budget.uplink_p0_dbm": "none"})


def test_without_t310_no_failure_is_waited_for() -> None:
    radio = scenario(changes={"radio.monitoring.t310_s": None, "radio.link.rates": "shannon"}).radio
    assert (radio.monitoring.t310_s, radio.monitoring.t311_s) == (None, 0.0)
    with refused_at("radio", "set monitoring.t310_s"):
        scenario(changes={"radio.monitoring.t310_s": None})


def test_a_class_has_none_of_what_is_null(tmp_path: Path) -> None:
    classes = {"walkers": {"share": 0.5, "vehicle_above_m_s": None, "battery_j": None}, "drivers": {}}
    devices = {"count": 4, "battery_j": 10.0, "classes": classes}
    one = scenario(devices=devices)
    for each in (one, again(one, tmp_path)):
        walkers, drivers = each.devices.kinds()
        assert (walkers.vehicle_above_m_s, walkers.battery_j) == (None, None)
        assert (drivers.vehicle_above_m_s, drivers.battery_j) == (3.0, 10.0)
    classes["walkers"]["clock_hz"] = None
    with refused_at("devices.classes.walkers", "clock_hz"):
        scenario(devices=devices)


@pytest.mark.parametrize("made", [dict, lambda own: RoundSettings(**own)], ids=["mapping", "object"])
def test_a_federation_has_none_of_what_its_rounds_have_null(made: Any, tmp_path: Path) -> None:
    federations = {
        "a": {"share": 0.5, "workload": WORKLOAD, "rounds": made({"every_s": None})},
        "b": {"share": 0.5, "workload": WORKLOAD, "rounds": made({"min_updates": 2})},
    }
    radio = {"sharing": "dynamic", "budget": {"uplink_power_over_share": "per_resource_block"}}
    one = scenario(federations=federations, radio=radio, rounds=made({"every_s": 5.0}))
    for each in (one, again(one, tmp_path)):
        assert [each.of_federation(name).rounds.every_s for name in "ab"] == [None, 5.0]


@pytest.mark.parametrize(
    ("preset", "counted"), [("nr", ("exchanged", "all")), ("journal", ("model", "processed"))]
)
def test_the_preset_says_what_is_paid(preset: str, counted: tuple[str, str], tmp_path: Path) -> None:
    def paid(one: Scenario) -> tuple[str, str]:
        return one.learning.cost.payload, one.learning.cost.booked

    one = scenario(preset)
    assert paid(one) == paid(again(one, tmp_path)) == counted
    assert paid(scenario(preset, learning=LearningSettings.model_validate(LEARNING))) == counted
    federations = {
        "a": {"share": 0.5, "learning": LEARNING},
        "b": {"share": 0.5, "learning": LearningSettings.model_validate(LEARNING)},
    }
    budget = {"uplink_power_over_share": "per_resource_block"}
    radio = {"preset": preset, "sharing": "dynamic", "budget": budget}
    several = scenario(radio=radio, federations=federations)
    assert {paid(several.of_federation(name)) for name in "ab"} == {counted}
    by_hand = {**LEARNING, "cost": {"payload": "exchanged", "booked": "nominal"}}
    for learning in (by_hand, LearningSettings.model_validate(by_hand)):
        assert paid(scenario(preset, learning=learning)) == ("exchanged", "nominal")


def test_a_preset_gives_no_learning_to_who_has_none() -> None:
    assert scenario("journal", workload=WORKLOAD).learning is None
    assert scenario("journal", workload=WORKLOAD, learning=None).learning is None


def test_sections_as_objects_are_filled_like_mappings() -> None:
    as_mapping = scenario(devices={"count": 4, "idle_power_w": 0.5})
    as_object = scenario(devices=DeviceSettings(count=4, idle_power_w=0.5))
    assert as_object.devices == as_mapping.devices
    assert as_object.devices.indoor_share == 0.8
    indoors = {"path_loss": registry.get("path_loss", "inh")()}
    assert scenario(radio=indoors, cell={"radius_m": 100.0}).devices.indoor_share == 0.0


def told(text: str) -> dict[str, Any]:
    """Return a key's default by preset, read from the words of `describe` and the reference."""
    usual, _, journal = text.partition(", or ")
    journal = journal.removesuffix(" with preset: journal")
    usual = usual.partition(" (it follows ")[0]
    return {
        preset: parse_value(said, "describe")
        for preset, said in (("nr", usual), ("journal", journal or usual))
    }


def described_default(key: str) -> str:
    """Return a key's default in the words of `describe`, which lists a section's default among its parent's lines."""
    line = next((one for one in describe(key).splitlines() if one.startswith("  default: ")), None)
    if line is not None:
        return line.removeprefix("  default: ")
    section, _, name = key.rpartition(".")
    lines = describe(section or "scenario").splitlines()
    return next(one for one in lines if one.startswith(f"  {name}: ")).rpartition("default ")[2][:-1]


def in_schema(key: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema's node of a key, through any references to its section."""
    node: dict[str, Any] = {"properties": schema["properties"]}
    for name in key.split("."):
        waiting, found = [node], list[dict[str, Any]]()
        while waiting:
            one = waiting.pop(0)
            if "$ref" in one:
                waiting.append(schema["$defs"][one["$ref"].rpartition("/")[2]])
            found += [one["properties"][name]] if name in one.get("properties", {}) else []
            names = one.get("additionalProperties"), *one.get("patternProperties", {}).values()
            waiting += [inner for inner in names if isinstance(inner, dict)]
            waiting += [*one.get("anyOf", ()), *one.get("oneOf", ())]
        node = found[0]
    return node


def of_schema(node: dict[str, Any]) -> dict[str, Any]:
    """Return a key's default by preset, read from the words of the JSON Schema."""
    both = re.search(r"; by default (.+), or (.+) with preset: journal", node["description"])
    default = node.get("default")
    return {"nr": default, "journal": parse_value(both[2].strip(), "describe") if both else default}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_default_is_told_as_it_is(preset: Preset) -> None:
    """`describe`, the reference and the schema state the values of a scenario that leaves the key out."""
    one, schema = scenario(preset), Scenario.model_json_schema()
    reference = {row[0].strip("`"): row[4] for _, _, rows in sections() for row in rows}
    given = ("name", "devices.count", "sessions", "learning", "learning.algorithm", "radio.preset")
    checked = 0
    for before, section in tree():
        for name, field in section.model_fields.items():
            key, text = f"{before}{name}", described_default(f"{before}{name}")
            if key in given:
                continue
            assert reference[key] == ("required" if field.is_required() else text), key
            if field.is_required() or text in ("set by its keys", "as in devices"):
                continue
            own = reduce(lambda of, part: getattr(of, part, None), before.split(".")[:-1], one)
            if isinstance(own, section):  # compare values that presets set, too
                set_so = value_of(scenario(preset, {key: told(text)[preset]}), key)
                assert set_so == getattr(own, name), key
            else:
                assert told(text)[preset] == plain(field.get_default(call_default_factory=True)), key
            node = in_schema(key, schema)
            if isinstance(told(text)[preset], str | int | float | None) and "description" in node:
                assert of_schema(node)[preset] == told(text)[preset], key
            checked += 1
    assert checked > 200


SHANNON = {"radio.link.rates": "shannon"}
# a key that defaults depend on -> keys of a scenario in which these defaults differ
CAUSES: dict[str, dict[str, Any]] = {
    "rounds.selector": {"rounds.selector": {"name": "least_energy", "count": 2}},
    "carrier_hz": {"radio.carrier_hz": 0.8e9},
    "bandwidth_hz": {"radio.bandwidth_hz": 20e6},
    "path_loss": {"radio.path_loss": "inh", "cell.radius_m": 80.0},
    "line_of_sight": {"radio.propagation.line_of_sight": "never"},
    "array_gain_db": {"radio.budget.array_gain_db": 10.0},
    "rates": SHANNON,
    "shadowing": {"radio.propagation.shadowing": "round"},
    "t310_s": {"radio.monitoring.t310_s": None, **SHANNON},
    "sectors": {"layout.sectors": 3},
    "azimuth_deg": {"layout": {"sites": [[0, 0]], "azimuth_deg": [[30.0, 150.0, 270.0]]}},
    "indoors_by": {"devices.indoors_by": "place"},
    "circuit_power_w": {"devices.circuit_power_w": 0.2},
    "uplink_circuit_power_w": {"devices.uplink_circuit_power_w": 0.2},
    # `rates: shannon` alone changes these defaults, so BESIDE sets it in both scenarios
    "sharing": {"radio.sharing": "static", **SHANNON},
    "uplink_power_over_share": {"radio.budget.uplink_power_over_share": "per_resource_block", **SHANNON},
}
BESIDE = {"t310_s": SHANNON, "sharing": SHANNON, "uplink_power_over_share": SHANNON}


def test_defaults_that_follow_other_keys_say_so() -> None:
    """A default that depends on another key names this key, and no other default depends on it."""
    follows = {key: set(re.split(r", | and ", said)) for key, said in FOLLOWS.items()}
    assert set.union(*follows.values()) == set(CAUSES)
    for cause, changes in CAUSES.items():
        plain_one, other = scenario(changes=BESIDE.get(cause, {})), scenario(changes=changes)
        differ = {key for key in KEYS if value_of(plain_one, key) != value_of(other, key)}
        wanted = {key for key, of in follows.items() if cause in of}
        assert differ - set(changes) - {"layout.sites"} == wanted, cause
    assert describe("tdd").startswith("radio.tdd\n")
    assert "default: 44 (it follows path_loss and bandwidth_hz), or 43 with" in describe("server_power_dbm")


def plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def test_keys_of_classes_are_those_of_devices_where_they_are_left_out() -> None:
    lines = describe("devices.classes").splitlines()
    assert next(one for one in lines if one.startswith("  battery_j: ")).endswith("default as in devices)")
    assert next(one for one in lines if one.startswith("  samples: ")).endswith("default null)")


def test_every_key_that_follows_the_paper_is_a_presets_or_has_its_reason() -> None:
    """A key whose description cites J is set by a preset or explained in the docstring of presets."""
    decided = set(KEYS) | {"radio.preset"}
    words = set(re.findall(r"[a-z_]+", presets.__doc__ or ""))
    reasons = words - {key.partition(".")[0] for key in KEYS}  # the name of a section explains no key
    undecided = [
        dotted
        for dotted, description in described()
        if re.search(r"\(J\b|\bJ \d|\bJ counts|\), J;|journal", description)
        and dotted not in decided
        and not {dotted.rpartition(".")[2], dotted.partition(".")[0]} & reasons
    ]
    assert undecided == []


def described() -> Iterator[tuple[str, str]]:
    """Yield every key of a scenario and every parameter of a component, with its description."""
    for _, _, rows in sections():
        yield from ((row[0].strip("`"), row[1]) for row in rows)
    for kind in registry.KINDS:
        for name in registry.names(kind):
            fields = parameters_of(registry.get(kind, name)).model_fields
            yield from ((f"{name}.{key}", field.description or "") for key, field in fields.items())

"""The values that `radio.preset` determines for omitted keys, in every section of a scenario.

`nr`, the default, is a realistic radio on which everything that is sent and computed costs time and energy; `journal`
has the radio and the accounting of the journal paper. A key that a preset does not name has its field's default.

Other keys follow the paper (J) in both presets, each for a reason:

- `downlink: unicast`: whether a site broadcasts differs between networks; unicast is the simplest case, as is
  `mobility: static`, with the Doppler shift of Table I.
- `devices.pa_efficiency`: only matters with `power: journal`, which belongs to the preset `journal`.
- `learning.local.steps`, `batch`, `lr`, `momentum`: the numbers of Table I, unless the user sets them.
- `learning.local.lr_schedule: polynomial`: bounds for FedAvg assume a decreasing rate, which costs nothing.
- `optimiser.state: fresh`: momentum restarts each round, since devices keep no state, as in most papers.
- Means by data size (J 5; `weighting: data`, fedbuff's shares): as in FedAvg, so that all methods use the same means.
- `learning.after_pilot: continue`: a run continues with its current model; the paper's scenarios set `restart`.
- `overlap_of: all`, parameters of `similarity` and `continuous` (J 16 to 19, 30), `svhn_cnn`'s variant: the paper's
  own methods and models.
- Seconds and joules of a sample's passes (J 27, 28): the usual formulas; only their parameters differ.
"""

from collections.abc import Collection, Mapping
from typing import Any

from edgefl.config import registry
from edgefl.config.scenario_fields import given_keys
from edgefl.engine.air.presets import NR, Preset, lacking, path_loss_of, with_preset
from edgefl.errors import EdgeflError

PRESETS: dict[Preset, dict[str, dict[str, Any]]] = {
    "nr": NR,
    # a transfer counts as one model, and forward passes without training cost nothing
    "journal": {"learning.cost": {"payload": "model", "booked": "processed"}},
}
# keys whose value in nr depends on other keys; descriptions state the value for those keys' defaults
FOLLOWS = {
    "radio.sharing": "rounds.selector",
    "radio.tdd": "carrier_hz",
    "radio.budget.server_power_dbm": "path_loss and bandwidth_hz",
    "radio.budget.array_gain_db": "path_loss",
    "radio.budget.nlos_array_gain_db": "path_loss, carrier_hz and array_gain_db",
    "radio.budget.uplink_p0_dbm": "rates, sharing and uplink_power_over_share",
    "radio.link.downlink_layers": "rates",
    "radio.link.frequency_taps": "path_loss, carrier_hz, bandwidth_hz, line_of_sight and rates",
    "radio.monitoring.coverage_margin_db": "rates and shadowing",
    "radio.monitoring.t311_s": "t310_s",
    "layout.antenna_gain_dbi": "sectors and azimuth_deg",
    "devices.indoor_share": "path_loss",
    "devices.vehicle_above_m_s": "path_loss and indoors_by",
    "devices.power": "circuit_power_w and uplink_circuit_power_w",
}


def with_presets(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario with its preset's values in all sections except `radio`, which fills in its values itself.

    Sections, including those of federations, may be mappings or objects. 38.901 defines penetration losses only for
    UMi and UMa: with another path loss, devices are neither indoors nor in cars unless the scenario says so.
    """
    radio = given_keys(data.get("radio")) or {}
    if radio.get("preset", "nr") == "nr" and (missing := lacking(data, radio.get("carrier_hz"))):
        raise EdgeflError(
            "above 7.125 GHz, nr has no default for beams, site power or device power: set "
            f"{', '.join(missing)}; nr does not model blockage either",
            ("radio", "carrier_hz"),
        )
    values = next((of for preset, of in PRESETS.items() if preset == radio.get("preset", "nr")), {})
    values = {place: keys for place, keys in values.items() if place.partition(".")[0] != "radio"}
    walls = path_loss_of(radio).indoor_depth_m is not None
    left_out: tuple[str, ...] = () if walls else ("indoor_share", "vehicle_above_m_s")
    if radio.get("measured") is not None:  # measured rates include penetration losses
        values = {place: keys for place, keys in values.items() if place not in ("handover", "layout")}
        left_out = ("indoor_share", "indoors_by", "vehicle_above_m_s")
    filled = _filled(data, values, left_out, made=NR)
    if "sharing" not in radio and isinstance(data.get("radio", {}), Mapping) and _sets_shares(data):
        filled["radio"] = {**radio, "sharing": "static"}  # shares that a selector sets are fixed for a round
    federations = filled.get("federations")
    if isinstance(federations, Mapping):
        own = {name: given_keys(one) for name, one in federations.items()}
        filled["federations"] = {
            name: one if (keys := own[name]) is None else _filled(keys, values)
            for name, one in federations.items()
        }
    return filled


def defaults_of(dotted: str, own: Any) -> dict[Preset, Any]:
    """Return a dotted key's default in each preset; `own` is the default that the key's field declares."""
    whole = dotted.removeprefix("federations.")
    section, _, key = whole.rpartition(".")
    # the key may also be a section that only a preset fills
    of = {preset: own if own is not None else sections.get(whole) for preset, sections in PRESETS.items()}
    return {preset: sections.get(section, {}).get(key, of[preset]) for preset, sections in PRESETS.items()}


def following(dotted: str) -> str:
    """Return a phrase that names the keys on which a key's default in nr depends; '' if there are none."""
    keys = FOLLOWS.get(dotted.removeprefix("federations."))
    return f" (it follows {keys})" if keys else ""


def keys_of_presets() -> dict[str, list[str]]:
    """Return the keys that presets set, by section."""
    tables = [table for sections in PRESETS.values() for table in sections.items()]
    return {
        section: list(dict.fromkeys(k for of, keys in tables if of == section for k in keys))
        for section, _ in tables
    }


def with_preset_defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario's JSON Schema with nr's values as defaults, and journal's values in the descriptions."""
    for section, keys in keys_of_presets().items():
        properties = schema["properties"]
        for name in section.split("."):
            options = [properties[name], *properties[name].get("anyOf", ())]
            of = next(one["$ref"] for one in options if "$ref" in one).rpartition("/")[2]
            properties = schema["$defs"][of]["properties"]
        for key in keys:
            told = properties[key]
            by_preset = defaults_of(f"{section}.{key}", told.get("default"))
            if by_preset["nr"] == by_preset["journal"]:
                continue
            said = {preset: _in_words(value) for preset, value in by_preset.items()}
            follows = following(f"{section}.{key}")
            told["description"] += (
                f"; by default {said['nr']}{follows}, or {said['journal']} with preset: journal"
            )
            told["default"] = by_preset["nr"]
    return schema


def _in_words(value: Any) -> str:
    """Format a preset's value for a key's description, such as cqi, none or pattern: DDDSU."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {each}" for key, each in value.items())
    return "null" if value is None else str(value)


def _filled(
    data: Mapping[str, Any],
    values: Mapping[str, Mapping[str, Any]],
    left_out: Collection[str] = (),
    made: Collection[str] = (),
) -> dict[str, Any]:
    """Return sections with a preset's values filled in; `made` are the sections to add if they are missing."""
    filled = dict(data)
    for place, keys in values.items():
        section, _, inner = place.partition(".")
        given = given_keys(filled.get(section, {} if section in made else None))
        if given is None:
            continue
        below = {inner: keys}
        whole = _filled(given, below, left_out, made=below) if inner else with_preset(given, keys, left_out)
        if whole != given:
            filled[section] = whole
    return filled


def _sets_shares(data: Mapping[str, Any]) -> bool:
    """Return whether the scenario's selector sets shares or powers for a round."""
    selector = (given_keys(data.get("rounds")) or {}).get("selector")
    name = selector.get("name") if isinstance(selector, Mapping) else selector
    kind: Any = type(selector)
    if isinstance(name, str):
        try:
            kind = registry.get("selectors", name)
        except EdgeflError:
            return False  # unknown, or code that is not allowed to run: other code reports it
    return bool(getattr(kind, "sets", frozenset()) & {"shares", "power"})

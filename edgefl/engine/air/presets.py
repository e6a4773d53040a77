"""What the radio's presets say of the engine's sections: what a key is that a scenario leaves out.

`nr`, a radio that exists, is the default; `journal` is what these settings have of their own, Table I of the journal
paper. A key that is written, null too, is the user's. `edgefl.scenario.presets` has all sections.

Where each law is: line of sight and shadowing in `edgefl.channel.large_scale`, walls in `penetration`, rates in
`modulation`, power over shares in `share`; the engine reads gains anew and gives links up in
`edgefl.engine.air.radio_link_monitoring`, and `edgefl.engine.air.indoors` says who is behind which walls. The
layer-3 filter and the correlation of the sites' shadowing are the defaults of both presets. Which rules of handover
are configured differs between operators and cells: nr has event A3 as it is customary, and docs/trust.md what comes
of it.
"""

from collections.abc import Collection, Mapping
from typing import Any, Literal

from edgefl.config.scenario_fields import given_keys
from edgefl.engine.power_models import CIRCUITS

Preset = Literal["journal", "nr"]

NR: dict[str, dict[str, Any]] = {
    "radio.propagation": {
        "line_of_sight": "soft",  # 38.901, 7.4.2 and 7.6.3.3
        "shadowing": "spatial",  # 7.4.4
        "site_correlation": 0.5,
        "los_site_correlation": 0.5,  # as shadowing's: what stands around a device is in the way of all sites
    },
    "radio.budget": {
        "power_over_share": "per_resource_block",
        "uplink_power_over_share": "full",  # a device has the power of its own amplifier
        # 38.802, Annex A: panels of 4 x 8 elements, 15 dB, less 3 dB as beams are a grid and paths come from around
        "array_gain_db": 12.0,
        "uplink_p0_dbm": -80,  # 38.213, 7.1.1; 5G-LENA's NrUePowerControl has this, srsRAN's base station -76
        "uplink_alpha": 0.8,  # of the values that 38.331 has, 0, 0.4 to 1
        "noise_figure_db": 9.0,  # of devices, 38.802, Annex A
        "site_noise_figure_db": 5.0,  # likewise
    },
    "radio": {
        # n78 and the other bands from 2.4 GHz on; below, bands are FDD, and nothing is filled in
        "tdd": {"pattern": "DDDSU"},
        "interference": "slot",  # of whatever neighbour_load is given
    },
    "radio.link": {
        "uplink_smallest_part": 0.0625,  # 17 of 273 blocks; 38.214, 6.1.2.2: any number may be given
        # 38.101-1, 7.2: four receive antennas in n78; measured, four layers carry what two ideal ones would: trust.md
        "downlink_layers": 2,
        "rates": "cqi",  # 38.214, Table 5.2.2.1-3
        "control_overhead": 0.14,  # 38.306, 4.1.2, downlink below 6 GHz
        "protocol_overhead": 0.03,  # MAC, RLC, PDCP, IP and TCP
        "harq_bler": 0.1,  # the target for which a CQI is reported, 38.214, 5.2.2.1
    },
    "radio.monitoring": {
        "gain_reading": "interval",
        "coverage_margin_db": 3.0,  # as Qin lies above Qout: 38.133, 8.1, a block error rate of 2 % and one of 10 %
        "t310_s": 1.0,  # 38.331
        "t311_s": 3.0,  # 38.331 has 1 to 30 s, OpenAirInterface's base station this
    },
    "handover": {
        "l3_filter_k": 4,  # 38.331, 5.5.3.2, and the default of filterCoefficient
        # Customary: telecomhall.net/t/28801 has an offset of 3 dB, a hysteresis of 0 or more and 320 ms. The offset
        # holds when the event leaves, too: with 0 and a hysteresis of 3 dB, as in ns-3 and in the journal's preset,
        # a neighbour that falls back to 3 dB below the serving cell still counts as entered.
        "a3_offset_db": 3.0,
        "hysteresis_db": 1.0,
        "time_to_trigger_s": 0.32,
    },
    # 38.901, Table 7.3-1: a panel has 8 dBi ahead, and 4.6 in the mean over the 120 degrees that it serves
    "layout": {"antenna_gain_dbi": 5.0},
    "devices": {
        "indoor_share": 0.8,  # 38.901, Table 7.2-1, of those who walk or stay
        "indoors_by": "trip",
        "vehicle_above_m_s": 3.0,  # 11 km/h: faster than those who walk or run
        "penetration": "low_loss",
        "power": "tr38840",
        "idle_power_w": 0.01,  # 38.840: deep sleep, and paging each 1.28 s, 1.7 units of 6 mW
    },
}
TDD_FROM_HZ = 2.4e9  # of bands, those from here on


def with_preset(
    given: Mapping[str, Any],
    values: Mapping[str, Any],
    left_out: Collection[str] = (),
    beside: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a section's keys, and a preset's values of those that are not given, but for those left out.

    A key that is given as null is given. Values are taken in the preset's order: some depend on those before them.

    Args:
        beside: keys of the sections around it.
    """
    filled = dict(given)
    for key, value in values.items():
        if key not in filled and key not in left_out and _fits(key, {**(beside or {}), **filled}):
            filled[key] = value
    return filled


def with_radio_preset(radio: Mapping[str, Any]) -> dict[str, Any]:
    """Return the radio's keys and sections with nr's values of what is not given; a section may be an object."""
    values = {
        place.partition(".")[2]: keys for place, keys in NR.items() if place.partition(".")[0] == "radio"
    }
    filled = dict(radio)
    own = {section: given_keys(radio.get(section, {})) for section in values if section}
    known = {**filled, **{key: value for keys in own.values() if keys for key, value in keys.items()}}
    for section, of in values.items():
        given = own[section] if section else filled
        if given is None:  # no section: what checks the radio says so
            continue
        whole = with_preset(given, of, beside=known)
        known |= whole
        filled |= {section: whole} if section else whole
    return filled


def _fits(key: str, given: Mapping[str, Any]) -> bool:
    """Tell whether a value of the preset has a place beside what a scenario gives; others say what is wrong."""
    by_cqi = given.get("rates", "cqi") == "cqi"
    power_rule = given.get("uplink_power_over_share") or given.get("power_over_share")
    match key:
        case "tdd":
            carrier_hz = given.get("carrier_hz")
            return not isinstance(carrier_hz, int | float) or carrier_hz >= TDD_FROM_HZ
        case "power":  # whoever describes the circuits means the model that has them
            of_classes = given.get("classes")
            classes = of_classes.values() if isinstance(of_classes, Mapping) else ()
            own = [given, *filter(None, map(given_keys, classes))]
            return not any(circuit in one for one in own for circuit in CIRCUITS)
        case "vehicle_above_m_s":
            return given.get("indoors_by") == "trip"
        case "antenna_gain_dbi":  # panels have their own
            return given.get("sectors", 1) == 1
        case "uplink_p0_dbm":  # a power for a share that is held
            return given.get("sharing") != "dynamic" or power_rule == "per_resource_block"
        case "uplink_smallest_part":
            return by_cqi and power_rule == "full"
        case "downlink_layers":
            return by_cqi
        case "coverage_margin_db":
            return by_cqi and given.get("shadowing") == "spatial"
        case "t311_s":  # counts from a failure, and without T310 no link fails
            return given.get("t310_s") is not None
    return True

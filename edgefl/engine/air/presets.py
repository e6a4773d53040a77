"""Values of the radio's presets for keys that a scenario leaves out.

The default is `nr`, a radio as deployed today; `journal` consists of the settings' own defaults, Table I of the
journal paper. A key that a scenario sets, even to null, is kept. `edgefl.scenario.presets` covers all sections.

The models are in `edgefl.channel`: line of sight and shadowing in `large_scale`, penetration loss in `penetration`,
rates in `modulation`, power over shares in `share`. `edgefl.engine.air.radio_link_monitoring` measures gains and
declares radio link failures; `edgefl.engine.air.indoors` decides which devices are indoors. Both presets use the
default layer-3 filter and site correlation of the shadowing. Handover settings differ between operators and cells; nr
uses event A3 as recorded in a live network, and docs/trust.md shows the effect of these settings.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any, Literal, cast

from edgefl.channel.beams import beam_gain_db
from edgefl.channel.diversity import independent_parts
from edgefl.channel.path_loss import PathLoss, Spreads
from edgefl.channel.path_loss.umi import UMi
from edgefl.config import registry
from edgefl.config.component import build
from edgefl.config.scenario_fields import given_keys
from edgefl.engine.power_models import CIRCUITS
from edgefl.errors import EdgeflError

Preset = Literal["journal", "nr"]

NR: dict[str, dict[str, Any]] = {
    "radio": {
        "sharing": "dynamic",  # 38.214, 5.1.2.2 and 6.1.2.2: a base station divides the blocks of each slot
        # for n78 and the other TDD bands; nr sets no frame in FDD bands
        "tdd": {"pattern": "DDDSU"},
        "interference": "slot",  # has an effect only with neighbour_load above 0
    },
    "radio.propagation": {
        "line_of_sight": "soft",  # 38.901, 7.4.2 and 7.6.3.3
        "shadowing": "spatial",  # 7.4.4
        "site_correlation": 0.5,
        "los_site_correlation": 0.5,  # same as for shadowing: obstacles around a device block the paths to all sites
    },
    "radio.budget": {
        "power_over_share": "per_resource_block",
        "uplink_power_over_share": "full",  # a device's amplifier reaches full power on any share
        "server_power_dbm": 44.0,  # for UMi and 100 MHz; `_value` adapts the power to other sites and bands
        # `edgefl.channel.beams`: panels of 4 x 8 elements, 15 dB, towards the paths of a UMi link at 3.5 GHz
        "array_gain_db": 14.5,
        "nlos_array_gain_db": 9.5,
        "uplink_p0_dbm": -80,  # 38.213, 7.1.1; as in 5G-LENA's NrUePowerControl; srsRAN's base station uses -76
        "uplink_alpha": 0.8,  # 38.331 allows 0, and 0.4 to 1 in steps of 0.1
        "noise_figure_db": 9.0,  # for devices: 38.802, Annex A
        "site_noise_figure_db": 5.0,  # for base stations: 38.802, Annex A
    },
    "radio.access": {
        # SIGCOMM21-5G/artifact, RRC-Probe/data/S20US_TMobile_SA.csv: after 15 s of silence, the mean round trip of
        # 1.098 s consists of half a paging cycle (0.64 s), a connected device's round trip (0.097 s), and the setup
        "setup_s": 0.36,
        # half of srsRAN's SR period of 20 ms, and two frames of 2.5 ms, one per grant: buffer report, then data
        "grant_s": 0.015,
        "round_trip_s": 0.02,  # median of the artefact's Speedtest, T-Mobile NSA, servers within 50 km
        # flwr 1.41 and gRPC on one machine take 1.5 ms in each direction for 0.25 Mbit, and 15 ms for 21 Mbit
        "before_downlink_s": 0.002,
        "before_uplink_s": 0.002,
    },
    "radio.link": {
        # 38.101-1, 7.2: n78 has four receive antennas; four real layers carry as much as two ideal layers (trust.md)
        "downlink_layers": 2,
        # independent parts of the band, for links in line of sight, which have the fewest parts: 38.901, Table 7.5-6
        "frequency_taps": 11,
        "rates": "cqi",  # 38.214, Table 5.2.2.1-3
        "control_overhead": 0.14,  # 38.306, 4.1.2, downlink below 6 GHz
        "protocol_overhead": 0.03,  # MAC, RLC, PDCP, IP and TCP
        "harq_bler": 0.1,  # BLER target of a reported CQI, 38.214, 5.2.2.1
    },
    "radio.monitoring": {
        "gain_reading": "interval",
        "coverage_margin_db": 3.0,  # Qin over Qout: 38.133, 8.1, block error rates of 2 % and 10 %
        "t310_s": 1.0,  # 38.331
        "t311_s": 3.0,  # 38.331: 1 to 30 s; OpenAirInterface's base station uses 3
    },
    "handover": {
        "l3_filter_k": 4,  # 38.331, 5.5.3.2, and the default of filterCoefficient
        # a live standalone network in band n41 sends these values to a phone, with the default k: packet 42 of the
        # capture trace4-scatv2-5G-NR-feb-19-2025 in gaia.cs.umass.edu/wireshark-labs/wireshark-traces-9e.zip, as text
        # in kiyagak/WireShark-Portfolio 09a399f, 5G-Radio.md. The offset also applies when leaving the event: with
        # offset 0 and hysteresis 3 dB, as in ns-3 and the journal preset, the event is left only when the neighbour
        # falls 3 dB below the serving cell.
        "a3_offset_db": 3.0,
        "hysteresis_db": 1.0,
        "time_to_trigger_s": 0.64,
    },
    # 38.901, Table 7.3-1: a panel's gain is 8 dBi ahead, and 4.6 dBi on average over its 120 degrees
    "layout": {"antenna_gain_dbi": 5.0},
    "devices": {
        "indoor_share": 0.8,  # 38.901, Table 7.2-1, for people on foot
        "indoors_by": "trip",
        "vehicle_above_m_s": 3.0,  # 11 km/h, faster than people walk or jog
        "power": "tr38840",
        "idle_power_w": 0.01,  # 38.840: deep sleep and paging every 1.28 s take 1.7 units of 6 mW
    },
}
# FDD bands, 38.101-1, Table 5.2-1: the bands below n40, and n7, whose range n41 shares. The few TDD bands below n40
# (n34, n39, n50, n51) are within these ranges.
FDD_HZ = (0.0, 2.3e9), (2.5e9, 2.57e9), (2.62e9, 2.69e9)
FR1_TO_HZ = (
    7.125e9  # 38.101-1, 5.1; above it nr has no values for these keys or for blockage by people and cars
)
FR1_ONLY = {
    "radio.budget": ("array_gain_db", "nlos_array_gain_db", "server_power_dbm"),
    "devices": ("power",),
}
USUAL_CARRIER_HZ, USUAL_BANDWIDTH_HZ = 3.5e9, 100e6  # NR's values hold for this carrier and band, in UMi


def with_preset(
    given: Mapping[str, Any],
    values: Mapping[str, Any],
    left_out: Collection[str] = (),
    beside: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a section's keys, with a preset's values for missing keys except those in `left_out`.

    A key given as null is kept. Missing values are filled in the preset's order, since some depend on earlier values.

    Args:
        beside: keys of the sections that enclose this section.
    """
    filled = dict(given)
    for key, value in values.items():
        if key not in filled and key not in left_out and _fits(key, {**(beside or {}), **filled}):
            filled[key] = _value(key, value, {**(beside or {}), **filled})
    return filled


def in_fdd_band(carrier_hz: float) -> bool:
    """Return whether a carrier frequency is in an FDD band, where each direction has its own band."""
    return any(from_hz <= carrier_hz < to_hz for from_hz, to_hz in FDD_HZ)


def lacking(data: Mapping[str, Any], carrier_hz: Any) -> list[str]:
    """Return the keys that the scenario does not set and for which nr has no value at this carrier."""
    if not isinstance(carrier_hz, int | float) or carrier_hz <= FR1_TO_HZ:
        return []
    missing = []
    for place, keys in FR1_ONLY.items():
        given: Any = data
        for name in place.split("."):
            given = given_keys((given or {}).get(name, {}))
        # a section that is not a mapping fails another check
        missing += [f"{place}.{key}" for key in keys if given is not None and key not in given]
    return missing


def with_radio_preset(radio: Mapping[str, Any]) -> dict[str, Any]:
    """Return the radio's keys and sections, with nr's values for missing keys; a section may be an object."""
    values = {
        place.partition(".")[2]: keys for place, keys in NR.items() if place.partition(".")[0] == "radio"
    }
    if radio.get("measured") is not None:  # measured rates replace the radio
        return dict(radio)
    filled = dict(radio)
    own = {section: given_keys(radio.get(section, {})) for section in values if section}
    known = {**filled, **{key: value for keys in own.values() if keys for key, value in keys.items()}}
    for section, of in values.items():
        given = own[section] if section else filled
        if given is None:  # not a section: the radio's own check raises the error
            continue
        whole = with_preset(given, of, beside=known)
        known |= whole
        filled |= {section: whole} if section else whole
    return filled


def _value(key: str, value: Any, given: Mapping[str, Any]) -> Any:
    """Return the preset's value of a key for a scenario's path loss, carrier and bandwidth."""
    match key:
        case "server_power_dbm":
            dbm_per_mhz = path_loss_of(given).site_dbm_per_mhz
            if dbm_per_mhz is None:
                dbm_per_mhz = UMi.site_dbm_per_mhz
            return round(dbm_per_mhz + 10.0 * math.log10(_band_hz(given) / 1e6), 1)
        case "frequency_taps":
            in_sight = given.get("line_of_sight") != "never"
            spread = _spreads(given).los if in_sight else _spreads(given).nlos
            return min(64, round(independent_parts(_band_hz(given), spread.delay_s)))
        case "array_gain_db":
            return _beams_db(given)[0]
        case "nlos_array_gain_db":  # without line of sight, any array gain loses the same number of dB
            in_sight_db, nlos_db = _beams_db(given)
            return round(max(0.0, _number(given, "array_gain_db", in_sight_db) - in_sight_db + nlos_db), 1)
    return value


def _beams_db(given: Mapping[str, Any]) -> tuple[float, float]:
    """Return the gain of a beam with line of sight and without, for a scenario's path loss and carrier."""
    spreads = _spreads(given)
    return round(beam_gain_db(spreads.los), 1), round(beam_gain_db(spreads.nlos), 1)


def _spreads(given: Mapping[str, Any]) -> Spreads:
    """Return the delay and angular spreads of a scenario's links, by default those of UMi."""
    carrier_hz = _number(given, "carrier_hz", USUAL_CARRIER_HZ)
    return path_loss_of(given).spreads(carrier_hz) or UMi().spreads(carrier_hz)


def _band_hz(given: Mapping[str, Any]) -> float:
    return max(1e5, _number(given, "bandwidth_hz", USUAL_BANDWIDTH_HZ))


def _number(given: Mapping[str, Any], key: str, usual: float) -> float:
    """Return a scenario's number for a key, or the usual number if it is invalid; other code reports errors."""
    value = given.get(key, usual)
    return value if isinstance(value, int | float) and 0 <= value < math.inf else usual


def path_loss_of(given: Mapping[str, Any]) -> PathLoss:
    """Return the radio's path loss from a name, a mapping or an object; UMi if there is an error in it.

    Other code reports the error, such as an unknown name, or code that is not allowed to run.
    """
    law = given.get("path_loss", "umi")
    if isinstance(law, PathLoss):
        return law
    values = dict(law) if isinstance(law, Mapping) else {"name": law}
    name = values.pop("name", None)
    try:
        return (
            cast(PathLoss, build(registry.get("path_loss", name), values)) if isinstance(name, str) else UMi()
        )
    except (EdgeflError, ValueError):
        return UMi()


def _fits(key: str, given: Mapping[str, Any]) -> bool:
    """Return whether a key of the preset applies to a scenario; other code checks invalid keys."""
    by_cqi = given.get("rates", "cqi") == "cqi"
    power_rule = given.get("uplink_power_over_share") or given.get("power_over_share")
    match key:
        case "tdd":
            return not in_fdd_band(_number(given, "carrier_hz", USUAL_CARRIER_HZ))
        case "array_gain_db" | "nlos_array_gain_db" | "server_power_dbm":
            return _number(given, "carrier_hz", USUAL_CARRIER_HZ) <= FR1_TO_HZ
        case "power":  # circuit keys imply the power model that uses them
            of_classes = given.get("classes")
            classes = of_classes.values() if isinstance(of_classes, Mapping) else ()
            own = [given, *filter(None, map(given_keys, classes))]
            return not any(circuit in one for one in own for circuit in CIRCUITS)
        case "vehicle_above_m_s":
            return given.get("indoors_by") == "trip"
        case "antenna_gain_dbi":  # panels have their own gain
            return given.get("sectors", 1) == 1 and isinstance(given.get("azimuth_deg", 0.0), int | float)
        case "uplink_p0_dbm":  # the key has an effect only with resource blocks or with fixed shares
            return by_cqi or given.get("sharing") == "static" or power_rule == "per_resource_block"
        case "downlink_layers" | "frequency_taps":
            return by_cqi
        case "coverage_margin_db":
            return by_cqi and given.get("shadowing") == "spatial"
        case "t311_s":  # T311 starts at a radio link failure, which is declared only with T310
            return given.get("t310_s") is not None
    return True

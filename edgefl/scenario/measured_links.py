"""Refuse settings that conflict with measured links, such as keys that compute rates, cells or powers."""

from collections.abc import Iterator
from typing import Any

from edgefl.config.scenario_fields import Section
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.scenario.sections import Broken, Place, Sections

FREE = ("preset", "measured", "slot_s", "access")  # keys of `radio` that are allowed with measured rates
SERVER = ("server_power_dbm", "power_over_share")  # allowed in `radio.budget`: they set sites' energy
# keys of other sections from which rates or cells would be computed
COMPUTED = {
    "cell": ("bs_height_m", "ut_height_m"),
    "layout": ("antenna_gain_dbi",),
    "handover": ("a3_offset_db", "hysteresis_db", "time_to_trigger_s", "l3_filter_k"),
    "devices": ("array_gain_db", "coated_share", "indoor_share", "max_bandwidth_hz", "vehicle_above_m_s"),
}


def beside_measured_rates(s: Sections) -> Broken:
    """Yield each setting that would compute rates, cells or powers although they come from a table."""
    if s.several:
        yield ("federations",), "several federations share a band", "leave federations out"
    if s.energy_excess:
        yield ("record", "energy_excess"), "the minimum energy needs computed rates", "leave it out"
    changed = [
        *_changed(s.radio, RadioSettings(preset="journal"), ("radio",)),
        *(
            (*place, key)
            for place, section in s.others.items()
            for key in COMPUTED[place[0]]
            if getattr(section, key) != type(section).model_fields[key].default
        ),
    ]
    for name, one in (getattr(s.others.get(("devices",)), "classes", None) or {}).items():
        if one.ut_height_m is not None:
            changed.append(("devices", "classes", name, "ut_height_m"))
    for place in changed:
        yield place, "this key sets how they are computed", "leave it out"


def _changed(section: Any, plain: Any, place: Place) -> Iterator[Place]:
    """Yield the places of a section's keys with values other than those in `plain`, a section of defaults."""
    free = {("radio",): FREE, ("radio", "budget"): SERVER}.get(place, ())
    for key in type(section).model_fields:
        value, usual = getattr(section, key), getattr(plain, key)
        if key in free or value == usual:
            continue
        if isinstance(value, Section) and isinstance(usual, Section):
            yield from _changed(value, usual, (*place, key))
        else:
            yield (*place, key)

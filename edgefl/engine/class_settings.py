"""Settings of all devices, and of a class of devices."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, create_model, model_validator
from pydantic.fields import FieldInfo

from edgefl.config.scenario_fields import Named, Section

# Shares such as 0.1, 0.2 and 0.7 do not add up to exactly 1 in floating point.
SHARE_TOLERANCE = 1e-9
# class names appear in CSV tables, so no name may need quoting or look like a number
CLASS_NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"
MOST_DEVICES = 1_000_000


class _DeviceNumber(Section):
    """The number of devices."""

    count: Annotated[int, Field(ge=1, le=MOST_DEVICES)] | Literal["all"] | None = Field(
        None, description="number of devices; all: every device of the trace; or set density_per_km2 instead"
    )
    density_per_km2: float | None = Field(
        None,
        gt=0,
        le=1e6,
        description="mean devices per km^2 of a Poisson point process on the disc in which devices are placed, with"
        " the radius of the cell or layout times the largest area_factor, instead of count; models of mobility that"
        " place devices elsewhere, or gather them in the middle, move as many devices",
    )
    populations: int = Field(
        1,
        ge=1,
        le=1_000_000,
        description="number of populations that take turns: devices are split by id into this many equal "
        "groups, which sessions use in turn",
    )

    @property
    def number(self) -> int | None:
        """The number of devices, or None if a trace or a random draw decides it."""
        return self.count if isinstance(self.count, int) else None


class DeviceFile(Section):
    """A table of devices with one row per phone; columns are named after the keys of `devices` that they set."""

    path: Path = Field(
        description="path of the .csv, .json or .yaml table, relative to the scenario's file; columns are keys for"
        " processor, radio power and battery, such as clock_hz or battery_j (or clock_ghz, battery_wh), and"
        " latency_ms and score"
    )
    columns: dict[str, str] = Field(
        {}, description="{key: column} for columns that are not named after the keys that they set"
    )
    latency_flops: float | None = Field(
        None,
        ge=1,
        le=1e18,
        description="FLOPs of the inference timed in column latency_ms; FLOPs and time determine a device's speed",
    )


class EveryDevice(_DeviceNumber):
    """Properties of devices, which are keys of `devices` and optional keys of each class."""

    mobility: Annotated[Any, Named("mobility", "static")] = Field(
        "static", validate_default=True, description="mobility model: how devices move"
    )
    transmit_power_dbm: float = Field(
        23.0,
        ge=-40,
        le=40,
        description="uplink power: 23 for power class 3, 26 for class 2 (38.101-1, Table 6.2.1-1)",
    )
    array_gain_db: float = Field(
        0.0,
        ge=-10,
        le=30,
        description="gain of a device's antennas towards its site, in both directions: 0 below 7 GHz (38.802,"
        " Annex A), -3 for small devices (38.875), more for panels; it does not apply to interference",
    )
    max_bandwidth_hz: float | None = Field(
        None,
        ge=5e6,
        le=4e9,
        description="widest part of the band that a device's radio uses: 20e6 for RedCap (38.306, 4.2.21.1); null:"
        " all of it",
    )
    power: Annotated[Any, Named("power_models", "journal")] = Field(
        "journal",
        validate_default=True,
        description="radio power model: journal, with the amplifier and circuit keys below, or a measured model",
    )
    circuit_power_w: float = Field(0.1, ge=0, le=100, description="circuit power while receiving")
    file: DeviceFile | None = Field(
        None,
        description="table of phones, with a row for each device (see classes_by); null: all devices are equal",
    )
    clock_hz: float = Field(1.0e9, ge=1e6, le=1e11, description="CPU clock f")
    flops_per_cycle: float = Field(
        8.0, ge=1e-3, le=1e6, description="processor efficiency chi, FLOPs per cycle"
    )
    capacitance: float = Field(1.0e-28, ge=0, le=1e-20, description="effective chipset capacitance xi")
    compute_jitter: float | None = Field(
        None,
        gt=0,
        le=2,
        description="variation of computing times due to other work on the device: standard deviation of the"
        " logarithm of a log-normal factor with mean 1, drawn for each device and round; null: no variation",
    )
    pa_efficiency: float = Field(
        1.0,
        gt=0,
        le=1,
        description="amplifier efficiency: radiated over drawn power; 1: only radiated power counts (J)",
    )
    uplink_circuit_power_w: float = Field(
        0.0, ge=0, le=100, description="circuit power while sending, in addition to the amplifier"
    )
    idle_power_w: float = Field(
        0.0,
        ge=0,
        le=100,
        description="power while switched on and idle, even while out of coverage or not in the trace; a device that"
        " is switched off draws none",
    )
    churn: Annotated[Any, Named("churn", "always_on")] = Field(
        "always_on", validate_default=True, description="when devices are switched on"
    )
    battery_j: float | None = Field(None, ge=1e-9, le=1e12, description="battery capacity; null: mains")
    recharge_w: float = Field(0.0, ge=0, le=1e6, description="power that charges the battery, at all times")
    return_share: float = Field(
        0.2, ge=1e-6, le=1, description="charge, as a share of capacity, at which an empty device returns"
    )
    indoor_share: float = Field(
        0.0, ge=0, le=1, description="probability of being indoors at a place (UMi and UMa only)"
    )
    coated_share: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of buildings with coated glass, drawn for each stay: penetration loss of 26.9 dB at 3.5"
        " GHz instead of 12.7 (38.901, Table 7.4.3-2, high and low loss); the distance inside adds 4.2 dB on average",
    )
    vehicle_above_m_s: float | None = Field(
        None,
        gt=0,
        le=150,
        description="with indoors_by: trip, speed above which a device is in a car instead of a building; "
        "null: no device is in a car",
    )


# keys of a class with a description that differs from that in `devices`
OF_A_CLASS = {
    "array_gain_db": "gain of a device's antennas towards its site",
    "power": "power model: watts that the radio draws in each state",
    "pa_efficiency": "amplifier efficiency, radiated over drawn power",
    "indoor_share": "probability of being indoors at a place",
    "coated_share": "share of buildings with coated glass",
}


def _optional(field: FieldInfo, description: str | None) -> Any:
    """Return a key of `devices` as an optional key of a class."""
    components = [one for one in field.metadata if isinstance(one, Named)]
    limits = [one for one in field.metadata if not isinstance(one, Named)]
    kind: Any = Annotated[field.annotation, *components] if components else field.annotation
    kind = kind | None
    return Annotated[kind, *limits] if limits else kind, Field(None, description=description)


class _ClassSize(Section):
    """The number of devices of a class."""

    share: float | None = Field(None, gt=0, le=1, description="share of all devices; or set count")
    count: int | None = Field(None, ge=1, le=MOST_DEVICES, description="number of devices of this class")


OWN_KEYS = {
    name: _optional(field, OF_A_CLASS.get(name, field.description))
    for name, field in EveryDevice.model_fields.items()
    if name not in _DeviceNumber.model_fields
}
_ClassSettings: Any = create_model("_ClassSettings", __base__=_ClassSize, **OWN_KEYS)


class ClassSettings(_ClassSettings):
    """One class of devices; a missing key takes its value from `devices`, and null means no value in the class."""

    battery_j: Annotated[float, Field(ge=1e-9, le=1e12)] | Literal["mains"] | None = Field(
        None, description="battery capacity; null: mains"
    )
    ut_height_m: float | None = Field(
        None, gt=0, le=22.5, description="device antenna height; if left out, cell.ut_height_m"
    )
    samples: float | None = Field(
        None, gt=0, le=1, description="share of its training samples that each device keeps"
    )

    @model_validator(mode="after")
    def _null_is_none(self) -> Self:
        for name in self.none_of:
            if EveryDevice.model_fields[name].default is not None:
                raise ValueError(f"{name}: must not be null; leave the key out to use the value in devices")
        return self

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.share is not None and self.count is not None:
            raise ValueError("set either share or count")
        return self

    def own(self) -> dict[str, Any]:
        """Return the values that the class itself sets, for keys that `devices` also has."""
        own = {name: value for name in OWN_KEYS if (value := getattr(self, name)) is not None}
        if own.get("battery_j") == "mains":
            own["battery_j"] = None
        return own | dict.fromkeys(self.none_of)

    @property
    def none_of(self) -> list[str]:
        """Keys that the class sets to null, so that the class has no value even if `devices` has one."""
        return [name for name in OWN_KEYS if name in self.model_fields_set and getattr(self, name) is None]


def class_sizes(classes: Mapping[str, ClassSettings], devices: int) -> np.ndarray:
    """Return the number of devices of each class [classes], given the number of all devices.

    The cumulative sums of the shares, times the number of devices, are rounded (half up), and a class's size is the
    difference between two consecutive sums. Every class is therefore within one device of its share, and splitting a
    class in two leaves the sizes of all other classes unchanged.
    """
    counts = [one.count for one in classes.values()]
    if any(count is not None for count in counts):
        rest = devices - sum(count or 0 for count in counts)
        return np.array([rest if count is None else count for count in counts])
    shares = [one.share for one in classes.values()]
    rest_share = max(0.0, 1.0 - math.fsum(share or 0.0 for share in shares))
    upto = np.cumsum([rest_share if share is None else share for share in shares])
    # a running sum of 0.7 + 0.1 + 0.1 is slightly below 0.9, which must not cost the class a device
    ends = np.floor(devices * upto + 0.5 + SHARE_TOLERANCE * devices).astype(np.int64)
    ends[-1] = devices
    return np.diff(ends, prepend=0)


def check_sizes(classes: Mapping[str, ClassSettings], devices: int | None) -> None:
    """Check that the sizes of the classes add up to the number of devices.

    Args:
        devices: number of devices in the scenario, or None if the number is random.

    Raises:
        ValueError: the sizes do not add up; the message names the remedy.
    """
    sizes = {name: (one.share, one.count) for name, one in classes.items()}
    open_ = [name for name, size in sizes.items() if size == (None, None)]
    shares = [share for share, _ in sizes.values() if share is not None]
    counts = [count for _, count in sizes.values() if count is not None]
    if shares and counts:
        raise ValueError("set share for all classes, or count for all")
    if len(open_) > 1:
        raise ValueError(f"{open_[0]} and {open_[1]} lack share and count: only one class may lack both")
    if counts and devices is None:
        raise ValueError(
            "the classes have counts, but devices.count is not a number: set it to one, or set the classes' shares"
        )
    given: float
    if counts:
        assert devices is not None
        given = sum(counts)
        if given > devices or (given == devices) == bool(open_):
            rest = f", which leaves no device for {open_[0]}" if open_ else ""
            way = ("raise", "lower") if given >= devices else ("lower", "raise")
            raise ValueError(
                f"the classes' counts sum to {given}, but devices.count is {devices}{rest}: {way[0]} devices.count,"
                f" or {way[1]} a class's count"
            )
        return
    given = math.fsum(shares)
    if given > 1 + SHARE_TOLERANCE or (given > 1 - SHARE_TOLERANCE) == bool(open_):
        rest = ": make the sum 1, or leave out the share of one class"
        if open_:
            rest = f", which leaves no device for {open_[0]}: lower one of them"
        raise ValueError(f"the classes' shares sum to {given:g}{rest}")
    if devices is not None:
        empty = [name for name, size in zip(classes, class_sizes(classes, devices), strict=True) if not size]
        if empty:
            raise ValueError(
                f"{devices} devices leave none for class {empty[0]}: raise the class's share, or set a count"
            )

"""Settings of the engine: cells, devices, rounds. Defaults are Table I of the journal paper."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from edgefl.channel.units import dbm_to_watt
from edgefl.config import registry
from edgefl.config.scenario_fields import Named, Section
from edgefl.engine.class_settings import CLASS_NAME, MOST_DEVICES, ClassSettings, EveryDevice, check_sizes
from edgefl.engine.power_models import CIRCUITS, Draws, Equipment

LONGEST_S = 1e9  # s, 32 years: of any time that is given


class CellSettings(Section):
    """One circular cell around the base station."""

    radius_m: float = Field(250.0, gt=0, le=5000, description="cell radius, m, at most 5000")
    min_distance_m: float | None = Field(
        None,
        ge=0,
        le=5000,
        description="smallest 2D distance to the base station, m; none: the path loss's (UMi and UMa: 10, InH: 0)",
    )
    bs_height_m: float | None = Field(
        None,
        gt=0,
        le=150,
        description="base station antenna height, m; none: the path loss's (UMi: 10, UMa: 25, InH: 3)",
    )
    ut_height_m: float | None = Field(
        None,
        gt=0,
        le=22.5,
        description="device antenna height, m; none: the path loss's (UMi and UMa: 1.5, InH: 1)",
    )

    @model_validator(mode="after")
    def _ring(self) -> Self:
        if self.min_distance_m is not None and self.min_distance_m >= self.radius_m:
            raise ValueError(
                f"min_distance_m {self.min_distance_m} leaves no room for devices within radius_m "
                f"{self.radius_m}: no device could ever take part"
            )
        return self


class HandoverSettings(Section):
    """Event A3 (TS 38.331, 5.5.4.4) on filtered measurements (5.5.3.2), and leaving a cell during a round.

    In a single cell only `policy` matters: it then holds for a device that crosses the cell edge.
    """

    hysteresis_db: float = Field(3.0, ge=0, le=15, description="Hys, dB, 0 to 15")
    a3_offset_db: float = Field(0.0, ge=-15, le=15, description="a3-Offset, dB, -15 to 15")
    time_to_trigger_s: float = Field(0.256, ge=0, le=5.12, description="how long the event must hold, s")
    handover_latency_s: float = Field(
        0.05, ge=0, le=10, description="interruption: time without any cell after a handover, s"
    )
    measurement_interval_s: float = Field(0.2, ge=0.01, le=10, description="time between measurements, s")
    l3_filter_k: int = Field(
        4,
        ge=0,
        le=19,
        description="coefficient k of the layer-3 filter of measurements, 0 to 19; 0: no filter",
    )
    # s: a return to the last cell within it is a ping-pong, TR 36.839, 5.5.2
    min_time_of_stay_s: ClassVar[float] = 1.0
    policy: Literal["drop", "finish"] = Field(
        "drop",
        description="drop: work under way is lost, its energy spent; finish: the device leaves after its"
        " part of the round, if there is still reason to",
    )


class DeviceSettings(EveryDevice):
    """The devices, their number, movement, powers and processors."""

    classes: dict[Annotated[str, Field(pattern=CLASS_NAME)], ClassSettings] | None = Field(
        None,
        min_length=1,
        description="classes of devices by name, each with its share or count and what differs from `devices`",
    )
    classes_by: Literal["seed", "ids"] = Field(
        "seed",
        description="which device is of which class. seed: drawn per device, and independent of all else; ids:"
        " the first devices of the first class, then those of the second",
    )

    indoors_by: Literal["place", "trip"] = Field(
        "place",
        description="when a device goes in or out: place, in every square of 25 m anew; trip, when it sets out from"
        " where it stayed",
    )

    @model_validator(mode="after")
    def _vehicles_make_trips(self) -> Self:
        of_classes: dict[str, Any] = {f"classes.{name}.": one for name, one in (self.classes or {}).items()}
        for place, one in {"": self, **of_classes}.items():
            if one.vehicle_above_m_s is not None and self.indoors_by != "trip":
                raise ValueError(
                    f"{place}vehicle_above_m_s: devices are in a car for a trip: set indoors_by: trip"
                )
        return self

    @model_validator(mode="after")
    def _one_number(self) -> Self:
        if (self.count is None) == (self.density_per_km2 is None):
            both = self.count is not None
            raise ValueError(f"give either count or density_per_km2{', not both' if both else ''}")
        if self.classes is not None:
            check_sizes(self.classes, self.count)
        return self

    @model_validator(mode="after")
    def _circuits_that_count(self) -> Self:
        given = [
            key for key in sorted(CIRCUITS) if getattr(self, key) != type(self).model_fields[key].default
        ]
        _refuse_ignored("", self.power, given)
        for name, one in (self.classes or {}).items():
            power = one.own().get("power", self.power)
            given = [key for key in sorted(CIRCUITS) if getattr(one, key) is not None]
            _refuse_ignored(f"classes.{name}.", power, given)
        return self

    @model_validator(mode="after")
    def _somebody_in_each_population(self) -> Self:
        if self.count is not None and self.count < self.populations:
            raise ValueError(f"count {self.count} does not make {self.populations} populations")
        return self

    def draws(self) -> Draws:
        """Return what the radio of a device with these settings draws."""
        equipment = Equipment(
            dbm_to_watt(self.transmit_power_dbm),
            self.pa_efficiency,
            self.circuit_power_w,
            self.uplink_circuit_power_w,
        )
        draws: Draws = self.power.draws(equipment)
        return draws

    def kinds(self) -> list["DeviceSettings"]:
        """Return what the devices of each class are like; without classes, of all."""
        if self.classes is None:
            return [self]
        return [self.model_copy(update=one.own()) for one in self.classes.values()]

    def mobilities(self) -> list[tuple[tuple[str, ...], Any]]:
        """Return where the mobility model of each class stands, its own or that of all, and the model."""
        if self.classes is None:
            return [(("devices", "mobility"), self.mobility)]
        own = {name: one.own().get("mobility") for name, one in self.classes.items()}
        return [
            (("devices", "mobility"), self.mobility)
            if mobility is None
            else (("devices", "classes", name, "mobility"), mobility)
            for name, mobility in own.items()
        ]


class RoundSettings(Section):
    """When a round begins, which devices take part, and how movement is sampled."""

    every_s: float | None = Field(
        None,
        ge=1e-3,
        le=LONGEST_S,
        description="a round begins at the next multiple of this, or at once if the one before took longer, or was a"
        " probe; none: one after the other, s",
    )
    pause_s: float = Field(0.0, ge=0, le=LONGEST_S, description="shortest pause after a round, s")
    server_s: float = Field(
        0.0,
        ge=0,
        le=LONGEST_S,
        description="backhaul and aggregation, once the last update is there; part of the round's latency, s",
    )
    server_power_w: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="power of the server during server_s, booked with the base station's energy, W",
    )

    selector: Annotated[Any, Named("selectors", "all")] = Field(
        "all", validate_default=True, description="participant selector"
    )
    server: Annotated[Any, Named("servers", "synchronous")] = Field(
        "synchronous", validate_default=True, description="when devices begin, and when a model is made"
    )
    movement_tick_s: float = Field(
        0.1, ge=1e-3, le=60, description="interval at which cell-edge crossings of moving devices are seen, s"
    )
    deadline_s: float | None = Field(
        None,
        ge=1e-6,
        le=LONGEST_S,
        description="a round ends after this time; devices that are late are cut off, s",
    )
    min_updates: int = Field(
        1,
        ge=1,
        le=MOST_DEVICES,
        description="fewer updates than this are not aggregated: the model stays as it is",
    )
    over_selection: float = Field(
        1.0,
        ge=1,
        le=10,
        description="select this many times the participants; the round ends with the"
        " number wanted, the others are cut off",
    )
    not_finite: Literal["stop", "drop"] = Field(
        "stop",
        description="what becomes of a device's update that is not finite. stop: the run ends, and says so; drop: the"
        " server drops it when it has arrived, its joules are wasted, and the device goes on",
    )
    max_wait_s: float = Field(
        3600.0,
        gt=0,
        le=LONGEST_S,
        description="longest simulated wait for a device while no federation works; an empty cell then stops if"
        " another federation has ended, waits on if the run has a duration_s, or fails the run, s",
    )

    @property
    def overlap(self) -> bool:
        """Whether rounds overlap, so that updates may be stale."""
        return self.server.learning is not None


class WorkloadSettings(Section):
    """A stand-in for learning: the radio and the processors work, nothing is trained."""

    payload_bits: int = Field(ge=1, le=10**15, description="bits of one model transfer")
    flops_per_sample: float = Field(ge=0, le=1e18, description="FLOPs per sample, forward and backward")
    steps: int = Field(5, ge=1, le=1_000_000, description="e: local iterations per round")
    batch: int = Field(128, ge=1, le=10_000_000, description="B: samples per mini-batch")


def _refuse_ignored(where: str, power: Any, given: list[str]) -> None:
    """Refuse keys about circuits that a power model has no use for."""
    name, ignored = registry.name_of("power_models", power), [key for key in given if key in power.ignores]
    if ignored:
        raise ValueError(
            f"power: {name} has its own circuits, and {where}{ignored[0]} would not count: leave it out, or set"
            " power: journal"
        )

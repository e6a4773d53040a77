"""Settings of the engine's cells, devices and rounds. Defaults come from Table I of the journal paper."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from edgefl.channel.units import dbm_to_watt
from edgefl.config import registry
from edgefl.config.answers import wrong
from edgefl.config.scenario_fields import Named, Section
from edgefl.engine.class_settings import CLASS_NAME, MOST_DEVICES, ClassSettings, EveryDevice, check_sizes
from edgefl.engine.power_models import CIRCUITS, Draws, Equipment

LONGEST_S = 1e9  # upper bound of every time key, 32 years


class CellSettings(Section):
    """One circular cell around the base station."""

    radius_m: float = Field(250.0, gt=0, le=5000, description="distance from a cell's centre to its edge")
    min_distance_m: float | None = Field(
        None,
        ge=0,
        le=5000,
        description="smallest 2D distance to the base station; null: path_loss sets it (UMi and UMa: 10, InH: 0)",
    )
    bs_height_m: float | None = Field(
        None,
        gt=0,
        le=150,
        description="base station antenna height; null: path_loss sets it (UMi: 10, UMa: 25, InH: 3)",
    )
    ut_height_m: float | None = Field(
        None,
        gt=0,
        le=22.5,
        description="device antenna height; null: path_loss sets it (UMi and UMa: 1.5, InH: 1)",
    )

    @model_validator(mode="after")
    def _ring(self) -> Self:
        if self.min_distance_m is not None and self.min_distance_m >= self.radius_m:
            raise ValueError(
                f"min_distance_m {self.min_distance_m} leaves no room for devices within radius_m "
                f"{self.radius_m}: no device could take part"
            )
        return self


class HandoverSettings(Section):
    """Handover by event A3 (TS 38.331, 5.5.4.4) on filtered measurements (5.5.3.2), and departure during a round.

    In a single cell there are no handovers, and three keys matter: `policy` for devices that cross the cell edge,
    `measurement_interval_s` for the gains of transfers (radio.monitoring.gain_reading: interval), and
    `handover_latency_s` for devices whose link has failed (radio.monitoring.t310_s).
    """

    hysteresis_db: float = Field(
        3.0,
        ge=0,
        le=15,
        description="hysteresis Hys: event A3 is entered this far above the offset, and left this far below it",
    )
    a3_offset_db: float = Field(
        0.0,
        ge=-15,
        le=15,
        description="a3-Offset: how much stronger than the serving cell a neighbour must be",
    )
    time_to_trigger_s: float = Field(0.256, ge=0, le=5.12, description="time for which event A3 must hold")
    handover_latency_s: float = Field(
        0.05,
        ge=0,
        le=10,
        description="handover interruption: time without a serving cell, also after a failed"
        " link that is not re-established",
    )
    measurement_interval_s: float = Field(
        0.2,
        ge=0.01,
        le=10,
        description="time between measurements of the cells, and of the gains of transfers",
    )
    l3_filter_k: int = Field(
        4, ge=0, le=19, description="coefficient k of the layer-3 measurement filter; 0: no filtering"
    )
    # s; a device that returns to its previous cell within this time makes a ping-pong handover (TR 36.839, 5.5.2)
    min_time_of_stay_s: ClassVar[float] = 1.0
    policy: Literal["drop", "finish"] = Field(
        "drop",
        description="drop: work under way is lost, but its energy is spent; finish: the device completes its "
        "part of the round, then leaves if its departure is still due",
    )


class DeviceSettings(EveryDevice):
    """Number, movement, powers and processors of the devices."""

    classes: dict[Annotated[str, Field(pattern=CLASS_NAME)], ClassSettings] | None = Field(
        None,
        min_length=1,
        description="device classes by name, each with a share or count and the keys that differ from `devices`",
    )
    classes_by: Literal["seed", "ids", "types"] = Field(
        "seed",
        description="how classes, and rows of `file`, are assigned to devices. seed: drawn for each device,"
        " independently of everything else; ids: the first devices belong to the first class, the next devices to the"
        " second, and the rows of a file follow the ids; types: a device has the class named after its type in the"
        " trace, or after its kind (vehicle or person), and the rows of a file are drawn",
    )

    indoors_by: Literal["place", "trip"] = Field(
        "place",
        description=(
            "when a device may go indoors or outdoors. place: in each new square of 25 m; trip: when it "
            "sets out on a trip"
        ),
    )

    @model_validator(mode="after")
    def _vehicles_make_trips(self) -> Self:
        of_classes: dict[str, Any] = {f"classes.{name}.": one for name, one in (self.classes or {}).items()}
        for place, one in {"": self, **of_classes}.items():
            if one.vehicle_above_m_s is not None and self.indoors_by != "trip":
                raise ValueError(
                    f"{place}vehicle_above_m_s needs indoors_by: trip, since a device is in a car for a whole trip"
                )
        return self

    @model_validator(mode="before")
    @classmethod
    def _sum_of_classes(cls, given: Any) -> Any:
        """Set `count` to the sum of the classes' counts if all classes have one and `devices` has none."""
        if isinstance(given, dict) and given.get("count") is None and given.get("density_per_km2") is None:
            classes = given["classes"].values() if isinstance(given.get("classes"), dict) else ()
            counts = [one.get("count") if isinstance(one, dict) else None for one in classes]
            if counts and all(type(count) is int for count in counts):
                return {**given, "count": sum(counts)}
        return given

    @model_validator(mode="after")
    def _one_number(self) -> Self:
        if self.count is None and self.density_per_km2 is None:
            raise ValueError("set either count or density_per_km2")
        if self.count is not None and self.density_per_km2 is not None:
            raise ValueError("set either count or density_per_km2, not both: set one of them to null")
        if self.count == "all" or self.classes_by == "types":
            self._check_recorded()
        if self.classes is not None and self.classes_by != "types":
            check_sizes(self.classes, self.number)
        return self

    def _check_recorded(self) -> None:
        """Raise an error if a trace defines the devices, but some devices do not move as recorded in the trace."""
        key = "count: all" if self.count == "all" else "classes_by: types"
        if not self.mobility.recorded:
            raise ValueError(f"{key} takes devices from a trace: set mobility: {{name: trace, path: FILE}}")
        for name, one in (self.classes or {}).items():
            if one.own().get("mobility") is not None:
                raise ValueError(f"{key} takes devices from one trace: leave classes.{name}.mobility out")
            if self.classes_by == "types" and (one.share is not None or one.count is not None):
                raise ValueError(
                    f"{key} takes sizes from the trace: leave share and count of classes.{name} out"
                )
        if self.classes_by == "types" and not self.classes:
            raise ValueError(f"{key} needs classes: name one after each type of device in the trace")

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
        if self.number is not None and self.number < self.populations:
            raise ValueError(f"count {self.number} is too small for {self.populations} populations")
        return self

    def draws(self) -> Draws:
        """Return the power draws of a device's radio, from the device's settings."""
        equipment = Equipment(
            dbm_to_watt(self.transmit_power_dbm),
            self.pa_efficiency,
            self.circuit_power_w,
            self.uplink_circuit_power_w,
        )
        draws: Draws = self.power.draws(equipment)
        if not (isinstance(draws, Draws) and draws.is_physical):
            wanted = "Draws with finite numbers of at least 0; tail is a tuple of (seconds, watts)"
            raise wrong(self.power.draws, draws, wanted, "devices", "power")
        return draws

    def kinds(self) -> list["DeviceSettings"]:
        """Return the settings of each class's devices, or without classes the settings of all devices."""
        if self.classes is None:
            return [self]
        return [self.model_copy(update=one.own()) for one in self.classes.values()]

    def mobilities(self) -> list[tuple[tuple[str, ...], Any]]:
        """Return each class's mobility model, by default that of `devices`, and its path of keys in the scenario."""
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
    """Start, end and participants of rounds."""

    every_s: float | None = Field(
        None,
        ge=1e-3,
        le=LONGEST_S,
        description="a round begins at the next multiple of this time, or at once if the previous round took "
        "longer or was a probe; null: a round begins when the previous one ends",
    )
    pause_s: float = Field(0.0, ge=0, le=LONGEST_S, description="minimum pause after a round")
    server_s: float = Field(
        0.0,
        ge=0,
        le=LONGEST_S,
        description="time for backhaul and aggregation after the last update arrives; part of the round's latency",
    )
    server_power_w: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="power of the server during server_s, counted as part of the base station's energy",
    )

    selector: Annotated[Any, Named("selectors", "all")] = Field(
        "all", validate_default=True, description="participant selector: which devices take part in a round"
    )
    server: Annotated[Any, Named("servers", "synchronous")] = Field(
        "synchronous",
        validate_default=True,
        description="server: when devices are dispatched, and when a new model is made",
    )
    deadline_s: float | None = Field(
        None, ge=1e-6, le=LONGEST_S, description="a round ends after this time; late devices are cut off"
    )
    min_updates: int = Field(
        1,
        ge=1,
        le=MOST_DEVICES,
        description="minimum number of updates: if fewer arrive, no update is aggregated, and the model is kept",
    )
    over_selection: float = Field(
        1.0,
        ge=1,
        le=10,
        description="factor by which more devices are selected than wanted; the round ends when the wanted number of"
        " updates has arrived, and the other devices are cut off",
    )
    not_finite: Literal["stop", "drop"] = Field(
        "stop",
        description="what happens to an update that is not finite. stop: the run ends with an error; drop: the server"
        " drops it on arrival, so that its energy is wasted, and the device continues",
    )
    max_wait_s: float = Field(
        3600.0,
        gt=0,
        le=LONGEST_S,
        description="longest simulated time for which a cell waits for a device while no federation is active."
        " After this time, an empty cell stops if another federation has finished, keeps waiting if the run has a"
        " duration_s, and otherwise makes the run fail",
    )

    @model_validator(mode="after")
    def _unbiased_of_all(self) -> Self:
        if getattr(self.server, "unbiased", False) and self.over_selection > 1:
            raise ValueError(
                "over_selection cuts off devices, whose updates server.unbiased would count as unchanged models: set"
                " over_selection to 1, and a larger selector.count, or unbiased: false"
            )
        return self

    @property
    def overlap(self) -> bool:
        """Whether rounds overlap, so that updates may be stale."""
        return self.server.learning is not None


class WorkloadSettings(Section):
    """Workload without learning: the radio and the processors are simulated, but no model is trained."""

    payload_bits: int = Field(ge=1, le=10**15, description="bits of one model transfer")
    flops_per_sample: float = Field(ge=0, le=1e18, description="FLOPs per sample, forward and backward")
    steps: int = Field(5, ge=1, le=1_000_000, description="e: local iterations per round")
    batch: int = Field(128, ge=1, le=10_000_000, description="B: samples per mini-batch")


def _refuse_ignored(where: str, power: Any, given: list[str]) -> None:
    """Raise an error if the given keys include circuit keys that the power model ignores."""
    name, ignored = registry.name_of("power_models", power), [key for key in given if key in power.ignores]
    if ignored:
        raise ValueError(
            f"power: {name} has its own circuits and ignores {where}{ignored[0]}: leave this key out, or "
            "set power: journal"
        )

"""The scenario: frozen, validated, complete; units stand in the key names.

`load` reads YAML, `dump` writes it back with every default filled in, so that a run directory's
`scenario.yaml` gives the same run again. Defaults are Table I of the journal paper.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from edgefl import registry
from edgefl.component import Component
from edgefl.errors import EdgeflError
from edgefl.yaml_source import Source, parse_value


@dataclass(frozen=True)
class Named:
    """Marks a field that holds a component: `fedprox` or `{name: fedprox, mu: 1.0}` in YAML.

    Parameters without a name are those of the default component, if the field has one.
    """

    kind: str
    default: str | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self._parse, serialization=core_schema.plain_serializer_function_ser_schema(self._write)
        )

    def _parse(self, value: object) -> Component:
        if isinstance(value, Component):
            return value
        if isinstance(value, str):
            value = {"name": value}
        elif isinstance(value, dict) and self.default:
            value = {"name": self.default, **value}
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            raise ValueError(
                f"write a name or {{name: ..., parameters}}; `edgefl list {self.kind}` lists the names"
            )
        component = registry.get(self.kind, value["name"])
        try:
            return component.model_validate({k: v for k, v in value.items() if k != "name"})
        except ValidationError as error:
            # keep the places of the inner errors: they are unfolded when the message is written
            raise PydanticCustomError(
                "component", "invalid parameters", {"errors": error.errors(), "model": component}
            ) from error

    def _write(self, component: Component) -> dict[str, Any]:
        return {"name": registry.name_of(self.kind, component), **component.model_dump(mode="json")}


@dataclass(frozen=True)
class FunctionName:
    """Marks a field that names a function of `channel`."""

    kind: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, core_schema.str_schema())

    def _check(self, value: str) -> str:
        registry.function(self.kind, value)
        return value


class Section(BaseModel):
    """A part of the scenario: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Cell(Section):
    """One circular cell around the base station."""

    radius_m: float = Field(250.0, gt=10, le=5000, description="cell radius, m, 10 to 5000")
    min_distance_m: float = Field(
        10.0, ge=10, description="smallest 2D distance to the base station, m, at least 10 (TR 38.901)"
    )
    bs_height_m: float = Field(10.0, gt=1, le=150, description="base station antenna height, m")
    ut_height_m: float = Field(1.5, gt=1, le=22.5, description="device antenna height, m")

    @model_validator(mode="after")
    def _ring(self) -> Self:
        if self.min_distance_m >= self.radius_m:
            raise ValueError(
                f"min_distance_m {self.min_distance_m} leaves no room for devices within radius_m "
                f"{self.radius_m}: no device could ever take part"
            )
        return self


class Devices(Section):
    """The devices, their number, movement, powers and processors."""

    count: int | None = Field(None, ge=1, description="number of devices; or give density_per_km2")
    density_per_km2: float | None = Field(
        None, gt=0, description="mean devices per km^2 of a Poisson point process, in place of count"
    )
    mobility: Annotated[Any, Named("mobility", "static")] = Field(
        "static", validate_default=True, description="mobility model"
    )
    transmit_power_dbm: float = Field(23.0, ge=-40, le=40, description="uplink power, dBm, -40 to 40")
    circuit_power_w: float = Field(0.1, ge=0, le=100, description="circuit power while receiving, W")
    clock_hz: float = Field(1.0e9, ge=1e6, le=1e11, description="CPU clock f, Hz, 1e6 to 1e11")
    flops_per_cycle: float = Field(8.0, gt=0, description="processor efficiency chi, FLOPs per cycle")
    capacitance: float = Field(1.0e-28, ge=0, le=1e-20, description="effective chipset capacitance xi")

    @model_validator(mode="after")
    def _one_number(self) -> Self:
        if (self.count is None) == (self.density_per_km2 is None):
            raise ValueError("give either count or density_per_km2")
        return self


class RadioSettings(Section):
    """Carrier, band, powers, fading and the time grid."""

    carrier_hz: float = Field(3.5e9, ge=0.5e9, le=100e9, description="carrier, Hz, 0.5e9 to 100e9")
    bandwidth_hz: float = Field(100.0e6, ge=1e5, le=4e9, description="system bandwidth W, Hz, 1e5 to 4e9")
    noise_dbm_hz: float = Field(-174.0, ge=-200, le=-100, description="noise density N0, dBm/Hz")
    server_power_dbm: float = Field(43.0, ge=-40, le=70, description="downlink power, dBm, -40 to 70")
    path_loss: Annotated[str, FunctionName("path_loss")] = Field("umi", description="path-loss model")
    shadowing_std_db: float = Field(4.0, ge=0, le=20, description="shadowing, dB, held for one round")
    slot_s: float = Field(0.5e-3, ge=1e-5, le=1e-2, description="slot tau, s, 1e-5 to 1e-2")
    scheduler: Annotated[str, FunctionName("schedulers")] = Field(
        "equal_share", description="who gets which share of the band"
    )
    fidelity: Literal["slot", "renewal", "auto"] = Field(
        "auto", description="how a transfer's length is found: slot, renewal or auto"
    )


class Rounds(Section):
    """Who takes part in a round, and how movement is sampled."""

    selector: Annotated[Any, Named("selectors", "all")] = Field(
        "all", validate_default=True, description="participant selector"
    )
    movement_tick_s: float = Field(
        0.1, gt=0, le=60, description="interval at which cell-edge crossings of moving devices are seen, s"
    )
    max_wait_s: float = Field(
        3600.0, gt=0, description="longest simulated wait for a device before the run is given up, s"
    )


class Learning(Section):
    """What is trained, on which data, and how."""

    dataset: Annotated[Any, Named("datasets")] = Field(description="data set")
    partition: Annotated[Any, Named("partitions", "dirichlet")] = Field(
        "dirichlet", validate_default=True, description="label distribution"
    )
    model: Annotated[Any, Named("models")] = Field(description="model")
    algorithm: Annotated[Any, Named("algorithms", "fedavg")] = Field(
        "fedavg", validate_default=True, description="algorithm"
    )
    warm_start: Annotated[Any, Named("warm_starts", "previous")] = Field(
        "previous", validate_default=True, description="how a session's opening model is made"
    )
    pilot_sessions: int = Field(
        1, ge=1, description="P: sessions 1 to P are plain; the models saved for warm starts come after them"
    )
    steps: int = Field(5, ge=1, description="e: local iterations per round")
    batch: int = Field(128, ge=1, description="B: samples per mini-batch")
    lr: float = Field(0.01, gt=0, le=100, description="learning rate at the first round of a session")
    lr_power: float = Field(
        1.0,
        ge=0,
        description="polynomial decay within a session: lr (1 - (t-1)/T)^power; 0 keeps lr constant",
    )
    momentum: float = Field(0.9, ge=0, lt=1, description="SGD momentum, restarted each round")
    bits_per_parameter: int = Field(32, ge=1, le=64, description="payload_bits = this x parameters")
    flops_per_sample: float | Literal["counted"] = Field(
        "counted", description="N_p phi, FLOPs per sample forward and backward: a number, or counted"
    )


class Workload(Section):
    """A stand-in for learning: the radio and the processors work, nothing is trained."""

    payload_bits: int = Field(ge=1, description="bits of one model transfer")
    flops_per_sample: float = Field(ge=0, description="FLOPs per sample, forward and backward")
    steps: int = Field(5, ge=1, description="e: local iterations per round")
    batch: int = Field(128, ge=1, description="B: samples per mini-batch")


class Scenario(Section):
    """One run, completely described (with its seed)."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="letters, digits, . _ -")
    seed: int = Field(100, ge=0, le=2**32 - 1, description="the run is a function of scenario and seed")
    cell: Cell = Cell()
    devices: Devices
    radio: RadioSettings = RadioSettings()
    sessions: Annotated[Any, Named("sessions")] = Field(description="when a session ends")
    rounds: Rounds = Rounds()
    learning: Learning | None = None
    workload: Workload | None = None
    _source: Source | None = PrivateAttr(None)

    @contextmanager
    def naming_places(self) -> Iterator[None]:
        """Errors raised inside name the file and line of the key they are about."""
        try:
            yield
        except EdgeflError as error:
            if not error.place:
                raise
            located = f"{'.'.join(error.place)}: {error}"
            if self._source:
                located = str(self._source.error(error.place, str(error)))
            raise EdgeflError(located) from error

    @model_validator(mode="after")
    def _one_task(self) -> Self:
        if (self.learning is None) == (self.workload is None):
            raise ValueError("give either learning (train models) or workload (radio and compute only)")
        return self

    @model_validator(mode="after")
    def _someone_takes_part(self) -> Self:
        wanted = getattr(self.rounds.selector, "count", None)
        if wanted and self.devices.count and wanted > self.devices.count:
            raise ValueError(
                f"rounds.selector.count {wanted} exceeds devices.count {self.devices.count}: "
                "a round could never have its participants"
            )
        return self


def load(path: str | Path, overrides: Sequence[str] = (), seed: int | None = None) -> Scenario:
    """The scenario of a YAML file.

    Args:
        path: the file.
        overrides: `dotted.key=value` strings, applied in order.
        seed: replaces the file's seed.

    Raises:
        EdgeflError: names file, line, key and remedy for everything that is wrong.
    """
    source = Source(Path(path))
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals:
            raise EdgeflError(f"--set {text}: write dotted.key=value, e.g. --set learning.lr=0.05")
        source.override(key.strip(), parse_value(value, f"--set {text}"), f"--set {text}")
    if seed is not None:
        source.override("seed", seed, f"--seed {seed}")
    return from_source(source)


def from_source(source: Source) -> Scenario:
    """The scenario of a document that has been read, perhaps with overrides."""
    scenario = source.validate(Scenario)
    scenario._source = source  # not a key: it only names places in later errors
    return scenario


def dump(scenario: Scenario) -> str:
    """YAML of the complete scenario, defaults filled in."""
    return yaml.safe_dump(scenario.model_dump(mode="json", exclude_none=True), sort_keys=False)

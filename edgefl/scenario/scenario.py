"""The scenario: frozen, validated, complete; units stand in the key names.

`load` reads YAML, `dump` writes it back with every default filled in, so that a run directory's
`scenario.yaml` gives the same run again. Defaults are Table I of the journal paper.
"""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    Field,
    PrivateAttr,
    model_validator,
)

from channel.path_loss import PathLoss
from edgefl.config import outside, scenario_files, shipped
from edgefl.config.registry import did_you_mean
from edgefl.config.scenario_fields import Named, Section
from edgefl.config.schema import complete
from edgefl.config.yaml_source import Source, parse_value, write
from edgefl.engine.air.extent import Extent
from edgefl.engine.air.layout import LayoutSettings
from edgefl.engine.air.presets import with_preset_defaults, with_presets
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.class_settings import CLASS_NAME
from edgefl.engine.federation.cloud import CloudSettings
from edgefl.engine.settings import (
    LONGEST_S,
    CellSettings,
    DeviceSettings,
    HandoverSettings,
    RoundSettings,
    WorkloadSettings,
)
from edgefl.errors import EdgeflError, clipped, quoted
from edgefl.learning.settings import LearningSettings
from edgefl.mobility._together import Widest
from edgefl.places.areas import Area
from edgefl.places.streets import Streets
from edgefl.run_directory.results import Described
from edgefl.run_directory.settings import RecordSettings
from edgefl.scenario import clouded, coded, deciding, overlap, private, shared_cells
from edgefl.scenario.day import Day, named_days
from edgefl.scenario.federation_settings import FederationSettings, merged, naming, place_in, size_of
from edgefl.scenario.numbers import Numbers

LARGEST_SEED = 2**32 - 1
Longitude = Annotated[float, Field(ge=-180, le=180)]
Latitude = Annotated[float, Field(ge=-84, le=84)]
FederationName = Annotated[str, Field(pattern=CLASS_NAME)]
AreaName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]


class Scenario(Section):
    """One run, completely described (with its seed).

    Made by `edgefl.load_scenario` from a file or a dict; its sections are attributes (`scenario.radio.bandwidth_hz`),
    frozen; `scenario.with_(seed=7, learning__lr=0.01)` is another one. A key's unit is the end of its name: `_m`,
    `_s`, `_hz`, `_dbm`, `_bits`. `edgefl describe radio` explains a section's keys, with range and default.

    Raises:
        EdgeflError: from `load_scenario` and `with_`: names place and remedy for everything that is wrong.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="letters, digits, . _ -")
    seed: int = Field(100, ge=0, le=LARGEST_SEED, description="the run is a function of scenario and seed")
    duration_s: float | None = Field(
        None,
        ge=1e-3,
        le=LONGEST_S,
        description="the run ends at this simulated time, if its sessions have not ended before: no round begins"
        " then or later, one under way ends; none: after the last session, s",
    )
    cell: CellSettings = CellSettings()
    layout: LayoutSettings = LayoutSettings()
    origin_lon_lat: tuple[Longitude, Latitude] | None = Field(
        None, description="[longitude, latitude] of [0, 0] m, degrees: for areas and traces in degrees"
    )
    areas: dict[AreaName, Area] = Field(
        {}, description="areas by name: {disc | rectangle | polygon | geojson | sumo_net: ...}"
    )
    streets: Streets | None = Field(
        None, description="along which people of mobility itinerary go: {lines_m | geojson | sumo_net: ...}"
    )
    handover: HandoverSettings = HandoverSettings()
    devices: DeviceSettings
    radio: RadioSettings = RadioSettings()
    sessions: Annotated[Any, Named("sessions")] = Field(description="when a session ends")
    rounds: RoundSettings = RoundSettings()
    federations: dict[FederationName, FederationSettings] | None = Field(
        None,
        min_length=2,
        description="several federations whose devices share cells and band, by name: {share | classes, weight, and"
        " what differs}; none: one",
    )
    cloud: CloudSettings | None = None
    learning: LearningSettings | None = None
    workload: WorkloadSettings | None = None
    record: RecordSettings = RecordSettings()
    _source: Source | None = PrivateAttr(None)

    @classmethod
    def model_json_schema(cls, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Return the JSON Schema of a scenario file, with all components written out."""
        made = with_preset_defaults(complete(super().model_json_schema(*arguments, **options)))
        made["description"] = made["description"].partition("\n\n")[0]
        return made

    def with_(self, changes: Mapping[str, Any] | None = None, **keys: Any) -> "Scenario":
        """Return this scenario with other values, checked like a file.

        Args:
            changes: dotted key -> value: `scenario.with_({"learning.lr": 0.1})`.
            keys: likewise, with two underscores for each dot: `scenario.with_(seed=7, radio__bandwidth_hz=5e7)`.

        Raises:
            EdgeflError: names key and remedy for everything that is wrong.
        """
        source = copy.deepcopy(self._source) or Source.of(self.model_dump(exclude_none=True))
        for key, value in {**(changes or {}), **{k.replace("__", "."): v for k, v in keys.items()}}.items():
            source.override(key, value, "with_")
        return from_source(source)

    @property
    def described(self) -> Described:
        """What a run directory keeps of this scenario."""
        return Described(self.name, self.seed, self.record, dump(self), bool(self.federations))

    @contextmanager
    def naming_places(self) -> Iterator[None]:
        """Make errors raised inside name the file and line of the key they are about."""
        try:
            yield
        except EdgeflError as error:
            if not error.place:
                raise
            located = f"{'.'.join(error.place)}: {error}"
            if self._source:
                located = str(self._source.error(error.place, str(error)))
            raise EdgeflError(located) from error

    @model_validator(mode="before")
    @classmethod
    def _preset_fills(cls, data: Any) -> Any:
        return merged(with_presets(data)) if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _one_task(self) -> Self:
        both = self.learning is not None and self.workload is not None
        if both or (self.learning is None and self.workload is None and not self.federations):
            raise EdgeflError(
                "give either learning (train models) or workload (radio and compute only)",
                ("workload" if self.workload else "learning",),
            )
        return self

    @model_validator(mode="after")
    def _an_end(self) -> Self:
        if self.sessions.count is None and self.duration_s is None:
            raise EdgeflError(
                "the run has no end: give sessions.count, or duration_s at the top level, or both",
                ("sessions",),
            )
        return self

    @model_validator(mode="after")
    def _samples_to_stop_by(self) -> Self:
        none_kept = self.learning is None or self.learning.validation is None
        if self.sessions.asks_validation and none_kept and not self.federations:  # else of each of them
            raise EdgeflError(
                "this policy goes by the score on validation samples: give learning.validation, such as 0.1",
                ("sessions",),
            )
        return self

    @model_validator(mode="after")
    def _one_clock(self) -> Self:
        days = {where: day for where, day in named_days(self.sessions, self.devices).items() if day}
        if len(set(days.values())) > 1:
            told = ", ".join(f"{where} has {day}" for where, day in days.items())
            raise EdgeflError(
                f"two clocks in one run: {told}; give all the same begin_hour and day_s",
                tuple(list(days)[-1].split(".")),
            )
        return self

    @property
    def day(self) -> Day | None:
        """The day by which sessions begin, or devices move; None: there is none."""
        return next(filter(None, named_days(self.sessions, self.devices).values()), None)

    @property
    def latest_end_s(self) -> float:
        """When the run ends by the clock: at its duration, or with the last of its sessions that end by time."""
        policy, end_s = self.sessions, 0.0
        for _ in range(policy.count or 0):
            end_s = policy.until_s(end_s)
            if end_s >= (self.duration_s or math.inf):
                break
        return min(self.duration_s or math.inf, end_s if policy.count else math.inf)

    @model_validator(mode="after")
    def _places_for_handover(self) -> Self:
        if self.layout.several and self.radio.shadowing != "spatial":
            raise EdgeflError(
                "handover measures path loss and shadowing of a place: several cells (layout.rings, sites or"
                " sectors) need radio.shadowing: spatial",
                ("radio", "shadowing"),
            )
        return self

    @property
    def extent(self) -> Extent:
        """How far this scenario's world reaches, and how high its antennas stand."""
        models = [kind.mobility for kind in self.devices.kinds()]
        return Extent(self.cell, self.layout, self.radio, models[0] if len(models) == 1 else Widest(models))

    @model_validator(mode="after")
    def _areas_are_there(self) -> Self:
        for where, mobility in self.devices.mobilities():
            for place, name in mobility.area_names():
                if name not in self.areas:
                    known = did_you_mean(name, list(self.areas)) if self.areas else ": define it below areas:"
                    raise EdgeflError(f"no area {quoted(name)}{known}", (*where, *place))
        return self

    @model_validator(mode="after")
    def _path_loss_holds(self) -> Self:
        self.extent.check()
        for name, one in (self.devices.classes or {}).items():
            if one.ut_height_m is not None:
                try:
                    self.extent.at_height(one.ut_height_m).check()
                except EdgeflError as error:
                    raise EdgeflError(str(error), ("devices", "classes", name, "ut_height_m")) from error
        return self

    @model_validator(mode="after")
    def _walls_are_known(self) -> Self:
        path_loss: PathLoss = self.radio.path_loss
        if path_loss.indoor_depth_m is None:
            names = ["", *(self.devices.classes or {})]
            for name, kind in zip(names, [self.devices, *self.devices.kinds()], strict=False):
                if kind.indoor_share:
                    raise EdgeflError(
                        f"38.901 has no way through the walls of buildings in {type(path_loss).__name__}: set"
                        " indoor_share to 0, or radio.path_loss to umi or uma",
                        ("devices", *(("classes", name) if name else ()), "indoor_share"),
                    )
        return self

    @model_validator(mode="after")
    def _samples_to_keep(self) -> Self:
        trained = [
            self.federations[of].classes if of and self.federations else None
            for of, one in self.by_federation.items()
            if one.learning is not None
        ]
        for name, one in (self.devices.classes or {}).items():
            if one.samples is not None and not any(own is None or name in own for own in trained):
                raise EdgeflError(
                    "is a share of training samples, and this run trains nothing on its devices: leave it out",
                    ("devices", "classes", name, "samples"),
                )
        return self

    @model_validator(mode="after")
    def _neighbours_to_interfere(self) -> Self:
        if self.radio.neighbour_load and self.layout.cells == 1:
            raise EdgeflError(
                "radio.neighbour_load needs neighbours: set layout.rings to 1 or 2, or give sites",
                ("radio", "neighbour_load"),
            )
        return self

    @model_validator(mode="after")
    def _rounds_may_overlap(self) -> Self:
        if not self.federations:  # else of each of them
            self._check_rounds(self.devices.count)
        return self

    def _check_rounds(self, devices: int | None) -> None:
        overlap.check(self.rounds, self.radio, self.learning, devices)
        deciding.check(self.rounds, self.radio)
        private.check(self.rounds, self.learning)

    @model_validator(mode="after")
    def _cells_may_share(self) -> Self:
        if self.cloud is not None:
            clouded.check(self.rounds, self.learning)
        return self

    @model_validator(mode="after")
    def _models_may_be_coded(self) -> Self:
        coded.check(self.radio, self.learning)
        return self

    def of_federation(self, name: str) -> "Scenario":
        """Return the scenario as one of several federations has it; that of the only one, without a name."""
        if not name:
            return self
        assert self.federations is not None
        return self.model_copy(update={"federations": None, **self.federations[name].sections})

    @property
    def by_federation(self) -> dict[str, "Scenario"]:
        """The scenario as each of several federations has it, by name; as the only one has it, without a name."""
        return {name: self.of_federation(name) for name in self.federations or ("",)}

    @property
    def trains(self) -> bool:
        """Whether models are trained, in any federation."""
        return any(one.learning is not None for one in self.by_federation.values())

    @model_validator(mode="after")
    def _federations_fit(self) -> Self:
        if self.federations:
            sections = (self.devices, self.radio, self.rounds, self.cloud)
            shared_cells.check(self.federations, *sections, self.record.energy_excess)
            for name, one in self.by_federation.items():
                with self.naming_federation(name):
                    if one.learning is None and one.workload is None:
                        raise EdgeflError(
                            f"{name} has nothing to do, and there is nothing for all: give it learning or workload",
                            ("federations", name),
                        )
                    for check in (
                        "_one_task",
                        "_an_end",
                        "_samples_to_stop_by",
                        "_one_clock",
                        "_models_may_be_coded",
                    ):
                        getattr(one, check)()  # as of a scenario with one federation
                    count = self.devices.count
                    devices = None if count is None else self.size_of(name, count)
                    one._check_rounds(devices)
                    if devices is not None:
                        one.numbers.check_part(devices, name)
        return self

    def naming_federation(self, name: str) -> AbstractContextManager[None]:
        """Make errors raised inside about a section which a federation has of its own name that one."""
        return naming(self.federations or {}, name)

    def place_in(self, name: str, section: str, *keys: str) -> tuple[str, ...]:
        """Return the keys of a federation's section: below its own, if it has one, else the scenario's."""
        return place_in(self.federations or {}, name, section, *keys)

    def size_of(self, name: str, devices: int) -> int:
        """Return how many of all devices belong to a federation."""
        return size_of(self.federations or {}, name, self.devices.classes or {}, devices)

    @property
    def report_bits(self) -> int:
        """What each participant sends beside its update."""
        return deciding.bits_of_reports(self.rounds, self.sessions)

    @property
    def numbers(self) -> Numbers:
        """The sections whose numbers have to fit one another."""
        return Numbers(self.devices, self.rounds, self.sessions, self.learning)

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        if self.devices.count is not None:
            self.numbers.check(self.devices.count)
        return self


def load(
    scenario: str | Path | Mapping[str, Any], overrides: Sequence[str] = (), seed: int | None = None
) -> Scenario:
    """Load a scenario from a YAML file, or from a dict of the same keys.

    Args:
        scenario: the file, or the dict; in a dict a component may also be an object.
        overrides: `dotted.key=value` strings, applied in order.
        seed: replaces the scenario's seed.

    Returns:
        The scenario: frozen, checked, with all defaults; a key's unit is the end of its name.

    Raises:
        EdgeflError: names file, line, key and remedy for everything that is wrong.
    """
    if not isinstance(scenario, str | Path | Mapping):
        raise EdgeflError(
            f"a scenario is a file's path, a dict of the same keys, or a Scenario; got {clipped(repr(scenario))}"
        )
    if isinstance(scenario, Mapping):
        source = Source.of(scenario)
    else:
        source = Source(shipped.find(Path(scenario), "scenario"))
        if "variants" in source.data and "scenario" in source.data:
            raise EdgeflError(f"{source.path}: is a study; `edgefl study {source.path}` runs it")
    for text in overrides:
        key, equals, value = text.partition("=")
        origin = f"--set {clipped(text)}"
        if not equals:
            raise EdgeflError(f"{origin}: write dotted.key=value, e.g. --set learning.lr=0.05")
        source.override(key.strip(), parse_value(value, origin), origin)
    if seed is not None:
        source.override("seed", seed, f"--seed {seed}")
    return from_source(source)


def given(scenario: Scenario | str | Path | Mapping[str, Any]) -> Scenario:
    """Return the scenario, or load that of a file or a dict.

    Raises:
        EdgeflError: it is neither, or not valid.
    """
    return scenario if isinstance(scenario, Scenario) else load(scenario)


def from_source(source: Source) -> Scenario:
    """Validate the scenario of a document that has been read, perhaps with overrides."""
    with outside.looking_in(source.folder), scenario_files.beside(source.folder or Path.cwd()):
        scenario = source.validate(Scenario)
    scenario._source = source  # not a key: it only names places in later errors
    return scenario


def dump(scenario: Scenario) -> str:
    """Write the complete scenario as YAML, defaults filled in."""
    return write(written(scenario))


def written(scenario: Scenario) -> dict[str, Any]:
    """Return the complete scenario as plain values, defaults filled in."""
    values: dict[str, Any] = scenario.model_dump(mode="json", exclude_none=True)
    for own in values.get("federations", {}).values():
        if (
            "rounds" in own
        ):  # a key that the scenario has, and this one none of, would be the scenario's again
            own["rounds"] |= {key: None for key in values["rounds"] if key not in own["rounds"]}
    return values

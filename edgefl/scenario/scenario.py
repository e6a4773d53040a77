"""The scenario of a run, which is frozen, validated and complete, with units in the keys' names.

`load` reads YAML, `dump` writes it back with every default filled in, so that a run directory's `scenario.yaml`
reproduces the run. A key that is left out has the preset's value, or the field's default.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr, model_validator

from edgefl.config import outside, scenario_files, shipped
from edgefl.config.scenario_fields import Named
from edgefl.config.schema import complete
from edgefl.config.yaml_source import Source, assignment, write
from edgefl.engine.air.extent import Extent
from edgefl.engine.air.layout import LayoutSettings
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.class_settings import CLASS_NAME
from edgefl.engine.federation.cloud import CloudSettings
from edgefl.engine.federation.ending import StopSettings
from edgefl.engine.settings import (
    LONGEST_S,
    CellSettings,
    DeviceSettings,
    HandoverSettings,
    RoundSettings,
    WorkloadSettings,
)
from edgefl.errors import EdgeflError, clipped
from edgefl.learning.settings import LearningSettings
from edgefl.places.areas import Area
from edgefl.places.masts import with_masts
from edgefl.places.streets import Streets
from edgefl.run_directory.settings import RecordSettings
from edgefl.scenario import fits, needs, rates
from edgefl.scenario.day import Day, named_days
from edgefl.scenario.federation_settings import (
    OWN_SECTIONS,
    FederationSettings,
    check_band,
    check_members,
    merged,
    size_of,
)
from edgefl.scenario.numbers import Numbers
from edgefl.scenario.own_sections import OwnSections
from edgefl.scenario.presets import keys_of_presets, with_preset_defaults, with_presets
from edgefl.scenario.sections import Sections
from edgefl.scenario.shown import Shown

LARGEST_SEED = 2**32 - 1
Longitude = Annotated[float, Field(ge=-180, le=180)]
Latitude = Annotated[float, Field(ge=-84, le=84)]
FederationName = Annotated[str, Field(pattern=CLASS_NAME)]
AreaName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]


class Scenario(Shown):
    """A complete description of one run, including its seed.

    `edgefl.load_scenario` makes it from a file or a dict. Its sections are frozen attributes
    (`scenario.radio.bandwidth_hz`), and `scenario.with_(seed=7, learning__local__lr=0.01)` returns a changed copy. A
    key's name ends with its unit: `_m`, `_s`, `_hz`, `_dbm`, `_bits`. `edgefl describe radio` explains the keys.

    Raises:
        EdgeflError: `load_scenario` or `with_` found faults; the message names place and remedy of each.
    """

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        max_length=200,  # a folder is called by this name and a seed, in at most 255 bytes
        description="a-z, A-Z, 0-9, . _ -, beginning with a letter or digit",
    )
    seed: int = Field(100, ge=0, le=LARGEST_SEED, description="the run is a function of scenario and seed")
    duration_s: float | None = Field(
        None,
        ge=1e-3,
        le=LONGEST_S,
        description="simulated time at which the run ends, unless its sessions end earlier; no round begins after"
        " this time, but a round under way is completed; null: the run ends after its last session",
    )
    cell: CellSettings = CellSettings()
    layout: LayoutSettings = LayoutSettings()
    origin_lon_lat: tuple[Longitude, Latitude] | None = Field(
        None, description="[longitude, latitude] of [0, 0] m, for areas and traces in degrees"
    )
    areas: dict[AreaName, Area] = Field(
        {}, description="areas by name: {disc | rectangle | polygon | geojson | sumo_net: ...}"
    )
    streets: Streets | None = Field(
        None, description="streets for mobility itinerary: {lines_m | geojson | sumo_net: ...}"
    )
    handover: HandoverSettings = HandoverSettings()
    devices: DeviceSettings
    radio: RadioSettings = RadioSettings()
    sessions: Annotated[Any, Named("sessions")] = Field(description="session policy, which ends sessions")
    rounds: RoundSettings = RoundSettings()
    stop: StopSettings | None = Field(None, description="scores that end the run early; null: no early end")
    federations: dict[FederationName, FederationSettings] | None = Field(
        None,
        min_length=2,
        description="several federations whose devices share cells and band, by name: {share | classes, weight, and"
        " its own sections}; null: one federation",
    )
    cloud: CloudSettings | None = None
    learning: LearningSettings | None = None
    workload: WorkloadSettings | None = None
    record: RecordSettings = RecordSettings()
    _source: Source | None = PrivateAttr(None)

    def __eq__(self, other: object) -> bool:
        """Compare the values of all keys, but not the files and lines that they come from."""
        return isinstance(other, Scenario) and vars(self) == vars(other)

    @classmethod
    def model_json_schema(cls, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Return the JSON Schema of a scenario file, with all components written out."""
        made = with_preset_defaults(complete(super().model_json_schema(*arguments, **options)))
        made["description"] = made["description"].partition("\n\n")[0]
        return made

    def with_(self, changes: Mapping[str, Any] | None = None, **keys: Any) -> "Scenario":
        """Return this scenario with other values, checked like a file.

        Args:
            changes: dotted key -> value: `scenario.with_({"learning.local.lr": 0.1})`.
            keys: changes by keyword, two underscores for each dot: `scenario.with_(seed=7, radio__bandwidth_hz=5e7)`.

        Raises:
            EdgeflError: the values are faulty; the message names key and remedy of each fault.
        """
        if not isinstance(changes, Mapping | None):
            raise EdgeflError(
                f"with_ takes a dict of keys and values, or keywords; got {clipped(repr(changes))}"
            )
        source = self.source
        for key, value in {**(changes or {}), **{k.replace("__", "."): v for k, v in keys.items()}}.items():
            source.override(key, value, "with_")
        return from_source(source)

    @property
    def source(self) -> Source:
        """A copy of the user's document, in which keys that are left out still follow the preset."""
        return copy.deepcopy(self._source) or Source.of(written(self))

    @contextmanager
    def naming_places(self) -> Iterator[None]:
        """Add file and line of the wrong key to errors raised in a `with` block."""
        try:
            yield
        except EdgeflError as error:
            if not error.place:
                raise
            plain = EdgeflError(f"{'.'.join(error.place)}: {error}")
            raise (self._source.error(error.place, str(error)) if self._source else plain) from error

    @model_validator(mode="before")
    @classmethod
    def _preset_fills(cls, data: Any) -> Any:
        return merged(with_presets(with_masts(data))) if isinstance(data, dict) else data

    @property
    def day(self) -> Day | None:
        """The time of day by which sessions begin or devices move, or None if the scenario has none."""
        return next(filter(None, named_days(self.sessions, self.devices).values()), None)

    @property
    def extent(self) -> Extent:
        """The extent of this scenario's world, and the height of its antennas."""
        models = [kind.mobility for kind in self.devices.kinds()]
        return Extent(self.cell, self.layout, self.radio, models)

    def of_federation(self, name: str) -> "Scenario":
        """Return the scenario of a federation by its name; the name is empty for a single federation."""
        if not name:
            return self
        assert self.federations is not None
        return self.model_copy(update={"federations": None, **self.federations[name].sections})

    @property
    def sections(self) -> OwnSections:
        """The sections of a single federation, or the sections that federations use unless they override them."""
        shared = {key: getattr(self, key) for key in OWN_SECTIONS}
        return OwnSections("", self.duration_s, cloud=self.cloud, **shared)

    @property
    def by_federation(self) -> dict[str, OwnSections]:
        """The sections of each federation, by its name; the name is empty for a single federation."""
        shared = self.sections
        several = (self.federations or {}).items()
        return {name: replace(shared, name=name, settings=one, **one.sections) for name, one in several} or {
            "": shared
        }

    def members(self, own: OwnSections, count: int | None) -> int | None:
        """Return the number of a federation's devices out of `count` in total; None if it is not known yet."""
        return size_of(own.settings, self.federations, self.devices, count)

    @property
    def trains(self) -> bool:
        """Whether any federation trains models."""
        return any(one.learning is not None for one in self.by_federation.values())

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Check that the scenario's sections fit together; report the first conflict in the order of the checks."""
        devices, shared, several = self.devices, self.sections, self.federations
        needs.check_task(shared, devices, several=bool(several))
        needs.check_metres(self.layout, self.areas, self.streets, devices, self.origin_lon_lat)
        needs.check_places(self.extent, devices, self.areas)
        own = self.by_federation
        trained = [
            one.settings.classes if one.settings else None for one in own.values() if one.learning is not None
        ]
        needs.check_samples(devices.classes or {}, trained)
        count = devices.number
        if several:
            check_members(several, tuple(devices.classes or ()), self.rounds)
            check_band(several, self.radio)
        for name, one in own.items():
            with one.naming_places():
                if several:
                    needs.check_task(one, devices)
                members = self.members(one, count)
                fits.check(self.fitting(one))
                numbers = Numbers(devices, one)
                numbers.check_server(members)
                rates.check(one.learning, one.sessions, one.duration_s)
                if several and members is not None:
                    numbers.check_part(members, name)
        if count is not None:
            Numbers(devices, shared).check(count)
        return self

    def fitting(self, own: OwnSections) -> Sections:
        """Return the sections that must fit together for a federation: its own sections and shared sections."""
        return Sections(own, self.radio, self.record.energy_excess, needs.of_world(self))


def load(
    scenario: str | Path | Mapping[str, Any], overrides: Sequence[str] = (), seed: int | None = None
) -> Scenario:
    """Load a scenario from a YAML file, or from a dict of the same keys.

    Args:
        scenario: the file or the dict; in a dict, a component may also be an object.
        overrides: `dotted.key=value` strings, applied in order.
        seed: seed of the run, or None for the scenario's own seed.

    Returns:
        The frozen, validated scenario, with all defaults filled in; a key's name ends with its unit.

    Raises:
        EdgeflError: the scenario is faulty; the message names file, line, key and remedy of each fault.
    """
    if not isinstance(scenario, str | Path | Mapping):
        raise EdgeflError(
            f"a scenario is a file's path, a dict of the same keys, or a Scenario; got {clipped(repr(scenario))}"
        )
    if isinstance(scenario, Mapping):
        source = Source.of(scenario)
        if is_study(source):
            raise EdgeflError("this dict is a study; edgefl.study(...) runs it")
    else:
        source = Source(shipped.find(Path(scenario), "scenario"))
        if is_study(source):
            raise EdgeflError(f"{source.path}: is a study; `edgefl study {source.path}` runs it")
    override(source, overrides)
    if seed is not None:
        source.override("seed", seed, f"--seed {seed}")
    return from_source(source)


def is_study(source: Source) -> bool:
    """Return whether a document has a key that only study files have."""
    return not {"scenario", "variants", "grid"}.isdisjoint(source.data)


def override(source: Source, overrides: Sequence[str]) -> None:
    """Override keys of a document with `dotted.key=value` strings, in order."""
    for text in overrides:
        origin, key, value = assignment(text)
        source.override(key, value, origin)


def given(scenario: Scenario | str | Path | Mapping[str, Any]) -> Scenario:
    """Return a scenario unchanged, or load one from a file or a dict as `load` does."""
    return scenario if isinstance(scenario, Scenario) else load(scenario)


def from_source(source: Source) -> Scenario:
    """Make a scenario from a document that has been read, with the document's overrides."""
    with outside.looking_in(source.folder), scenario_files.beside(source.folder or Path.cwd()):
        scenario = source.validate(Scenario)
    scenario._source = source  # not a key of the scenario, but the source of line numbers in later errors
    return scenario


def dump(scenario: Scenario) -> str:
    """Return the complete scenario as YAML text, with defaults filled in."""
    return write(written(scenario))


def written(scenario: Scenario) -> dict[str, Any]:
    """Return the complete scenario as plain values, with defaults filled in."""
    values: dict[str, Any] = scenario.model_dump(mode="json", exclude_none=True)
    # write null where an omitted key would take its value from the preset, from `devices` (in a class) or from the
    # scenario's `rounds` (in a federation)
    for place, keys in keys_of_presets().items():
        *outer, last = place.split(".")
        section: Any = values
        for name in outer:
            section = section.get(name, {})
        own = section.setdefault(last, None)  # entire sections may also be null
        if own is not None:
            own |= {key: None for key in keys if key not in own}
    for name, one in (scenario.devices.classes or {}).items():
        values["devices"]["classes"][name] |= dict.fromkeys(one.none_of)
    for own in values.get("federations", {}).values():
        if "rounds" in own:
            own["rounds"] |= {key: None for key in values["rounds"] if key not in own["rounds"]}
    return values

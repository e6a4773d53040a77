"""Settings of several federations that share cells and band: each federation's devices, weight and sections."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from edgefl.channel.resource_blocks import blocks_of
from edgefl.config.registry import did_you_mean
from edgefl.config.scenario_fields import Named, Section, given_keys
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.class_settings import CLASS_NAME, SHARE_TOLERANCE, class_sizes
from edgefl.engine.federation.ending import StopSettings
from edgefl.engine.settings import DeviceSettings, RoundSettings, WorkloadSettings
from edgefl.errors import EdgeflError
from edgefl.learning.settings import LearningSettings

# sections that define a federation's task; each federation has exactly one of these
TASKS = ("learning", "workload")
# the scenario's sections that a federation may override
OWN_SECTIONS = (*TASKS, "sessions", "rounds", "stop")
SNAPSHOTS = "snapshots"  # reserved, since a run directory has a folder of this name
ClassName = Annotated[str, Field(pattern=CLASS_NAME)]


class FederationSettings(Section):
    """Settings of one of several federations that share cells and band; omitted sections come from the scenario."""

    share: float | None = Field(
        None,
        gt=0,
        le=1,
        description="share of all devices that belong to the federation, drawn at random; or set classes",
    )
    classes: tuple[ClassName, ...] | None = Field(
        None, min_length=1, description="classes of devices (devices.classes) that belong to the federation"
    )
    weight: float = Field(
        1.0,
        ge=1e-3,
        le=1e3,
        description="weight by which the band is shared while several federations have data to send",
    )
    learning: LearningSettings | None = Field(
        None, description="the federation's learning, which replaces the scenario's learning or workload"
    )
    workload: WorkloadSettings | None = Field(
        None, description="workload without training, which replaces the scenario's learning or workload"
    )
    sessions: Annotated[Any, Named("sessions", optional=True)] = Field(
        None, description="the federation's session policy, instead of the scenario's sessions"
    )
    rounds: RoundSettings | None = Field(None, description="keys of rounds that the federation overrides")
    stop: StopSettings | None = Field(
        None, description="scores that end the federation's run, instead of the scenario's stop"
    )

    @property
    def sections(self) -> dict[str, Any]:
        """The sections that a federation overrides; its `learning` removes the shared `workload`, and vice versa."""
        own = {key: of for key in OWN_SECTIONS if (of := getattr(self, key)) is not None}
        return {**dict.fromkeys(TASKS), **own} if own.keys() & set(TASKS) else own


def merged(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in each federation's missing keys of `rounds` from the scenario's own `rounds`."""
    federations, rounds = data.get("federations"), given_keys(data.get("rounds"))
    if not isinstance(federations, Mapping) or rounds is None:
        return data
    filled = dict(federations)
    for name, one in federations.items():
        own = given_keys(one) or {}
        if (differs := given_keys(own.get("rounds"))) is not None:
            filled[name] = {**own, "rounds": {**rounds, **differs}}
    return {**data, "federations": filled}


def sizes(federations: Sequence[FederationSettings], devices: int) -> np.ndarray:
    """Return the number of devices of each federation [federations], if federations set their devices by share.

    Each number differs by less than one device from the federation's share of all devices.
    """
    upto = np.cumsum([one.share or 0.0 for one in federations])
    ends = np.floor(devices * upto + 0.5 + SHARE_TOLERANCE * devices).astype(np.int64)
    ends[-1] = devices
    return np.diff(ends, prepend=0)


def size_of(
    one: FederationSettings | None,
    federations: Mapping[str, FederationSettings] | None,
    devices: DeviceSettings,
    count: int | None,
) -> int | None:
    """Return the number of a federation's devices out of `count`, or None if the number is not known yet.

    Args:
        one: one of `federations`, or None for a single federation, which has all devices.
    """
    if one is None or federations is None or count is None:
        return count
    if one.classes is None:
        of_each = zip(federations.values(), sizes(list(federations.values()), count), strict=True)
        return next(int(size) for each, size in of_each if each is one)
    if devices.classes_by == "types":
        return None  # only the trace determines how many devices each type has
    classes = devices.classes or {}
    of_classes = dict(zip(classes, class_sizes(classes, count), strict=True))
    return int(sum(of_classes[each] for each in one.classes))


def check_band(federations: Mapping[str, FederationSettings], radio: RadioSettings) -> None:
    """Check that each federation gets at least one resource block while all federations send."""
    if radio.measured is not None or not any(radio.in_blocks(direction) for direction in DIRECTIONS):
        return
    blocks = blocks_of(radio.bandwidth_hz, radio.slot_s)
    together = math.fsum(one.weight for one in federations.values())
    for name, one in federations.items():
        if (part := one.weight / together * blocks) < 1:
            raise EdgeflError(
                f"weight {one.weight:g} of {together:g} is {part:.2g} of the band's {blocks} resource blocks, and a"
                " federation needs at least one: raise this weight, or radio.bandwidth_hz",
                ("federations", name, "weight"),
            )


def check_members(
    federations: Mapping[str, FederationSettings], classes: Sequence[str], rounds: RoundSettings
) -> None:
    """Check that each device belongs to exactly one federation, and that federations' names differ.

    Args:
        classes: the scenario's classes of devices. rounds: the scenario's section `rounds`.
    """
    _check_names(list(federations))
    first = next(iter(federations))
    by_share = federations[first].share is not None
    taken: dict[str, str] = {}
    for name, one in federations.items():
        if (one.rounds or rounds).max_wait_s != rounds.max_wait_s:
            raise EdgeflError(
                "is the same for all federations: set rounds.max_wait_s at the top level",
                ("federations", name, "rounds", "max_wait_s"),
            )
        if (one.share is None) == (one.classes is None):
            both = "not by both" if one.share is not None else "give one of the two"
            raise EdgeflError(f"set its devices by share or by classes: {both}", ("federations", name))
        if (one.share is not None) != by_share:
            raise EdgeflError(
                f"{first} sets its devices by {'share' if by_share else 'classes'}: do the same for all federations",
                ("federations", name),
            )
        for each in one.classes or ():
            place = ("federations", name, "classes")
            if each not in classes:
                hint = did_you_mean(each, list(classes)) if classes else "; devices.classes names none"
                raise EdgeflError(f"no class {each!r} in devices.classes{hint}", place)
            if each in taken:
                raise EdgeflError(f"devices of class {each} already belong to {taken[each]}", place)
            taken[each] = name
    if by_share:
        given = math.fsum(one.share or 0.0 for one in federations.values())
        if abs(given - 1) > SHARE_TOLERANCE:
            raise EdgeflError(
                f"the federations' shares sum to {given:g}: every device belongs to one federation, so the sum "
                "must be 1",
                ("federations",),
            )
    elif left := [each for each in classes if each not in taken]:
        raise EdgeflError(
            f"devices of class {left[0]} belong to no federation: name the class in a federation",
            ("federations",),
        )


def _check_names(names: Sequence[str]) -> None:
    """Check that each federation's name is valid as the name of its folder in the run directory."""
    folders = [name.casefold() for name in names]
    for name, folder in zip(names, folders, strict=True):
        if name == SNAPSHOTS or folders.count(folder) > 1:
            raise EdgeflError(
                f"a federation's folder in the run directory has the federation's name, but {name} is taken: choose "
                "another name",
                ("federations", name),
            )

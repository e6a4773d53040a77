"""Check that a scenario has a task, an end, one clock, known areas, places in metres, and valid radio models."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from edgefl.channel.path_loss import PathLoss
from edgefl.config.registry import did_you_mean
from edgefl.config.scenario_fields import Section
from edgefl.engine.air.extent import Extent
from edgefl.engine.air.layout import LayoutSettings
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.class_settings import ClassSettings
from edgefl.engine.settings import DeviceSettings
from edgefl.errors import EdgeflError, quoted
from edgefl.places.areas import Area
from edgefl.places.plane import LocalPlane, look_like_degrees
from edgefl.places.streets import Streets
from edgefl.scenario.day import named_days
from edgefl.scenario.own_sections import OwnSections

Points = Sequence[tuple[float, float]]
MOST_SHOWN = 3  # maximum number of places in an error


def check_task(own: OwnSections, devices: DeviceSettings, *, several: bool = False) -> None:
    """Check that a federation has exactly one task, an end, and a single clock.

    Args:
        several: whether several federations share these sections; each federation's task is then checked separately.
    """
    learning, workload, sessions = own.learning, own.workload, own.sessions
    if own.name and learning is None and workload is None:
        raise EdgeflError(
            f"{own.name} has no task, and neither has the scenario: set learning or workload",
            ("federations", own.name),
        )
    both = learning is not None and workload is not None
    if both or (learning is None and workload is None and not several):
        raise EdgeflError(
            "set either learning (train models) or workload (radio and compute only)",
            ("workload" if workload else "learning",),
        )
    if sessions.count is None and own.duration_s is None:
        raise EdgeflError(
            "the run has no end: set sessions.count, or duration_s at the top level, or both",
            ("sessions",),
        )
    if (
        sessions.asks_validation
        and (learning is None or learning.evaluation.validation is None)
        and not several
    ):
        raise EdgeflError(
            "this policy uses the score on validation samples: set learning.evaluation.validation, such as 0.1",
            ("sessions",),
        )
    days = {where: day for where, day in named_days(sessions, devices).items() if day}
    if len(set(days.values())) > 1:
        told = ", ".join(f"{where} has {day}" for where, day in days.items())
        raise EdgeflError(
            f"the run has two different clocks: {told}; use the same begin_hour and day_s everywhere",
            tuple(list(days)[-1].split(".")),
        )


def check_samples(classes: Mapping[str, ClassSettings], trained: Collection[Collection[str] | None]) -> None:
    """Refuse a share of training samples for a class of devices that trains nothing.

    Args:
        trained: for each federation that trains, its classes of devices, or None for all classes.
    """
    for name, one in classes.items():
        if one.samples is not None and not any(own is None or name in own for own in trained):
            raise EdgeflError(
                "is a share of training samples, but this run trains nothing on these devices: leave this key out",
                ("devices", "classes", name, "samples"),
            )


def check_places(extent: Extent, devices: DeviceSettings, areas: Mapping[str, Area]) -> None:
    """Refuse undefined areas, and radio models that are invalid or without effect in this world."""
    layout, radio = extent.layout, extent.radio
    if layout.several and radio.propagation.shadowing != "spatial" and radio.measured is None:
        raise EdgeflError(
            "handovers need the path loss and shadowing at each place: several cells (layout.rings, sites or"
            " sectors) need radio.propagation.shadowing: spatial",
            ("radio", "propagation", "shadowing"),
        )
    for where, mobility in devices.mobilities():
        for place, name in mobility.area_names():
            if name not in areas:
                known = (
                    did_you_mean(name, [*areas, *mobility.own_places])
                    if areas
                    else ": define it below areas:"
                )
                raise EdgeflError(f"no area {quoted(name)}{known}", (*where, *place))
    if radio.measured is not None:  # measured rates involve no path loss, penetration loss or band
        return
    extent.check()
    for name, one in (devices.classes or {}).items():
        if one.ut_height_m is not None:
            try:
                extent.at_height(one.ut_height_m).check()
            except EdgeflError as error:
                raise EdgeflError(str(error), ("devices", "classes", name, "ut_height_m")) from error
    _check_walls(radio.path_loss, devices)
    _check_bands(radio, devices)
    if radio.neighbour_load and layout.cells == 1:
        raise EdgeflError(
            "radio.neighbour_load needs neighbours: set layout.rings to 1 or 2, or set sites",
            ("radio", "neighbour_load"),
        )


def _check_bands(radio: RadioSettings, devices: DeviceSettings) -> None:
    for place, kind in _kinds(devices):
        real = radio.sharing == "dynamic" and not all(map(radio.in_blocks, DIRECTIONS))
        if real and (kind.max_bandwidth_hz or radio.bandwidth_hz) < radio.bandwidth_hz:
            raise EdgeflError(
                "without resource blocks, a device that sends alone gets all of a dynamically shared band: leave"
                " max_bandwidth_hz out, or set radio.link.rates: cqi or radio.sharing: static",
                (*place, "max_bandwidth_hz"),
            )


def of_world(scenario: Any) -> dict[tuple[str, ...], Section]:
    """Return the scenario's sections about the world except `radio`, and each class of devices, by place."""
    sections = {(key,): getattr(scenario, key) for key in ("cell", "layout", "handover")}
    return sections | dict(_kinds(scenario.devices))


def _kinds(devices: DeviceSettings) -> Iterator[tuple[tuple[str, ...], DeviceSettings]]:
    """Yield place and settings of all devices, and then of each class of devices."""
    names = [(), *(("classes", name) for name in devices.classes or {})]
    for name, kind in zip(names, [devices, *devices.kinds()], strict=False):
        yield ("devices", *name), kind


def _check_walls(path_loss: PathLoss, devices: DeviceSettings) -> None:
    for place, kind in _kinds(devices):
        if kind.indoor_share and path_loss.indoor_depth_m is None:
            raise EdgeflError(
                f"38.901 defines no penetration loss of buildings for {type(path_loss).__name__}: set"
                " indoor_share to 0, or radio.path_loss to umi or uma",
                (*place, "indoor_share"),
            )


def check_metres(
    layout: LayoutSettings,
    areas: Mapping[str, Area],
    streets: Streets | None,
    devices: DeviceSettings,
    origin_lon_lat: tuple[float, float] | None,
) -> None:
    """Refuse places with coordinates that look like degrees instead of metres.

    Raises:
        EdgeflError: a key's places look like degrees; the message converts them to metres if the origin is known.
    """
    for place, points in _of_sections(layout, areas, streets, devices):
        if look_like_degrees(points, origin_lon_lat):
            shown = ", ".join(f"[{x:g}, {y:g}]" for x, y in points[:MOST_SHOWN])
            file = "; a GeoJSON file may use degrees" if place[0] in ("areas", "streets") else ""
            raise EdgeflError(
                f"{shown} look like degrees, but must be metres east and north of [0, 0]"
                f"{_converted(points[:MOST_SHOWN], origin_lon_lat)}{file}",
                place,
            )


def _of_sections(
    layout: LayoutSettings, areas: Mapping[str, Area], streets: Streets | None, devices: DeviceSettings
) -> Iterator[tuple[tuple[str, ...], Points]]:
    """Yield each key that contains places in metres, with these places; the centres of all discs count as one key."""
    yield ("layout", "sites"), layout.sites or ()
    discs = {name: area.disc.centre_m for name, area in areas.items() if area.disc is not None}
    for name, area in areas.items():
        if area.polygon is not None:
            yield ("areas", name, "polygon", "points_m"), area.polygon.points_m
        elif area.rectangle is not None:
            yield ("areas", name, "rectangle"), (area.rectangle.from_m, area.rectangle.to_m)
    yield ("areas", *list(discs)[-1:], "disc", "centre_m"), list(discs.values())
    if streets is not None:
        yield ("streets", "lines_m"), [point for line in streets.lines_m or () for point in line]
    for where, mobility in devices.mobilities():
        addresses = getattr(mobility, "addresses", {}).values()
        yield (*where, "addresses"), [one for one in addresses if isinstance(one, tuple)]


def _converted(points: Points, origin_lon_lat: tuple[float, float] | None) -> str:
    """Suggest the places, given in degrees, as positions in metres; '' if the origin is unknown or too far away."""
    if origin_lon_lat is None:
        return ""
    try:
        metres = LocalPlane(*origin_lon_lat).to_m(points)
    except ValueError:
        return ""
    return f": write {', '.join(f'[{x:.1f}, {y:.1f}]' for x, y in metres + 0.0)}"

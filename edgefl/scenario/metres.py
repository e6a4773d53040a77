"""Refuse degrees where a scenario needs metres."""

from collections.abc import Iterator, Mapping, Sequence

from edgefl.engine.air.layout import LayoutSettings
from edgefl.engine.settings import DeviceSettings
from edgefl.errors import EdgeflError
from edgefl.places.areas import Area
from edgefl.places.plane import LocalPlane, look_like_degrees
from edgefl.places.streets import Streets

Points = Sequence[tuple[float, float]]
MOST_SHOWN = 3  # places in an error


def check(
    layout: LayoutSettings,
    areas: Mapping[str, Area],
    streets: Streets | None,
    devices: DeviceSettings,
    origin_lon_lat: tuple[float, float] | None,
) -> None:
    """Refuse places that look like degrees.

    Raises:
        EdgeflError: names the key, and the same places in metres if the origin is known.
    """
    for place, points in _of_sections(layout, areas, streets, devices):
        if look_like_degrees(points, origin_lon_lat):
            shown = ", ".join(f"[{x:g}, {y:g}]" for x, y in points[:MOST_SHOWN])
            file = "; degrees belong into a file, see geojson" if place[0] in ("areas", "streets") else ""
            raise EdgeflError(
                f"{shown} look like degrees, but must be metres east and north of [0, 0]"
                f"{_converted(points[:MOST_SHOWN], origin_lon_lat)}{file}",
                place,
            )


def _of_sections(
    layout: LayoutSettings, areas: Mapping[str, Area], streets: Streets | None, devices: DeviceSettings
) -> Iterator[tuple[tuple[str, ...], Points]]:
    """Yield the keys with places in metres, and their places; the centres of all discs together."""
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
    """Return the places in metres, or nothing if they are not near the origin."""
    if origin_lon_lat is None:
        return ""
    try:
        metres = LocalPlane(*origin_lon_lat).to_m(points)
    except ValueError:
        return ""
    return f": write {', '.join(f'[{x:.1f}, {y:.1f}]' for x, y in metres + 0.0)}"

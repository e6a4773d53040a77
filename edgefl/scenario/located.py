"""What does not go together with where sites and devices are: refused when a scenario is read, with the remedy."""

from collections.abc import Mapping

from edgefl.channel.path_loss import PathLoss
from edgefl.config.registry import did_you_mean
from edgefl.engine.air.extent import Extent
from edgefl.engine.settings import DeviceSettings
from edgefl.errors import EdgeflError, quoted
from edgefl.places.areas import Area


def check(extent: Extent, devices: DeviceSettings, areas: Mapping[str, Area]) -> None:
    """Refuse areas that are not there, and laws of the radio that do not hold, or mean nothing, in this world.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    layout, radio = extent.layout, extent.radio
    if layout.several and radio.propagation.shadowing != "spatial":
        raise EdgeflError(
            "handover measures path loss and shadowing of a place: several cells (layout.rings, sites or"
            " sectors) need radio.propagation.shadowing: spatial",
            ("radio", "propagation", "shadowing"),
        )
    for where, mobility in devices.mobilities():
        for place, name in mobility.area_names():
            if name not in areas:
                known = did_you_mean(name, list(areas)) if areas else ": define it below areas:"
                raise EdgeflError(f"no area {quoted(name)}{known}", (*where, *place))
    extent.check()
    for name, one in (devices.classes or {}).items():
        if one.ut_height_m is not None:
            try:
                extent.at_height(one.ut_height_m).check()
            except EdgeflError as error:
                raise EdgeflError(str(error), ("devices", "classes", name, "ut_height_m")) from error
    _check_walls(radio.path_loss, devices)
    if radio.neighbour_load and layout.cells == 1:
        raise EdgeflError(
            "radio.neighbour_load needs neighbours: set layout.rings to 1 or 2, or give sites",
            ("radio", "neighbour_load"),
        )


def _check_walls(path_loss: PathLoss, devices: DeviceSettings) -> None:
    if path_loss.indoor_depth_m is not None:
        return
    names = ["", *(devices.classes or {})]
    for name, kind in zip(names, [devices, *devices.kinds()], strict=False):
        if kind.indoor_share:
            raise EdgeflError(
                f"38.901 has no way through the walls of buildings in {type(path_loss).__name__}: set"
                " indoor_share to 0, or radio.path_loss to umi or uma",
                ("devices", *(("classes", name) if name else ()), "indoor_share"),
            )

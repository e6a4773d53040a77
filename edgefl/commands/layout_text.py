"""Write where the cells of a layout lie."""

from collections.abc import Iterator

from edgefl.engine.air.layout import LayoutSettings
from edgefl.scenario.scenario import Scenario


def cells(scenario: Scenario | None) -> Iterator[str]:
    """Yield a line for each cell of a scenario; without one, of the hexagons with one ring."""
    layout = scenario.layout if scenario else LayoutSettings(rings=1)
    if scenario:
        yield f"Cells of {scenario.name}, in a world of {scenario.extent.radius_m:g} m around [0, 0]:"
    else:
        yield "Cells of rings: 1 (`edgefl describe layout FILE` lists those of a scenario):"
    served = set(layout.served)
    for cell in range(layout.cells):
        site, panel = divmod(cell, layout.sectors)
        x_m, y_m = (round(float(axis), 2) + 0.0 for axis in layout.sites_m[site])  # + 0.0: no -0
        where = f"site {site} at [{x_m:g}, {y_m:g}] m"
        if layout.sectors > 1:
            where += f", bearing {(layout.azimuth_deg + 120 * panel) % 360:g} degrees"
        yield f"  cell {cell}: {where}{'' if cell in served else ', no federation'}"

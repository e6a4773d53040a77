"""Count the cells of a layout, and the parameters and FLOPs of a model, for `edgefl describe`."""

from collections.abc import Iterator
from typing import Any

from edgefl.config.component import parameters_of
from edgefl.engine.air.layout import LayoutSettings
from edgefl.errors import clipped
from edgefl.rng import Streams
from edgefl.scenario.scenario import Scenario


def cells(scenario: Scenario | None) -> Iterator[str]:
    """Yield a line for each cell of a scenario or, without a scenario, of a hexagonal layout with one ring."""
    layout = scenario.layout if scenario else LayoutSettings(rings=1)
    if scenario:
        yield f"Cells of {scenario.name}, in a world of {scenario.extent.radius_m:g} m around [0, 0]:"
    else:
        yield "Cells of a layout with rings: 1 (for the cells of a scenario: `edgefl describe layout FILE`):"
    served = set(layout.served)
    bearings = layout.bearings_deg or ((None,),) * len(layout.sites_m)
    of_cells = [(site, bearing) for site, of in enumerate(bearings) for bearing in of]
    for cell, (site, bearing) in enumerate(of_cells):
        x_m, y_m = (round(float(axis), 2) + 0.0 for axis in layout.sites_m[site])  # adding 0.0 avoids -0
        where = f"site {site} at [{x_m:g}, {y_m:g}] m"
        if bearing is not None:
            where += f", bearing {bearing % 360:g} degrees"
        yield f"  cell {cell}: {where}{'' if cell in served else ', without a federation'}"


def size(model: Any) -> list[str]:
    """Describe a model's size for the typical input and number of classes, if the model's class states them."""
    from edgefl.learning.federation.cell_building import build_module  # import late: loads PyTorch
    from edgefl.learning.local.cost import flops_per_sample
    from edgefl.learning.modules.parameters import TensorLayout

    shape, classes = getattr(model, "typical_input", None), getattr(model, "typical_classes", None)
    if shape is None or classes is None:
        return [
            "Size: see `edgefl validate`; it is shown here if the class has typical_input and typical_classes."
        ]
    if any(field.is_required() for field in parameters_of(model).model_fields.values()):
        return ["Size: depends on the model's keys; `edgefl validate` shows it."]
    sizes = f"{'x'.join(map(str, shape))} inputs and {classes} classes"
    try:
        module = build_module(model(), shape, classes, Streams(0))
        parameters, flops = TensorLayout.of(module).size, flops_per_sample(module, shape)
    except Exception as error:  # a user's model may raise any error
        return [f"Size: cannot be counted for {sizes}: {type(error).__name__}: {clipped(str(error))}"]
    return [
        f"Size for {sizes}:",
        f"  parameters: {parameters:,}",
        f"  FLOPs per sample (forward and backward): {flops:,}",
    ]

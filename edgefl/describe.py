"""The text of `edgefl describe`: what a component or a section of a scenario does, and its parameters."""

import inspect
from pathlib import Path
from typing import Any, get_args

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from edgefl import registry
from edgefl.component import parameters_of
from edgefl.errors import EdgeflError
from edgefl.registry import did_you_mean
from edgefl.rng import Streams


def describe(component: str, file: Path | None = None) -> str:
    """Describe `KIND/NAME` or a section: the docstring, then a line per parameter; for a model also its size.

    Args:
        component: `algorithms/fedprox`, or a section such as `layout`.
        file: for the layout, a scenario whose sites are listed.

    Raises:
        EdgeflError: there is no such component or section.
    """
    kind, slash, name = component.partition("/")
    if not slash:
        return _section(component, file)
    if file is not None:
        raise EdgeflError(
            f"'{file}': only the layout of a scenario is listed; write edgefl describe layout FILE"
        )
    component_class = registry.get(kind, name)
    lines = [f"{kind}/{name}", "", inspect.getdoc(component_class) or ""]
    lines += ["", *_parameters(parameters_of(component_class).model_fields)]
    if kind == "models":
        lines += ["", *_size(component_class)]
    return "\n".join(lines)


def _section(name: str, file: Path | None) -> str:
    from edgefl.layout_text import cells
    from edgefl.scenario import Scenario, load

    sections = {
        key: kind
        for key, field in Scenario.model_fields.items()
        for kind in (field.annotation, *get_args(field.annotation))  # X, or X | None
        if inspect.isclass(kind) and issubclass(kind, BaseModel)
    }
    if name not in sections:
        raise EdgeflError(
            f"'{name}': write KIND/NAME, e.g. algorithms/fedprox, or a section{did_you_mean(name, list(sections))}"
        )
    section = sections[name]
    lines = [name, "", inspect.getdoc(section) or "", "", *_parameters(section.model_fields)]
    if name == "layout":
        lines += ["", *cells(load(file) if file else None)]
    elif file is not None:
        raise EdgeflError(
            f"'{file}': only the layout of a scenario is listed; write edgefl describe layout FILE"
        )
    return "\n".join(lines)


def _parameters(fields: dict[str, FieldInfo]) -> list[str]:
    if not fields:
        return ["Parameters: none"]
    lines = ["Parameters:"]
    for name, field in fields.items():
        default = "required" if field.is_required() else f"default {_short(repr(field.default))}"
        bounds = ", ".join(filter(None, (_bound(item) for item in field.metadata)))
        lines.append(f"  {name}: {field.description} ({', '.join(filter(None, [bounds, default]))})")
    return lines


def _short(text: str, longest: int = 60) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _bound(item: Any) -> str | None:
    match item:
        case annotated_types.Ge():
            return f">= {item.ge}"
        case annotated_types.Gt():
            return f"> {item.gt}"
        case annotated_types.Le():
            return f"<= {item.le}"
        case annotated_types.Lt():
            return f"< {item.lt}"
    return None


def _size(model: Any) -> list[str]:
    from edgefl.learning.cost import flops_per_sample
    from edgefl.learning.parameters import TensorLayout
    from edgefl.learning.trainer import build_module

    shape, classes = model.typical_input, model.typical_classes
    module = build_module(model(), shape, classes, Streams(0))
    return [
        f"Size for {'x'.join(map(str, shape))} inputs and {classes} classes:",
        f"  parameters: {TensorLayout.of(module).size:,}",
        f"  FLOPs per sample (forward and backward): {flops_per_sample(module, shape):,}",
    ]

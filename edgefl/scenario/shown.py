"""Show a scenario in Python on one line, or in a notebook as a table of facts that expands to all values."""

import html
from typing import Any

from edgefl.config import registry
from edgefl.config.scenario_fields import Section
from edgefl.config.yaml_source import write


class Shown(Section):
    """Base class of the scenario, which Python shows as a short description instead of hundreds of values."""

    def __repr__(self) -> str:
        found = facts(self)
        return f"Scenario({found.pop('name')!r}: {', '.join(f'{key} {text}' for key, text in found.items())})"

    __str__ = __repr__

    def _repr_html_(self: Any) -> str:
        cell = '<t{kind} style="text-align: left">{text}</t{kind}>'
        rows = "".join(
            f"<tr>{cell.format(kind='h', text=key)}{cell.format(kind='d', text=html.escape(text))}</tr>"
            for key, text in facts(self).items()
        )
        values = self.model_dump(mode="json", exclude_none=True)
        parts = "".join(
            f'<details><summary>{title}</summary><pre style="overflow-x: auto">{html.escape(text)}</pre></details>'
            for title, text in (("As written", write(self.source.data)), ("All values", write(values)))
        )
        return f"<table>{rows}</table>{parts}"


def facts(scenario: Any) -> dict[str, str]:
    """Return a scenario's main facts: devices, cells, radio, sessions, selector, data, model and algorithm."""
    radio, devices = scenario.radio, scenario.devices
    moves = dict.fromkeys(_name("mobility", kind.mobility) for kind in devices.kinds())
    count = "all of the trace" if devices.number is None else devices.number
    found = {
        "name": scenario.name,
        "seed": str(scenario.seed),
        "devices": f"{count} ({', '.join(moves)})",
        "cells": str(scenario.layout.cells),
        "radio": f"{radio.preset}, {radio.bandwidth_hz / 1e6:g} MHz",
        "sessions": _name("sessions", scenario.sessions),
        "selector": _name("selectors", scenario.rounds.selector),
    }
    for federation, one in scenario.by_federation.items():
        if learning := one.learning:
            learned = {
                "datasets": learning.dataset,
                "models": learning.model,
                "algorithms": learning.algorithm,
            }
            found[f"learning {federation}".strip()] = ", ".join(map(_name, learned, learned.values()))
    return found


def _name(kind: str, component: Any) -> str:
    """Return a component's name, followed by the component's parameter `count` if it has one."""
    name, count = registry.name_of(kind, component), getattr(component, "count", None)
    return name if count is None else f"{name} {count}"

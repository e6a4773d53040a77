"""Observers of rounds: further columns of devices.csv for classes, access and links that fail."""

from typing import Any

from edgefl.engine.federation.made import Columns, Made
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.parts import NO_STALL


def classes(simulation: Simulation, made: Made) -> Columns:
    """Return the class of each device."""
    return Columns(of_devices={"class": simulation.fleet.class_names(made.local.ids)})


def access(made: Made) -> Columns:
    """Return the time before each device's transfers."""
    return Columns(of_devices={"access_s": [down.time_s + up.time_s for down, up in made.accesses]})


def stalls(simulation: Simulation, made: Made) -> Columns:
    """Return the time and energy of each device without a link, and its link failures; enter them in the ledger."""
    both = [
        [span.stall if span else NO_STALL for span in (part.downlink, part.uplink)] for part in made.parts
    ]
    columns: dict[str, list[Any]] = {
        "stalled_s": [down.time_s + up.time_s for down, up in both],
        "stalled_j": [down.energy_j + up.energy_j for down, up in both],
        "link_failures": [down.failures + up.failures for down, up in both],
    }
    simulation.ledger.book_stalls(made.local.ids, columns["stalled_s"], columns["stalled_j"])
    return Columns(of_devices=columns)

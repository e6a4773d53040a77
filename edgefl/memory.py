"""Whether a run fits this machine's memory: a lower bound of what it needs, refused before it is asked for.

Bounds, not estimates: what is refused here could not run, and what passes may still be too large.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.engine.selectors import Selector, with_surplus
from edgefl.errors import EdgeflError

if TYPE_CHECKING:
    from edgefl.scenario import Scenario

# Measured: 100,000 devices that never move nor switch take 823 bytes each; moving and switching ones 3,400.
BYTES_PER_DEVICE = 800
BYTES_PER_DRAWN_SAMPLE = 8  # its index in a round's mini-batches
BYTES_PER_NUMBER = 4  # of a model
CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def check_devices(scenario: "Scenario", devices: float) -> None:
    """Refuse more devices than memory holds.

    Args:
        devices: how many, or how many are expected.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    key = "count" if scenario.devices.count else "density_per_km2"
    _refuse(devices * BYTES_PER_DEVICE, f"{devices:,.0f} devices", "lower it", ("devices", key))


def check_training(scenario: "Scenario", devices: int, parameters: int) -> None:
    """Refuse a round whose mini-batches or local models memory cannot hold.

    Args:
        parameters: numbers of a model.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    learning = scenario.learning
    assert learning is not None
    selector: Selector = scenario.rounds.selector
    most = with_surplus(selector.wanted(devices), scenario.rounds.over_selection, devices)
    if scenario.layout.rings:
        most = 1  # how many share a cell is seen only as they move
    # an epoch draws each sample once, and a device has at least one
    key, steps = ("epochs", learning.epochs) if learning.epochs else ("steps", learning.steps)
    _refuse(
        most * steps * BYTES_PER_DRAWN_SAMPLE,
        f"{steps:,} {key} of {most} participants",
        f"lower {key}",
        ("learning", key),
    )
    _refuse(
        most * parameters * BYTES_PER_NUMBER,
        f"{most} local models of {parameters:,} numbers",
        "let fewer devices take part in a round (rounds.selector), or take a smaller model",
        ("learning", "model"),
    )


def machine_bytes() -> int:
    """Return the memory that this process may use: the machine's, or its control group's limit."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in CGROUPS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            limits.append(int(file.read_text()))
    return min(limits)


def _refuse(needed: float, what: str, remedy: str, place: tuple[str, ...]) -> None:
    room = machine_bytes()
    if needed > room:
        raise EdgeflError(
            f"{what} need at least {needed / 1e9:,.3g} GB of memory; this machine has {room / 1e9:,.3g}: {remedy}",
            place,
        )

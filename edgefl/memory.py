"""What a scenario needs at least of this machine's memory, known before it is built, and whether it is there.

Only what is allocated for certain is counted, so that nothing is refused that might have fitted: a run that
passes may still need several times as much.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from channel.layout import site_count
from edgefl.engine.churn.always_on import AlwaysOn
from edgefl.engine.selectors import CountedSelector
from edgefl.engine.selectors.all import All
from edgefl.errors import EdgeflError
from edgefl.mobility.static import Static
from edgefl.rng import Streams
from edgefl.scenario import Scenario
from edgefl.world import World

DEVICE_BYTES = 300  # of the objects and arrays that every device has; measured 330 to 360
CELL_BYTES = 12  # per device and cell: when a neighbour became better (8), and the measured power (4)
STEP_BYTES = 20  # per device and local step: sample and weight of a batch of one (12), and its size (8)
NUMBER_BYTES = 4  # of a model


@dataclass(frozen=True)
class Need:
    """Memory that is needed for certain, the setting that makes it large, and what it is for."""

    place: tuple[str, ...]
    size: float  # bytes
    what: str


def check(scenario: Scenario) -> None:
    """Check what is known from the scenario alone.

    Raises:
        EdgeflError: more memory is needed than there is.
    """
    require(of_world(scenario), available_bytes())


def of_world(scenario: Scenario) -> list[Need]:
    """Return what the devices, their measurements and generated data need."""
    key, count = least_devices(scenario)
    needs = [Need(("devices", key), DEVICE_BYTES * count, f"{count:,.0f} devices")]
    if scenario.layout.rings:
        cells = site_count(scenario.layout.rings)
        what = f"{count:,.0f} devices that measure {cells} cells"
        needs.append(Need(("devices", key), CELL_BYTES * cells * count, what))
    if scenario.learning is not None:
        needs.append(Need(("learning", "dataset"), scenario.learning.dataset.least_bytes(), "the data set"))
    return needs


def of_training(scenario: Scenario, devices: int, numbers: int) -> list[Need]:
    """Return what a round's models and batches need.

    Args:
        devices: number of devices.
        numbers: parameters and statistics of a model.
    """
    learning = scenario.learning
    if learning is None:
        return []
    place, training = least_participants(scenario, devices)
    # beside the local models: the module and the global model
    copies = training * (1 + learning.algorithm.trains_personal) + 2
    models = f"{copies} models of {numbers:,} numbers"
    steps = learning.epochs or learning.steps
    batches = f"the batches of {steps:,} steps of {training:,} devices"
    return [
        Need(place or ("learning", "model"), NUMBER_BYTES * copies * numbers, models),
        Need(("learning", "epochs" if learning.epochs else "steps"), STEP_BYTES * steps * training, batches),
    ]


def least_devices(scenario: Scenario) -> tuple[str, float]:
    """Return the key that sets the number of devices, and a number that they hardly fall below."""
    if scenario.devices.count is not None:
        return "count", scenario.devices.count
    inner_m, outer_m = scenario.cell.min_distance_m, World(scenario, Streams(0)).area_radius_m
    density = scenario.devices.density_per_km2 or 0.0
    mean = density * math.pi * max(0.0, outer_m**2 - inner_m**2) / 1e6
    return "density_per_km2", max(0.0, mean - 6 * math.sqrt(mean))  # a Poisson number


def least_participants(scenario: Scenario, devices: int) -> tuple[tuple[str, ...], int]:
    """Return the key that sets the number of devices in the first round, and that number; 1 if it is not known."""
    settings, selector = scenario.devices, scenario.rounds.selector
    all_there = (
        isinstance(settings.mobility, Static)
        and isinstance(settings.churn, AlwaysOn)
        and settings.battery_j is None
        and not scenario.layout.rings
    )
    if all_there and isinstance(selector, All):
        return ("devices", least_devices(scenario)[0]), devices
    if all_there and isinstance(selector, CountedSelector):
        return ("rounds", "selector", "count"), min(selector.count, devices)
    return (), 1


def require(needs: Sequence[Need], available: float) -> None:
    """Refuse needs that together exceed what is available, in bytes; the message is about the largest.

    Raises:
        EdgeflError: says how much is needed, for what, and how much there is.
    """
    total = sum(need.size for need in needs)
    if total <= available:
        return
    largest = max(needs, key=lambda need: need.size)
    raise EdgeflError(
        f"needs at least {_gb(total)} of memory, {_gb(largest.size)} of it for {largest.what};"
        f" {_gb(available)} are available here",
        largest.place,
    )


def available_bytes(root: Path = Path("/")) -> float:
    """Return the memory that this process may still take, swap included; infinite where nobody says.

    Args:
        root: where /proc and /sys are.
    """
    kilobytes = {}
    for line in _lines(root / "proc/meminfo"):
        name, _, value = line.partition(":")
        kilobytes[name] = int(value.split()[0])
    swap = 1024.0 * kilobytes.get("SwapFree", 0)
    limits = [limit + swap for limit in _group_limits(root)]
    if "MemAvailable" in kilobytes:
        limits.append(1024.0 * kilobytes["MemAvailable"] + swap)
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return min(limits, default=math.inf)


def _group_limits(root: Path) -> list[float]:
    """Return the limits in bytes of the control groups, of either version, that this process belongs to."""
    limits = []
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, group = line.split(":", 2)
        if number == "0":
            folder, file = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            folder, file = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        inner = folder / group.lstrip("/")
        # in a container the group may be named as seen from outside: then only the mount itself is there
        for place in (inner, *inner.parents):
            for text in _lines(place / file) if place.is_relative_to(folder) else ():
                limits += [float(text)] if text.isdecimal() else []  # else `max`
    return limits


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []  # not on this system


def _gb(size: float) -> str:
    return f"{size / 1e9:,.3g} GB" if size < 1e14 else f"{size / 1e12:,.0f} TB"

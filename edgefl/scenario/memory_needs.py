"""Compute the minimum memory that a scenario's run needs, before its world is built.

Only allocations that are certain to occur are counted, so that a scenario that might fit is never refused. A run that
passes this check may still need several times as much memory.
"""

import math
from collections.abc import Sequence
from typing import Any

from edgefl.channel.diversity import PAGE
from edgefl.channel.transfer import AUTO_SLOTS
from edgefl.engine.air.extent import Extent
from edgefl.engine.air.gains import SpatialGains
from edgefl.engine.air.layout import LayoutSettings
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.churn.always_on import AlwaysOn
from edgefl.engine.federation.plan import LINKS_AT_ONCE
from edgefl.engine.selectors import CountedSelector
from edgefl.engine.selectors.all import All
from edgefl.engine.settings import DeviceSettings, RoundSettings
from edgefl.learning.memory import KEPT_FREE, LARGEST_REUSED, Need, available_bytes, require
from edgefl.mobility.static import Static
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World

DEVICE_BYTES = 300  # bytes of the objects and arrays of a device; measured 330 to 360
CELL_BYTES = 12  # bytes per device and cell: time since a neighbour is stronger (8), and measured power (4)
REUSED_WEIGHTS = 20  # FLOPs per sample and parameter above which convolutions keep freed memory
STEP_BYTES = 20  # bytes per device and local step: sample and weight of a batch of one (12), and its size (8)
NUMBER_BYTES = 4  # bytes of a number in a model
LEAST_PART_BYTES = (
    2_500  # lower bound of the bytes that a participant's link, part and row of devices.csv take
)
PART_BYTES = 3_400  # the same, measured
RENEWAL_BYTES = 27_000  # bytes of a link, measured, if transfers are too long to be drawn slot by slot
EFFICIENCY = 3.0  # bit/s/Hz of an average link
PAGES_BYTES = 2 * 2 * 8  # bytes per link and slot of a block, for two pages of real and imaginary parts
POWERS_BYTES = 2 * 8 * PAGE  # bytes per link with several parts of the band: two pages of their mean power


def check(needs: Sequence[Need]) -> None:
    """Check that this machine has enough memory for a run's needs.

    Raises:
        EdgeflError: the needs exceed the available memory.
    """
    require(needs, available_bytes())


def of_world(scenario: Scenario) -> list[Need]:
    """Return the memory needs of a scenario's devices, of their measurements and rounds, and of its data sets."""
    key, count = _least_devices(scenario.devices, scenario.extent)
    needs = [Need(("devices", key), DEVICE_BYTES * count, f"{count:,.0f} devices")]
    if scenario.layout.several:
        cells = scenario.layout.cells
        what = f"{count:,.0f} devices that measure {cells} cells"
        needs.append(Need(("devices", key), CELL_BYTES * cells * count, what))
    for one in scenario.by_federation.values():
        own = scenario.members(one, int(count))
        place, together = _least_participants(one.rounds, scenario.devices, scenario.layout, own or 1)
        if together > 1:
            size = _least_round_bytes(scenario.radio, one.rounds, together)
            needs.append(Need(one.place(*place), size, f"a round of {together:,} devices"))
        if one.learning is not None:
            bytes_ = one.learning.dataset.least_bytes()
            needs.append(Need(one.place("learning", "dataset"), bytes_, "the data set"))
    return needs


def of_first_round(world: World, learner: Any) -> float:
    """Estimate the memory, in bytes, that a federation's first round adds to a run's memory at its start."""
    numbers = learner.parameters if world.sections.learning else 0
    rounds, devices = world.sections.rounds, world.members_count
    _, together = _least_participants(rounds, world.devices, world.layout, devices)
    if isinstance(rounds.selector, CountedSelector):
        together = min(rounds.selector.count, devices)
    of_round = _expected_round_bytes(world.extent.radio, together, learner.payload_bits)
    training = sum(need.size for need in of_training(world, numbers)) if numbers else 0.0
    reused = numbers and learner.flops_per_sample > REUSED_WEIGHTS * numbers
    kept = KEPT_FREE + LARGEST_REUSED if reused else 0
    return of_round + training + kept


def of_places(world: World) -> list[Need]:
    """Return the memory for maps of line of sight and shadowing, a few bytes per site and square metre.

    Both maps are drawn at the first measurement; the result includes the memory for drawing.
    """
    gains = world.gains
    if not isinstance(gains, SpatialGains):
        return []
    fields = {one.fields.layers: one.fields for one in gains.large_scales}.values()  # heights share these
    sites, devices = len(world.sites_m), len(world.fleet)
    what = (
        f"line of sight and shadowing of {sites} sites over a radius of {world.extent.field_radius_m:,.0f} m"
    )
    return [Need(("layout",), sum(one.needed_bytes(devices) for one in fields), what)]


def of_training(world: World, numbers: int) -> list[Need]:
    """Return the memory needed for the models and mini-batches of a federation's round.

    Args:
        numbers: how many parameters and statistics a model has.
    """
    sections, learning = world.sections, world.sections.learning
    if learning is None:
        return []
    place, training = _least_participants(sections.rounds, world.devices, world.layout, world.members_count)
    # the module and the global model exist besides the local models
    sent = len(world.served) if sections.cloud is not None else 0
    copies = training * (1 + learning.algorithm.trains_personal + learning.copies_in_transfers) + 2 + sent
    models = f"{copies} models of {numbers:,} parameters"
    steps = learning.local.most
    batches = f"the batches of {training:,} devices for {steps:,} steps"
    return [
        Need(place or ("learning", "model"), NUMBER_BYTES * copies * numbers, models),
        Need(
            ("learning", "local", "epochs" if learning.local.epochs else "steps"),
            STEP_BYTES * steps * training,
            batches,
        ),
    ]


def _least_devices(devices: DeviceSettings, extent: Extent) -> tuple[str, float]:
    """Return the key that sets the number of devices, and a lower bound on this number that nearly always holds."""
    if devices.count is not None:
        return "count", devices.number or 1
    inner_m, outer_m = extent.kept_free_m, extent.area_radius_m
    density = devices.density_per_km2 or 0.0
    mean = density * math.pi * max(0.0, outer_m**2 - inner_m**2) / 1e6
    return "density_per_km2", max(0.0, mean - 6 * math.sqrt(mean))  # lower bound of a Poisson number


def _least_participants(
    rounds: RoundSettings, settings: DeviceSettings, layout: LayoutSettings, devices: int
) -> tuple[tuple[str, ...], int]:
    """Return the key that sets the first round's number of participants, and this number, or 1 if unknown."""
    selector = rounds.selector
    all_there = (
        all(
            isinstance(kind.mobility, Static)
            and isinstance(kind.churn, AlwaysOn)
            and kind.battery_j is None
            and kind.file is None
            for kind in settings.kinds()
        )
        and not layout.several
    )
    if all_there and isinstance(selector, All):
        return ("devices", "density_per_km2" if settings.count is None else "count"), devices
    if all_there and isinstance(selector, CountedSelector):
        return ("rounds", "selector", "count"), min(selector.count, devices)
    return (), 1


def _least_round_bytes(radio: RadioSettings, rounds: RoundSettings, participants: int) -> float:
    """Return the minimum memory of a round in bytes; without slot-by-slot transfers, no fading is drawn."""
    links = 0 if radio.sharing == "static" and radio.fidelity != "slot" else participants
    if radio.sharing == "static" and rounds.deadline_s is None:
        links = min(links, LINKS_AT_ONCE)
    return LEAST_PART_BYTES * participants + _fading_bytes(radio) * links


def _expected_round_bytes(radio: RadioSettings, participants: int, bits: float) -> float:
    """Estimate the memory of a round, given the size of its transfers."""
    slots = participants * bits / (EFFICIENCY * radio.bandwidth_hz * radio.slot_s)
    drawn = radio.sharing == "dynamic" or radio.fidelity == "slot" or slots < AUTO_SLOTS
    read = drawn and radio.fidelity != "renewal"
    of_link = 2 * _fading_bytes(radio) if read else RENEWAL_BYTES
    return PART_BYTES * participants + of_link * min(participants, LINKS_AT_ONCE)


def _fading_bytes(radio: RadioSettings) -> int:
    """Return the memory in bytes that a link's fading occupies after the first read."""
    return PAGES_BYTES * radio.fading_block if radio.link.frequency_taps == 1 else POWERS_BYTES

"""Check before a run whether devices enter the cells and come within range of a site."""

import math
from collections.abc import Iterator

import numpy as np

from edgefl.channel.geometry import within
from edgefl.config.clock import HOURS, shown
from edgefl.engine.air.gains import SpatialGains
from edgefl.engine.air.layout import LARGEST_M
from edgefl.engine.cells.network import Network
from edgefl.errors import EdgeflError
from edgefl.mobility import Mobility, Movement, closest_m, ends_s, still_until_s
from edgefl.mobility._together import parts_of
from edgefl.mobility.trace import Trace
from edgefl.scenario.world import World

MOST_PLACES = 2_000_000  # number of devices x number of times checked
FEWEST_TIMES, MOST_TIMES = 50, 1_000
DAY_S = 86_400.0  # longest time for which a mobility model is checked; a trace file is checked to its end
# number of times at which all devices are checked, and the factor by which it rises if a device was never in range
LOOKS, CLOSER_LOOKS = 200, 20
MOST_LINKS = 5_000_000  # maximum number of links examined to find cells that no device visits
MOST_NAMED = 20  # maximum number of cells that a note names
# share of a run that traces may leave out without a note: their last sample is an interval before the end
SHORT_OF_END = 0.05
MOST_RESTS = 1_000  # maximum number of rests after which devices are assumed to move
UNKNOWN_END_S = 3600.0  # time that is checked if the run's end is unknown


def in_cells(world: World, network: Network) -> Iterator[str]:
    """If the cells are empty at time 0, look for devices in them until the run's end.

    Without duration_s, a run ends if no device has come for max_wait_s. Switches and batteries are ignored.

    Yields:
        A note if no device is seen in a cell, with the devices' places and the remedy. A device may still enter a
        cell between two of the checked times, or later.

    Raises:
        EdgeflError: recorded paths show that no device enters a cell during the run.
    """
    own, edge_m = world.sections, world.extent.edge_m
    if network.still or any(network.present(cell) for cell in range(world.layout.cells)):
        return
    ends_s = own.duration_s or own.rounds.max_wait_s
    recorded = any(mobility.own_numbers for _, mobility in world.devices.mobilities())
    until_s = ends_s if recorded else min(ends_s, DAY_S)
    times_s = np.linspace(0.0, until_s, int(np.clip(MOST_PLACES // world.count, FEWEST_TIMES, MOST_TIMES)))
    nearest_m, middle_m = _seen(world.movement, times_s, edge_m)
    if nearest_m <= edge_m:
        return
    place, mobility = world.devices.mobilities()[0]
    least_m = closest_m(world.movement, ends_s)
    never = least_m > edge_m
    if nearest_m == math.inf:
        remedy = "make the run longer (duration_s)"
        if times := getattr(world.movement, "times", ""):
            remedy = f"{times}; begin at a time with samples (mobility.begin_s), or leave begin_s out"
        message = f"no device is in the world in the first {until_s:,.0f} s: {remedy}"
    elif never and closest_m(world.movement, math.inf) <= edge_m:
        longer = "make the run longer (duration_s)" if own.duration_s else "raise rounds.max_wait_s"
        message = f"no device enters a cell in the first {ends_s:,.0f} s: begin later (mobility.begin_s), or {longer}"
    else:
        apart_m = least_m if never else nearest_m
        message = (
            f"no device comes nearer than {apart_m:,.0f} m to [0, 0] in the first {until_s:,.0f} s, but the cells"
            f" reach only {edge_m:,.0f} m; a device passes {_point(middle_m)} m: {_remedy(world, mobility, middle_m)}"
        )
    if never:  # notes on the file, such as wrong units or skipped rows, may name the cause
        raise EdgeflError("; ".join([message, *dict.fromkeys(world.places.notes)]), place)
    yield f"{'.'.join(place)}: checked at {len(times_s):,} times: {message}"


def beyond_traces(world: World) -> Iterator[str]:
    """Yield a note if the devices' traces end before the run, since no device is present from then on."""
    last_s, until_s = ends_s(world.movement), world.sections.known_end_s
    if last_s < (1 - SHORT_OF_END) * until_s:
        then = ", but idle power still counts" if world.fleet.idle_power_w.any() else ""
        if world.sections.duration_s is None:
            then = ", and a run without duration_s cannot go on without devices"
        shorter = (
            f"set duration_s to at most {last_s:.6g}, or " if last_s else ""
        )  # a trace may be one instant
        yield (
            f"devices.mobility: the trace ends at {last_s:,.6g} s of {until_s:,.6g} s: from then on no device is"
            f" present{then}; {shorter}use a longer trace"
        )


def unmoving(world: World, simulated_s: float = math.inf) -> Iterator[str]:
    """Yield a note on devices that stay at their first places until the run's end, although they are set to move."""
    end_s = min(simulated_s, world.sections.latest_end_s)
    for count, movement in parts_of(world.movement, world.count):
        time_s = first_move_s(movement, end_s)
        if not (movement.moves and count and time_s >= end_s):
            continue
        many = (
            "no device moves" if count == world.count else f"{count:,} of {world.count:,} devices do not move"
        )
        until = "ever" if time_s == math.inf else f"before {time_s:,.6g} s"
        hours = _hours(world, end_s)
        longer = "raise duration_s" if world.sections.duration_s else "make the run longer"
        yield (
            f"devices.mobility: {many} {until}, and the run ends at {end_s:,.6g} s:"
            f" {hours}{longer}; if that is intended, use static"
        )


def _hours(world: World, end_s: float) -> str:
    """Return the hours of the day that a run without trips covers, and the remedy; '' without a time of day."""
    for _, mobility in world.devices.mobilities():
        if (begin_hour := getattr(mobility, "begin_hour", None)) is not None:
            hours = HOURS * end_s / getattr(mobility, "day_s", DAY_S)
            begin, end = shown(begin_hour), shown((begin_hour + hours) % HOURS)
            if hours >= HOURS or begin == end:  # several days, or less than a second
                return "set begin_hour, or "
            return f"no trip begins between {begin} and {end}; set begin_hour, or "
    return ""


def first_move_s(movement: Movement, end_s: float) -> float:
    """Return the time of the first move, or an earlier time if the first move comes before end_s."""
    time_s = 0.0
    for _ in range(MOST_RESTS):
        until_s = still_until_s(movement, time_s)
        if until_s >= end_s or until_s <= time_s:
            return until_s
        time_s = until_s
    return time_s


def of_recordings(world: World) -> Iterator[str]:
    """Yield notes on recorded load or rates that end before the run, as far as the run's end is known."""
    yield from short_recordings(world, world.sections.known_end_s)


def short_recordings(world: World, until_s: float, *, told_s: float = 0.0) -> Iterator[str]:
    """Yield notes on recorded load or rates that end before a given time, but not before `told_s`."""
    background = world.extent.radio.background
    for ended_s, of, last, file in (
        (background.ends_s if background else None, "background: its trace ends", "load", "trace"),
        (
            world.measured.ends_s if world.measured else None,
            "measured: a device's rates end",
            "rate",
            "table",
        ),
    ):
        if ended_s is not None and told_s <= ended_s < until_s:
            yield (
                f"radio.{of} at {ended_s:,.6g} s, before the run ends: from then on the last {last} stays in force;"
                f" add rows to the {file}"
            )


def never_served(world: World) -> Iterator[str]:
    """Look for moving devices in each cell with a server, over the longest wait of a run without a duration.

    Handovers in progress, switches and batteries are ignored; a device may enter a cell between two checks.

    Yields:
        A note on cells in which no device is seen, so that their servers cannot continue.
    """
    gains, cells = world.gains, set(world.served)
    own = world.sections
    waits = own.duration_s is None and world.movement.moves and world.layout.several
    if not (waits and isinstance(gains, SpatialGains)):
        return
    until_s = min(own.latest_end_s, own.rounds.max_wait_s)
    looks = int(np.clip(MOST_LINKS // (world.count * world.layout.cells), 2, LOOKS))
    for time_s in np.linspace(0.0, until_s, looks).tolist():
        positions_m = world.movement.positions_m(time_s)
        inside = np.flatnonzero(within(positions_m, world.extent.edge_m))
        if len(inside):
            cells -= {*gains.power_db_of(positions_m[inside], inside).argmax(axis=1).tolist()}
        if not cells:
            return
    if len(cells) < len(world.served):
        kept = [cell for cell in world.served if cell not in cells]
        named = f"cell{'s' * (len(cells) > 1)} {', '.join(map(str, sorted(cells)))}"
        yield (
            f"layout.federations: no device is seen in {named}"
            f" at {looks} times in the first {until_s:,.0f} s; a server there waits for rounds.max_wait_s,"
            f" {own.rounds.max_wait_s:g} s, and the run fails if no server can continue: give servers only to the"
            f" other cells{f', {kept},' * (len(kept) <= MOST_NAMED)} or set duration_s"
        )


def _seen(movement: Movement, times_s: np.ndarray, edge_m: float) -> tuple[float, np.ndarray]:
    """Return the devices' smallest distance from [0, 0] at given times, and the place nearest to the median, in m.

    The distance is inf if no device is in the world. Later times are skipped once a device is inside the edge.
    """
    nearest_m, seen_m = math.inf, []
    for time_s in times_s.tolist():
        places_m = movement.positions_m(time_s)
        seen_m.append(places_m[~np.isnan(places_m[:, 0])])
        nearest_m = min(nearest_m, float(np.hypot(*seen_m[-1].T).min(initial=math.inf)))
        if nearest_m <= edge_m:
            break
    all_m = np.concatenate(seen_m)
    if not len(all_m):
        return nearest_m, np.zeros(2)
    middle_m: np.ndarray = all_m[np.hypot(*(all_m - np.median(all_m, axis=0)).T).argmin()]
    return nearest_m, middle_m


def _point(place: np.ndarray) -> str:
    return f"[{', '.join(f'{value:.0f}' for value in place)}]"


def _remedy(world: World, mobility: Mobility, place_m: np.ndarray) -> str:
    """Suggest sites at a place, or settings of a trace that move this place to [0, 0]."""
    told = ["put sites there (layout.sites)"] * bool(np.abs(place_m).max() <= LARGEST_M)
    if isinstance(mobility, Trace):
        told.append(f"set devices.mobility.origin_m: {_point(np.add(mobility.origin_m, place_m))}")
        if world.scenario.origin_lon_lat is None:  # degrees have no other unit
            units = (
                "set devices.mobility.scale and time_scale if x and y are not in metres, or t not in seconds"
            )
            told.append(units)
    return ", or ".join(told)


def in_range(world: World) -> Iterator[str]:
    """Yield a note on devices that are out of range of all sites for part of the time.

    Raises:
        EdgeflError: a device never has a site in range; the message names the layout's key and the remedy.
    """
    gains = world.gains
    if not (world.layout.several and isinstance(gains, SpatialGains) and gains.range_m < math.inf):
        return
    end_s = world.sections.latest_end_s
    known = end_s < math.inf
    looks = LOOKS if world.movement.moves else 0
    here, reached = _looks(world, gains, end_s if known else UNKNOWN_END_S, looks)
    if known and looks and (here > reached).any() and not reached[here > 0].all():
        here, reached = _looks(world, gains, end_s, LOOKS * CLOSER_LOOKS)
    farther = f"farther than {gains.range_m:,.0f} m, the range of the path loss, from every site"
    never = np.flatnonzero((here > 0) & (reached == 0))
    if len(never) and (known or not looks):
        others = f" (and {len(never) - 1:,} more)" if len(never) > 1 else ""
        raise EdgeflError(
            f"device {never[0]}{others} is {farther} on its whole path: add sites near such devices, make the world"
            " smaller (layout.radius_m), or keep devices nearer to sites",
            ("layout", "sites" if world.layout.sites is not None else "isd_m"),
        )
    partly = np.count_nonzero(here > reached)
    if partly:
        yield (
            f"layout: {partly:,} of {world.count:,} devices are {farther} on part of their path"
            f" ({100 * (1 - reached.sum() / here.sum()):.1f} % of all devices' time), and absent there;"
            " add sites near it"
        )


def beyond_edge(world: World) -> Iterator[str]:
    """Yield a note on devices that files or areas place beyond the edge of a world with several cells.

    Positions are checked at several times. With a single cell, devices are meant to come and go.
    """
    layout, edge_m, end_s = world.layout, world.extent.edge_m, world.sections.latest_end_s
    moved = any(mobility.recorded or mobility.goes_anywhere for _, mobility in world.devices.mobilities())
    if not (layout.several and moved):
        return
    looks = int(np.clip(MOST_PLACES // world.count, 2, LOOKS)) if world.movement.moves else 1
    here, outside = np.zeros((2, world.count), dtype=int)
    for time_s in np.linspace(0.0, end_s if end_s < math.inf else UNKNOWN_END_S, looks).tolist():
        positions_m = world.movement.positions_m(time_s)
        present = ~np.isnan(positions_m[:, 0])
        here += present
        outside += present & ~within(positions_m, edge_m)
    if outside.any():
        key = "radius_m" if layout.sites is not None else "rings"
        factor = edge_m / world.extent.radius_m
        edge = f"{edge_m:,.0f} m{f' (area_factor {factor:.3g} x layout.{key})' * (factor > 1.001)}"
        yield (
            f"layout.{key}: {np.count_nonzero(outside):,} of {world.count:,} devices are farther than {edge}"
            f" from [0, 0] {'on part of their path' if world.movement.moves else 'at their place'}"
            f" ({100 * outside.sum() / here.sum():.1f} % of all devices' time), and absent there; raise"
            f" layout.{key} or a trace's area_factor, or move the places, to keep them"
        )


def never_inside(world: World) -> Iterator[str]:
    """Yield a note on recorded devices that are in no cell whenever they are looked for, since none takes part."""
    end_s, moved = world.sections.latest_end_s, world.devices.mobilities()
    if end_s == math.inf or not world.movement.moves or not any(mobility.recorded for _, mobility in moved):
        return
    inside = np.zeros(world.count, dtype=bool)
    times_s = np.linspace(0.0, end_s, int(np.clip(MOST_PLACES // world.count, FEWEST_TIMES, MOST_TIMES)))
    for time_s in times_s.tolist():
        inside |= within(world.movement.positions_m(time_s), world.extent.edge_m)
        if inside.all():  # usually at time 0
            return
    never = np.flatnonzero(~inside)
    ids = f"{', '.join(map(str, never[:3]))}{', ...' * (len(never) > 3)}"
    yield (
        f"devices: {len(never):,} of {world.count:,} devices are in no cell at {len(times_s):,} times of the run"
        f" (device{'s' * (len(never) > 1)} {ids}), and so train no model: compare the times and places of"
        " devices.mobility with the cells"
    )


def _looks(world: World, gains: SpatialGains, end_s: float, looks: int) -> tuple[np.ndarray, np.ndarray]:
    """Count at how many times each device is in the world, and in range of a site; both [devices]."""
    here = np.zeros(world.count, dtype=int)
    reached = np.zeros(world.count, dtype=int)
    for time_s in np.linspace(0.0, end_s, looks + 1).tolist():
        positions_m = world.movement.positions_m(time_s)
        inside = np.flatnonzero(within(positions_m, world.extent.edge_m))
        here[inside] += 1
        reached[inside] += gains.reached(positions_m[inside])
        if looks > LOOKS and here.all() and reached.all():
            break
    return here, reached

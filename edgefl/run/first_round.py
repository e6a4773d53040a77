"""Open the first round before the run begins: check that devices are present, and estimate the round's length."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from edgefl.channel.many_links import static_power
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.engine.air.access import lead_of
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.coverage import remedies
from edgefl.engine.air.links import DIRECTIONS, Links
from edgefl.engine.air.many_transfers import sure_to_end, time_transfers
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.devices.fleet import Fleet
from edgefl.engine.federation.device import Processors
from edgefl.engine.federation.rounds import Rounds
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.federation.untrained import Untrained
from edgefl.engine.sessions import TimedPolicy
from edgefl.engine.settings import RoundSettings
from edgefl.errors import EdgeflError, refused
from edgefl.learning.federation.round_work import RoundWork
from edgefl.rng import Streams
from edgefl.run.composition import rounds_of
from edgefl.scenario.own_sections import OwnSections
from edgefl.scenario.world import World

MANY_ROUNDS = 100_000  # without pauses, this many rounds simulate about a day and take hours of wall time
SHORTEST_ROUND_S = 1e-9
SLOWEST = 4  # number of a cell's slowest links that are timed in each direction
DEEP_FADE = 1e-4  # power relative to the mean; one slot in 10,000 has less
Members = Callable[
    [int], Collection[int] | None
]  # session -> the only devices that may take part, or None for all
LONGEST_S = 1e9  # some 30 years; a device that computes longer in a round must be a mistake


class _Lengths(NamedTuple):
    """Times, s, of a round at the links' mean SNR, without waiting for DRX cycles.

    first_s: time of the fastest device in round 1, in which devices connect. later_s, slowest_s: times of the fastest
    and slowest device in later rounds, in which devices are still connected unless the pause was too long.
    """

    first_s: float
    later_s: float
    slowest_s: float


def check(world: World, simulation: Simulation, learners: Mapping[Any, Any]) -> list[str]:
    """Open round 1 of every federation that has devices at time 0, and time its slowest transfers.

    The opened round is exactly the run's round 1, since random streams are identified by name, not by order of use.
    However, devices of different tiers, which have separate first rounds in the run, share one round here.

    Returns:
        Notes on very short rounds, on very many rounds, and on cells that no device ever reaches.
    """
    own, members, network = world.sections, world.members, simulation.network
    empty, out, lengths = list[str](), list[str](), list[_Lengths]()
    if network.still:
        present_in = {cell: network.present(cell) for cell in learners}
        out_in = {cell: network.out_of_coverage(cell) or () for cell in learners}
        _check_somebody_is_there(world, present_in, out_in)
    for cell, learner in learners.items():
        present = _allowed(members, 1, network.present(cell))
        if network.still and not present:
            (out if _allowed(members, 1, out_in[cell]) else empty).append(str(cell))
        if present:
            rounds = rounds_of(simulation, cell, learner, world)
            lengths += [_check_first_round(world, rounds, present, learner)]
    notes = _notes_of_lengths(own, lengths)
    leave_out = (
        "leave these cells out of layout.federations, so that the run does not wait rounds.max_wait_s for devices"
        " there"
    )
    if empty:
        notes.append(
            f"no device is in {_cells(empty)}, and none will ever enter, because devices do not move; {leave_out}"
        )
    if out:
        reach = remedies(world.layout, world.fleet)
        notes.append(
            f"all devices in {_cells(out)} are out of coverage, and do not move; {reach} reach more devices, or"
            f" {leave_out}"
        )
    return notes


def _cells(numbers: Sequence[str]) -> str:
    return f"cell{'s' * (len(numbers) > 1)} {', '.join(numbers)}"


def _check_somebody_is_there(
    world: World, present: Mapping[int, Sequence[int]], out: Mapping[int, Sequence[int]]
) -> None:
    """Refuse a run that cannot have a result, because no device of a session is ever in a cell and has a link.

    Args:
        present, out: the devices in each cell with a link, and without one.
    """
    devices, members, sessions = world.devices, world.members, world.sections.sessions.count
    listed = getattr(devices.churn, "sessions", ())
    groups = max(len(listed), min(devices.populations, sessions or devices.populations))
    for session in range(1, 1 + max(1, groups)):
        if any(_allowed(members, session, ids) for ids in present.values()):
            continue
        place = ("churn", "sessions", str(session - 1)) if listed else ()
        if lost := sum(len(_allowed(members, session, ids)) for ids in out.values()):
            which, have = (f"all {lost:,} devices", "have") if lost > 1 else ("the only device", "has")
            raise EdgeflError(
                f"{which} of session {session} in cells with a server {have} no link, and devices do not move:"
                f" {remedies(world.layout, world.fleet)} reach more devices",
                ("devices", *place),
            )
        raise EdgeflError(
            f"no device of session {session} is in a cell with a server, and none will ever enter one, "
            "because devices do not move; use more devices, or a mobility model",
            ("devices", *place),
        )


def _allowed(members: Members, session: int, present: Sequence[int]) -> list[int]:
    """Return the present devices that may take part in a session."""
    allowed = members(session)
    return [id_ for id_ in present if allowed is None or id_ in allowed]


def _check_first_round(world: World, rounds: Rounds, present: Sequence[int], learner: Any) -> _Lengths:
    """Return the lengths of a cell's first round and of later rounds with the same participants."""
    own, radio, payload_bits = world.sections, rounds.simulation.radio, learner.payload_bits
    phase, section = ("train", "workload") if own.learning is None else ("pilot", "learning.cost")
    task = own.learning.local if own.learning else own.workload
    assert task is not None  # the schema requires a workload or learning
    with refused("radio"):
        # a selector sees the same work for all devices; a learner tells it only when its session has begun
        stage = Untrained(payload_bits=payload_bits, flops_per_sample=0.0, steps=task.steps, batch=task.batch)
        room = rounds.places(own.rounds.server, len(present))
        selection = rounds.choose((1, phase, 1), present, 0, room, stage)
        many = len(selection.ids)
        down_bits, up_bits = [payload_bits] * many, [payload_bits + rounds.reports.bits] * many
        opened = rounds.open(selection, down_bits, up_bits)
        rows = opened.in_sync()
        links = opened.links.at(rows)  # leave out links that carry no bits, which would fail
        samples = _samples(world, learner, selection.ids)
        computes_s = _computes_s(
            max(samples.values(), default=0), rounds.simulation.fleet, rounds.processors, section
        )
        both_bits = payload_bits, payload_bits + rounds.reports.bits
        if not radio.air.dynamic and len(links):  # otherwise transfers depend on each other
            _check_slowest(radio.air, links, *both_bits, max(computes_s))
    if not len(links):
        return _Lengths(math.inf, math.inf, max(computes_s))
    compute_s = np.array([rounds.processors.cost(id_, samples[id_])[0] for id_ in links.devices])
    lasts_s = compute_s.copy()
    for direction, bits in zip(DIRECTIONS, both_bits, strict=True):
        lasts_s += _transfers_s(radio.air, links, direction, bits)
    access = partial(_access_s, rounds, opened, rows)
    up_s = access("uplink", both_bits[1], compute_s)
    first_s, later_s = (
        access("downlink", both_bits[0], np.full(len(links), silent_s)) + lasts_s + up_s
        for silent_s in (math.inf, _shortest_pause_s(own.rounds))
    )
    return _Lengths(float(first_s.min()), float(later_s.min()), float(later_s.max()))


def _shortest_pause_s(rules: RoundSettings) -> float:
    """Return the shortest time, s, for which devices are silent between two rounds."""
    if rules.every_s is None or rules.deadline_s is None:
        return rules.pause_s
    return max(rules.pause_s, rules.every_s - rules.deadline_s)


def _access_s(
    rounds: Rounds,
    opened: RadioRound,
    rows: Sequence[int],
    direction: Direction,
    bits: int,
    silent_s: FloatArray,
) -> FloatArray:
    """Return each link's shortest access time, s [rows], after a silence of at least silent_s [rows]."""
    air, devices = opened.air, rounds.simulation.devices
    if air.settings.access is None:
        return np.zeros(len(rows))
    rates = [None] * len(rows)
    if direction == "uplink" or opened.broadcast is None:
        rates = opened.rates_bit_s[direction][rows].tolist()
    slots = []
    for row, least_s, rate in zip(rows, silent_s.tolist(), rates, strict=True):
        connection = devices[opened.links.devices[row]].draws.connection
        # unless released, a device may happen to listen in its DRX cycle
        since_s = least_s if least_s >= connection.release_s else 0.0
        lead = lead_of(air.settings.access, air.slot_s, direction, bits, since_s, connection, rate)
        slots.append(lead.slots)
    access_s = np.array(slots) * np.float64(air.slot_s)
    broadcast = rates[0] is None  # a broadcast waits for all devices
    return np.full(len(rows), access_s.max()) if broadcast else access_s


def _transfers_s(air: AirInterface, links: Links, direction: Direction, bits: int) -> FloatArray:
    """Estimate each link's transfer time, s [links]; assume that each link has a dynamic band to itself."""
    share = 1.0 if air.dynamic else links.share[direction]
    taken_s = air.carriers[direction].seconds(bits, share, links.snr[direction], static=True)
    return np.asarray(np.ceil(taken_s / air.slot_s) * air.slot_s)


def _notes_of_lengths(own: OwnSections, lengths: Sequence[_Lengths]) -> list[str]:
    """Note rounds too short for any update, and runs of more than MANY_ROUNDS rounds."""
    if not lengths:
        return []
    notes, rules, end_s = [], own.rounds, own.latest_end_s
    first_s, later_s, round_s = map(min, zip(*lengths, strict=True))
    if rules.deadline_s is not None and rules.deadline_s < later_s:
        later = f", in which it connects, and {later_s:.3g} s in later rounds" if later_s < first_s else ""
        notes.append(
            f"rounds.deadline_s {rules.deadline_s:g}: almost no update can arrive in time; the fastest device of"
            f" the first round needs about {first_s:.3g} s{later}"
        )
    many = end_s / max(round_s, SHORTEST_ROUND_S)
    at_once = rules.every_s is None and not rules.pause_s
    if at_once and isinstance(own.sessions, TimedPolicy) and many > MANY_ROUNDS:
        notes.append(
            f"rounds follow each other without a pause for {end_s:,.0f} s: about {many:,.0f} rounds "
            f"of {round_s:.2g} s each; set rounds.every_s or rounds.pause_s"
        )
    return notes


def _check_slowest(air: AirInterface, links: Links, down_bits: int, up_bits: int, compute_s: float) -> None:
    """Check that a round's slowest transfers end, since then all end; timing all transfers could take seconds."""
    # without Doppler, a link keeps the power of its first slot
    static, power = static_power(links.fading)
    faded = np.where(static, power, DEEP_FADE)
    for direction, bits, from_s in zip(DIRECTIONS, (down_bits, up_bits), (0.0, compute_s), strict=True):
        if sure_to_end(air, links, direction, bits, faded):
            continue
        rate = links.share[direction] * np.log1p(links.snr[direction] * power)
        slowest = links.at(np.argsort(rate)[:SLOWEST].tolist())
        many = len(slowest)
        time_transfers(air, slowest, direction, [bits] * many, np.full(many, from_s))


def _samples(world: World, learner: Any, ids: Sequence[int]) -> dict[int, int]:
    """Return the number of samples that each device is expected to process in a round of session 1."""
    workload, learning = world.sections.workload, world.sections.learning
    if learning is None:
        assert workload is not None  # the schema requires a workload or learning
        return dict.fromkeys(ids, workload.steps * workload.batch)
    numbers = list(ids) if world.only is None else np.searchsorted(sorted(world.only), ids).tolist()
    sizes = learner.device_data.sizes(numbers)
    work = RoundWork(learning.local, learning.algorithm, learning.cost.booked, Streams(0), 0, 0, 1)
    expected = work.expected(ids, [sizes[number] for number in numbers], (0, 0))
    return dict(zip(ids, expected.samples, strict=True))


def _computes_s(work: int, fleet: Fleet, processors: Processors, section: str) -> list[float]:
    """Return the time, s, in which a device of each class computes `work` samples."""
    try:
        # examine one device of each class
        _, firsts = np.unique(fleet.of, return_index=True)
        costs = [processors.cost(device, work) for device in firsts.tolist()]
        times_s = [cost[0] for cost in costs]
        time_s, energy_j = max(times_s), max(cost[1] for cost in costs)
    except (ValueError, OverflowError) as error:
        raise EdgeflError(str(error), (*section.split("."), "flops_per_sample")) from error
    if not (time_s <= LONGEST_S and np.isfinite(energy_j)):
        raise EdgeflError(
            f"a device spends {time_s:g} s and {energy_j:g} J on computing in a round: lower"
            " flops_per_sample, steps, epochs or batch, or raise devices.clock_hz or devices.flops_per_cycle",
            (*section.split("."), "flops_per_sample"),
        )
    return times_s

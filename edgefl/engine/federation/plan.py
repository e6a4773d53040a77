"""Compute all parts of an undisturbed round at once, as a fast path of `Device.take_part`.

A round's times are known at its start if shares are static, or if a dynamic band has no other users: fading
determines how long transfers take, and samples determine how long computing takes. If no device moves, switches on or
off, or has a battery, and there is no deadline, parts and tails equal those of the devices' processes bit for bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from edgefl.channel.energy import transfer_energy_j
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.engine.air.access import lead_of
from edgefl.engine.air.links import Transfers
from edgefl.engine.air.many_transfers import time_in_band
from edgefl.engine.air.radio_round import Link, RadioRound
from edgefl.engine.federation.device import Processors
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.parts import NO_ACCESS, Access, Activity, DeviceTask, Outcome, Part, Span

# maximum number of links with fading in memory; at most 64 kB each, 1 GB in all
LINKS_AT_ONCE = 16_384


@dataclass(frozen=True)
class _Moved:
    """Completed transfers [n], the times at which their radios were switched on, and any access before them."""

    done: Transfers
    on_s: FloatArray
    accesses: list[Access]


def planned_parts(
    simulation: Simulation, opened: RadioRound, tasks: Sequence[DeviceTask], processors: Processors
) -> tuple[list[Part], float]:
    """Compute the parts of devices that begin now, in the order of their links, and the last part's end time.

    Large rounds are computed in batches, and the fading of each batch is freed after use.
    """
    many, parts, end_s = len(opened.links), list[Part](), 0.0
    at_once = many if opened.air.dynamic else LINKS_AT_ONCE  # links of a dynamic band depend on each other
    for begin in range(0, many, at_once):
        rows = range(begin, min(begin + at_once, many))
        some = opened if len(rows) == many else replace(opened, links=opened.links.at(rows))
        own, own_end_s = _planned(simulation, some, tasks[begin : rows.stop], processors)
        parts, end_s = parts + own, max(end_s, own_end_s)
        if many > at_once:
            for fading in some.links.fading:
                fading.forget()
    return parts, end_s


def _planned(
    simulation: Simulation, opened: RadioRound, tasks: Sequence[DeviceTask], processors: Processors
) -> tuple[list[Part], float]:
    """Compute the parts of a batch of devices."""
    links = opened.links
    devices = [simulation.devices[id_] for id_ in links.devices]
    down_bits, up_bits = [task.down_bits for task in tasks], [task.up_bits for task in tasks]
    costs = [
        processors.cost(id_, task.samples, task.clock_hz)
        for id_, task in zip(links.devices, tasks, strict=True)
    ]
    compute_s, compute_j = np.array(costs).T
    compute_s = compute_s * np.array([task.slowness for task in tasks])
    down = _moved(simulation, opened, "downlink", down_bits, np.full(len(links), simulation.env.now))
    computed_s = down.done.clock_s + compute_s
    up = _moved(simulation, opened, "uplink", up_bits, computed_s, (down, down_bits))
    receive_w = np.array([device.draws.receive_w for device in devices])
    power, wait_w = up.done.power, np.array([device.draws.wait_w for device in devices])
    radiated = (links.uplink_power if power is None else power).tolist()
    send_w = np.array([device.send_power_w(share) for device, share in zip(devices, radiated, strict=True)])
    receive_j_bit = np.array([device.draws.receive_j_bit for device in devices])
    send_j_bit = np.array([device.draws.send_j_bit for device in devices])
    _tails(simulation, links.devices, (down, down_bits), (up, up_bits))
    parts = map(
        Part,
        links.devices,
        repeat(Outcome.COMPLETED),
        [task.iterations for task in tasks],
        _transfers(down, (receive_w, receive_w), down_bits, receive_j_bit, wait_w),
        map(Span, down.done.clock_s.tolist(), computed_s.tolist(), compute_j.tolist()),
        _transfers(up, (send_w, send_w if power is None else wait_w), up_bits, send_j_bit, wait_w),
    )
    received = list(parts)
    if opened.packet_errors is not None or not all(task.usable for task in tasks):
        received = [
            _received(link, part, task) for link, part, task in zip(opened, received, tasks, strict=True)
        ]
    return received, float(up.done.clock_s.max())


def _received(link: Link, part: Part, task: DeviceTask) -> Part:
    assert part.uplink is not None
    uplink = task.seen(link.received(part.uplink))
    cut = uplink.cut
    return part._replace(
        outcome=part.outcome if cut is None else Outcome.cut_off(cut, Activity.UPLINK), uplink=uplink
    )


def _moved(
    simulation: Simulation,
    some: RadioRound,
    direction: Direction,
    bits: Sequence[int],
    from_s: FloatArray,
    earlier: tuple[_Moved, Sequence[int]] | None = None,
) -> _Moved:
    """Compute the times of transfers and of the access before each, as `Device` does for single transfers.

    Args:
        earlier: the downlinks of the same devices in this round, and the downlinks' bits.
    """
    air, tails = some.air, simulation.network.power.tails
    led: list[tuple[float, ...]] = [(row,) for row in range(len(bits))]
    if earlier is not None:
        led = list(zip(earlier[0].done.clock_s.tolist(), earlier[0].done.rank, strict=False))
    if air.settings.access is None:
        done = _timed(some, direction, bits, from_s, led)
        return _Moved(done, _reached(from_s, done.start_s), [])
    slot_s, draws = np.float64(air.slot_s), [simulation.devices[id_].draws for id_ in some.links.devices]
    since_s = [
        tails.since_s(id_, time_s) for id_, time_s in zip(some.links.devices, from_s.tolist(), strict=True)
    ]
    if earlier is not None:
        after_s = (from_s - earlier[0].done.end_s).tolist()
        since_s = [
            own_s if moved else before_s
            for moved, own_s, before_s in zip(earlier[1], after_s, since_s, strict=True)
        ]
    each = zip(bits, since_s, draws, some.rates_bit_s[direction].tolist(), strict=True)
    leads = [
        lead_of(air.settings.access, air.slot_s, direction, many, silent_s, of.connection, rate)
        for many, silent_s, of, rate in each
    ]
    resting, listening = np.array(leads).T
    first, slots = air.next_slots(from_s), resting + listening
    listens_s = _reached(from_s, (first + resting) * slot_s)
    begins_s = np.where(slots > 0, _reached(listens_s, (first + slots) * slot_s), from_s)
    waits = zip(slots.tolist(), listens_s.tolist(), from_s.tolist(), led, strict=False)
    led = [(listens, begun, *before) if many else before for many, listens, begun, before in waits]
    done = _timed(some, direction, bits, begins_s, led)
    listened_s = listening * slot_s
    energy_j = np.array([one.wait_w for one in draws]) * listened_s
    columns = ((slots * slot_s).tolist(), listened_s.tolist(), energy_j.tolist())
    accesses = [
        Access(*of) if waited else NO_ACCESS for waited, *of in zip(slots.tolist(), *columns, strict=True)
    ]
    return _Moved(done, np.where(listening > 0, listens_s, _reached(begins_s, done.start_s)), accesses)


def _reached(from_s: FloatArray, until_s: FloatArray) -> FloatArray:
    """Return the clock's time after a wait; SimPy adds the delay to the current time, and the sum is rounded."""
    return from_s + np.maximum(0.0, until_s - from_s)


def _timed(
    some: RadioRound,
    direction: Direction,
    bits: Sequence[int],
    from_s: FloatArray,
    led: Sequence[tuple[float, ...]],
) -> Transfers:
    if some.air.dynamic:
        flows = [link.flow(direction, own_bits) for link, own_bits in zip(some, bits, strict=True)]
        return time_in_band(some.air, some.cell, direction, flows, from_s, led)
    return some.transfers(direction, bits, from_s)


def _tails(
    simulation: Simulation,
    devices: Sequence[int],
    down: tuple[_Moved, Sequence[int]],
    up: tuple[_Moved, Sequence[int]],
) -> None:
    """End the tails of earlier transfers, and begin the tails of transfers that move bits."""
    tails = simulation.network.power.tails
    if not tails.any and simulation.radio.air.settings.access is None:
        return
    for moved, bits in (down, up):
        times_s = moved.on_s.tolist(), moved.done.end_s.tolist()
        for device, on_s, end_s, some in zip(devices, *times_s, bits, strict=True):
            if some or moved is down[0]:  # even an empty downlink ends the previous tail
                tails.ends(device, on_s)
            if some:
                tails.begins(device, end_s)


def _transfers(
    moved: _Moved,
    powers_w: tuple[FloatArray, FloatArray],
    bits: Sequence[int],
    j_bit: FloatArray,
    wait_w: FloatArray,
) -> Iterator[Span]:
    """Return the transfers' spans.

    Args:
        powers_w: [n] power drawn while the radio is on, and the part of it drawn during the transfer, as in `Device`.
    """
    done, (power_w, drain_w) = moved.done, powers_w
    wait_s = done.end_s - done.start_s - done.airtime_s
    booked_j = j_bit * np.asarray(bits, dtype=float) + (power_w - drain_w) * done.airtime_s
    energy_j = transfer_energy_j(drain_w, done.airtime_s, wait_w, wait_s, booked_j)
    columns = (done.start_s, done.end_s, energy_j)
    times_and_joules = (column.tolist() for column in columns)
    spans = map(Span, *times_and_joules, bits, repeat(1.0), repeat(None), done.airtime_s.tolist())
    if not moved.accesses:
        return spans
    with_access = zip(spans, moved.accesses, strict=True)
    return (span if access is NO_ACCESS else span.after(access) for span, access in with_access)

"""Fast path of `Device.take_part`: compute all parts of an undisturbed round at once.

With static shares a round is known when it opens: a transfer's slots follow from its link's fading, a computation's
time from its samples. If no device moves, is switched or has a battery, and there is no deadline, parts and tails
equal those of the devices' processes, bit for bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from edgefl.channel.energy import transfer_energy_j
from edgefl.channel.units import FloatArray
from edgefl.engine.air.links import Transfers
from edgefl.engine.air.radio_round import Link, RadioRound
from edgefl.engine.federation.device import Processors
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.parts import Activity, DeviceTask, Outcome, Part, Span

# Links whose fading is in memory at a time, 64 kB each: 1 GB
LINKS_AT_ONCE = 16_384


def faded_at_once(taps: int) -> int:
    """Return how many of a planned round's taps have their fading in memory at the same time."""
    return min(taps, LINKS_AT_ONCE)


@dataclass(frozen=True)
class PlannedRound:
    """Parts of a round that has just begun, and the end of the last one."""

    parts: list[Part]
    end_s: float


def planned_parts(
    simulation: Simulation, opened: RadioRound, tasks: Sequence[DeviceTask], processors: Processors
) -> PlannedRound:
    """Compute the parts of devices that begin now, in the order of their links."""
    links = opened.links
    devices = [simulation.devices[id_] for id_ in links.devices]
    down_bits, up_bits = [task.down_bits for task in tasks], [task.up_bits for task in tasks]
    costs = [
        processors.cost(id_, task.samples, task.clock_hz)
        for id_, task in zip(links.devices, tasks, strict=True)
    ]
    compute_s, compute_j = np.array(costs).T
    down, up = _both_ways(opened, down_bits, compute_s, up_bits, simulation.env.now)
    computed_s = down.clock_s + compute_s
    receive_w = np.array([device.draws.receive_w for device in devices])
    radiated = links.uplink_power.tolist()
    send_w = np.array([device.send_power_w(share) for device, share in zip(devices, radiated, strict=True)])
    wait_w = np.array([device.draws.wait_w for device in devices])
    receive_j_bit = np.array([device.draws.receive_j_bit for device in devices])
    send_j_bit = np.array([device.draws.send_j_bit for device in devices])
    _tails(simulation, links.devices, (down, down_bits), (up, up_bits))
    parts = map(
        Part,
        links.devices,
        repeat(Outcome.COMPLETED),
        [task.iterations for task in tasks],
        _transfers(down, receive_w, down_bits, receive_j_bit, wait_w),
        map(Span, down.clock_s.tolist(), computed_s.tolist(), compute_j.tolist()),
        _transfers(up, send_w, up_bits, send_j_bit, wait_w),
    )
    received = list(parts)
    if opened.packet_errors is not None or not all(task.usable for task in tasks):
        received = [
            _received(opened, link, part, task)
            for link, part, task in zip(opened, received, tasks, strict=True)
        ]
    return PlannedRound(received, float(up.clock_s.max()))


def _received(opened: RadioRound, link: Link, part: Part, task: DeviceTask) -> Part:
    assert part.uplink is not None
    uplink = task.seen(link.received(part.uplink))
    if uplink.cut is None:
        return part
    return part._replace(outcome=Outcome.cut_off(uplink.cut, Activity.UPLINK), uplink=uplink)


def _both_ways(
    opened: RadioRound, down_bits: Sequence[int], compute_s: FloatArray, up_bits: Sequence[int], now_s: float
) -> tuple[Transfers, Transfers]:
    """Time all downlinks and uplinks; in large rounds batch by batch, dropping each batch's fading."""
    many, at_once = len(opened.links), max(1, LINKS_AT_ONCE // opened.air.settings.link.frequency_taps)
    timed: list[tuple[Transfers, Transfers]] = []
    for begin in range(0, many, at_once):
        rows = range(begin, min(begin + at_once, many))
        some = opened if len(rows) == many else replace(opened, links=opened.links.at(rows))
        down = some.transfers("downlink", down_bits[rows.start : rows.stop], np.full(len(rows), now_s))
        compute_until_s = down.clock_s + compute_s[rows.start : rows.stop]
        timed.append((down, some.transfers("uplink", up_bits[rows.start : rows.stop], compute_until_s)))
        if many > at_once:
            for fading in some.links.fading:
                fading.forget()
    downs, ups = zip(*timed, strict=True)
    return Transfers.joined(downs), Transfers.joined(ups)


def _tails(
    simulation: Simulation,
    devices: Sequence[int],
    down: tuple[Transfers, Sequence[int]],
    up: tuple[Transfers, Sequence[int]],
) -> None:
    """End the tails of earlier transfers, and begin those of the transfers that move bits."""
    tails = simulation.network.power.tails
    if not tails.any:
        return
    for done, bits in (down, up):
        times_s = done.start_s.tolist(), done.end_s.tolist()
        for device, start_s, end_s, moved in zip(devices, *times_s, bits, strict=True):
            if moved or done is down[0]:  # even an empty downlink ends a tail
                tails.ends(device, start_s)
            if moved:
                tails.begins(device, end_s)


def _transfers(
    done: Transfers, power_w: FloatArray, bits: Sequence[int], j_bit: FloatArray, wait_w: FloatArray
) -> Iterator[Span]:
    wait_s = done.end_s - done.start_s - done.airtime_s
    bits_j = j_bit * np.asarray(bits, dtype=float)
    energy_j = transfer_energy_j(power_w, done.airtime_s, wait_w, wait_s, bits_j)
    columns = (done.start_s, done.end_s, energy_j)
    times_and_joules = (column.tolist() for column in columns)
    return map(Span, *times_and_joules, bits, repeat(1.0), repeat(None), done.airtime_s.tolist())

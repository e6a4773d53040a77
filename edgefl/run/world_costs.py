"""Compute the costs of a recorded world: the seconds and joules of its links at given times, and of its devices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edgefl.channel.energy import transfer_energy_j
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.air.radio import Radio
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.federation.device import Processors
from edgefl.engine.federation.simulation import Simulation

Columns = Mapping[str, Sequence[Any] | np.ndarray]
GFLOP = 1e9
LINK_COLUMNS = (
    "time_s",
    "device",
    "cell",
    "payload_bits",
    *(f"{direction}_{unit}" for direction in DIRECTIONS for unit in ("s", "j")),
    "shared",
)


def links(
    simulation: Simulation,
    radio: Radio,
    cells: Sequence[int],
    payloads_bits: Sequence[int],
    time_s: float,
    number: int,
) -> Iterator[Columns]:
    """Yield rows of LINK_COLUMNS for the present links of each cell, one for each link and payload.

    Args:
        number: index of this measurement of the links, from 0.
    """
    for cell in cells:
        present = simulation.network.present(cell)
        if not present:
            continue
        key = (1, "record" + (f" in cell {cell}" if cell else ""), number + 1)
        state = radio.gains.of_round(simulation.network.positions_m(), present, cell, key)
        for bits in payloads_bits:
            many = [bits] * len(present)
            if radio.air.dynamic:
                ones = dict.fromkeys(DIRECTIONS, np.ones(len(present)))
                opened = radio.given(state, [cell] * len(present), radio.budget.snr(state), ones)
            else:
                opened = radio.open_round(state, cell, {"downlink": many, "uplink": many})
            yield {
                "time_s": [time_s] * len(present),
                "device": present,
                "cell": [cell] * len(present),
                "payload_bits": many,
                **_costs(simulation, opened, many, time_s),
                "shared": [int(not radio.air.dynamic)] * len(present),
            }


def _costs(simulation: Simulation, opened: RadioRound, bits: Sequence[int], time_s: float) -> dict[str, Any]:
    """Return seconds and joules of a transfer in each direction on each link, starting now; None if the rate is 0."""
    costs: dict[str, Any] = {}
    for direction in DIRECTIONS:
        carrying = [link.row for link in opened if link.carries(direction)]
        some = replace(opened, links=opened.links.at(carrying))
        bits_of = [bits[row] for row in carrying]
        done = some.transfers(direction, bits_of, np.full(len(carrying), time_s))
        devices = [simulation.devices[id_] for id_ in some.links.devices]
        down, lasts_s = direction == "downlink", done.end_s - done.start_s
        power_w = np.array([one.draws.receive_w if down else one.send_power_w() for one in devices])
        wait_w = np.array([one.draws.wait_w for one in devices])
        j_bit = np.array([one.draws.receive_j_bit if down else one.draws.send_j_bit for one in devices])
        energy_j = transfer_energy_j(
            power_w, done.airtime_s, wait_w, lasts_s - done.airtime_s, j_bit * np.array(bits_of)
        )
        for unit, values in (("s", lasts_s), ("j", np.asarray(energy_j))):
            known = dict(zip(carrying, values.tolist(), strict=True))
            costs[f"{direction}_{unit}"] = [known.get(row) for row in range(len(bits))]
    return costs


def devices(simulation: Simulation) -> Columns:
    """Return a row for each device, with seconds and joules of 1e9 FLOPs and the device's powers."""
    fleet = simulation.fleet
    ids = list(range(len(fleet)))
    costs = [Processors(fleet, GFLOP).cost(device, 1) for device in ids]
    return {
        "device": ids,
        "class": fleet.class_names() or [""] * len(ids),
        "compute_s_per_gflop": [seconds for seconds, _ in costs],
        "compute_j_per_gflop": [joules for _, joules in costs],
        "receive_w": [device.draws.receive_w for device in simulation.devices],
        "send_w": [device.send_power_w() for device in simulation.devices],
        "idle_w": fleet.idle_power_w.tolist(),
        "battery_j": [fleet.device(device).battery_j for device in ids],
    }

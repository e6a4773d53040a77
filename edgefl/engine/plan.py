"""A round that nothing can disturb, all of its parts at once and without a process for each.

With static shares a round is known when it opens: every transfer's slots follow from its link's fading, every
computation's time from its samples. Where nobody moves, switches or runs empty, and no deadline cuts anybody
off, the parts are what their processes would return, to the last bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgefl.engine.device import Processor
from edgefl.engine.parts import Outcome, Part, Span, Task
from edgefl.engine.radio import Link
from edgefl.engine.scene import Scene


@dataclass(frozen=True)
class Plan:
    """What a round's devices will have done, and when the last of them is through."""

    parts: list[Part]
    end_s: float


def planned_parts(scene: Scene, links: Sequence[Link], tasks: Sequence[Task], processor: Processor) -> Plan:
    """The parts of devices that begin now, in the order of their links."""
    radio, devices = scene.radio, [scene.devices[link.device] for link in links]
    now_s = np.full(len(links), scene.env.now)
    downlinks, received_s = radio.transfers(links, "downlink", [task.down_bits for task in tasks], now_s)
    costs = [processor.cost(task.samples) for task in tasks]
    computed_s = received_s + np.array([time_s for time_s, _ in costs])
    uplinks, sent_s = radio.transfers(links, "uplink", [task.up_bits for task in tasks], computed_s)
    parts = [
        Part(
            link.device,
            Outcome.COMPLETED,
            task.iterations,
            downlink.span(device.receive_j(downlink.airtime_s)),
            Span(start_s, start_s + time_s, energy_j),
            uplink.span(device.send_j(uplink.airtime_s)),
        )
        for link, device, task, downlink, start_s, (time_s, energy_j), uplink in zip(
            links, devices, tasks, downlinks, received_s.tolist(), costs, uplinks, strict=True
        )
    ]
    return Plan(parts, float(sent_s.max()))

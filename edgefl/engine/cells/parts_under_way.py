"""Track the devices that are taking part in a round, and cut off those that cannot continue."""

from dataclasses import dataclass, field

import simpy

from edgefl.engine.parts import Cause


@dataclass(frozen=True)
class PartsUnderWay:
    """The devices that are taking part in a round.

    failed_s: device with a failed link -> the time at which the link failed, and the time from which the cell had
    served the device. guests: devices whose serving cell is not the cell in whose round they take part.
    """

    processes: dict[int, simpy.Process] = field(default_factory=dict)
    failed_s: dict[int, tuple[float, float]] = field(default_factory=dict)
    guests: set[int] = field(default_factory=set)

    def end(self, device: int) -> tuple[bool, tuple[float, float] | None]:
        """Remove a device's part of a round; return whether the device was a guest, and its times in failed_s."""
        del self.processes[device]
        guest = device in self.guests
        self.guests.discard(device)
        return guest, self.failed_s.pop(device, None)

    def cut_off(self, device: int, cause: Cause) -> None:
        """Interrupt a device's part of a round, if it has one."""
        process = self.processes.get(device)
        if process is not None and process.is_alive:
            process.interrupt(cause)

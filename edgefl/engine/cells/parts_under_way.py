"""Which devices take part in a round just now, and what becomes of a part that cannot go on."""

from dataclasses import dataclass, field

import simpy

from edgefl.engine.parts import Cause


@dataclass(frozen=True)
class PartsUnderWay:
    """The devices that take part in a round just now.

    failed_s: device whose link has failed -> since when it has none, and since when it had one. guests: devices that
    have another cell than the one in whose round they take part.
    """

    processes: dict[int, simpy.Process] = field(default_factory=dict)
    failed_s: dict[int, tuple[float, float]] = field(default_factory=dict)
    guests: set[int] = field(default_factory=set)

    def end(self, device: int) -> tuple[bool, tuple[float, float] | None]:
        """Forget a device's part; return whether it was a guest, and its times in failed_s."""
        del self.processes[device]
        guest = device in self.guests
        self.guests.discard(device)
        return guest, self.failed_s.pop(device, None)

    def cut_off(self, device: int, cause: Cause) -> None:
        """Interrupt a device's part, if it has one under way."""
        process = self.processes.get(device)
        if process is not None and process.is_alive:
            process.interrupt(cause)

"""The simulation shared by the servers of a run: clock, radio, network, devices and tables."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import simpy

from edgefl.engine.air.radio import Radio
from edgefl.engine.cells.network import Network
from edgefl.engine.devices.fleet import Fleet
from edgefl.engine.devices.ledger import Ledger
from edgefl.engine.federation.device import Device
from edgefl.engine.federation.federations import Federations
from edgefl.engine.federation.open_tails import OpenTails
from edgefl.engine.records import Recorder, Round
from edgefl.errors import EdgeflError
from edgefl.rng import Streams


@dataclass(frozen=True)
class Simulation:
    """Clock, physical world and tables, shared by all servers; each server keeps its own state separately.

    open_tails: finished rounds that wait for tails before their rows are written. duration_s: no round begins at or
    after this time. announce: called with the row of each finished round, including tails up to now.
    """

    env: simpy.Environment
    radio: Radio
    network: Network
    devices: Sequence[Device]
    ledger: Ledger
    recorder: Recorder
    streams: Streams
    federations: Federations
    fleet: Fleet
    open_tails: OpenTails
    duration_s: float = math.inf
    announce: Callable[[Round], None] = lambda row: None

    def run(self, *ends: simpy.Event) -> None:
        """Run until all given events have occurred; write the rows of finished rounds even after an error."""
        try:
            self.env.run(until=self.env.all_of(ends))
        except BaseException:
            with suppress(EdgeflError):  # report only the error that ended the run
                self._settle()
            raise
        self._settle()

    def _settle(self) -> None:
        """Write all rows at the end of a run; book the last tails in full, and drain batteries accordingly."""
        self.network.power.spend_last_tails()
        self.open_tails.release(math.inf)
        self.recorder.flush()

"""Compute by how many joules a round exceeds the minimum for the same work in the same time."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgefl.channel.units import FloatArray
from edgefl.engine.federation.deciding.history import History
from edgefl.engine.federation.deciding.outlook import Outlook
from edgefl.engine.federation.device import Processors
from edgefl.engine.federation.made import NOTHING, Columns, Made
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.parts import NO_ACCESS, Access, Part
from edgefl.engine.selectors import Candidates
from edgefl.engine.selectors._allocation import Allocation, Uploads, least_energy, least_time
from edgefl.engine.selectors._resources import allocated, carrying

ENERGY_EXCESS = "energy_excess_j"  # optional column of rounds.csv


@dataclass(frozen=True)
class Excess:
    """An observer that compares a round's joules with the minimum for the same work.

    report_bits: bits that each participant sends in addition to its update.
    """

    simulation: Simulation
    cell: int
    processors: Processors
    report_bits: int

    def __call__(self, made: Made) -> Columns:
        # rounds that overlap cannot be compared with a minimum
        return NOTHING if made.overlaps else Columns({ENERGY_EXCESS: self._excess_j(made)})

    @cached_property
    def _outlook(self) -> Outlook:
        """Expected costs of rounds without a deadline."""
        return Outlook(self.simulation, self.cell, self.processors, None)

    def _excess_j(self, made: Made) -> float | None:
        """Return by how many joules a round's completed participants exceed the minimum.

        `least_energy` minimises the energy of computing and sending over shares, powers and clocks, for the times at
        which the downloads ended, the samples, the bits, and the time at which the last update arrived. The minimum
        is based on mean rates, so a round with good fading may use fewer joules.

        Returns:
            Joules, or None if no participant completed, or if fading was so good that no allocation at mean rates
            finishes by the round's end.
        """
        local, outlook = made.local, self._outlook
        rows = [row for row, part in enumerate(made.parts) if part.completed]
        if not rows:
            return None
        some = [made.parts[row] for row in rows]
        past = History(max(local.ids) + 1)
        past.note(local, made.parts, 0, self.report_bits)
        state = made.jobs[0].dispatch.large_scale.of([local.ids[row] for row in rows])
        candidates = outlook.candidates(state, past, 1, len(rows))
        begun_s = min(part.downlink.start_s for part in some)
        # access before an upload counts as part of the download, since both delay the upload
        received_s = np.array([part.downlink.end_s - begun_s + _access(part).time_s for part in some])
        end_s = max(part.uplink.end_s for part in some if part.uplink) - begun_s
        sends = candidates.up_bits > 0
        least_j = _computing_j(candidates.at(np.flatnonzero(~sends)), end_s - received_s[~sends])
        if sends.any():
            sent_j = _sending_j(candidates.at(np.flatnonzero(sends)), received_s[sends], end_s)
            if sent_j is None:
                return None
            least_j += sent_j
        spent_j = sum(span.energy_j for part in some for span in (part.compute, part.uplink) if span)
        bits_j = outlook.bits_j(np.asarray(candidates.ids), candidates.up_bits)
        access_j = sum(_access(part).energy_j for part in some)
        return float(spent_j - access_j - bits_j.sum() - least_j)


def _access(part: Part) -> Access:
    """Return the time and energy of access before a part's upload."""
    return part.uplink.access if part.uplink else NO_ACCESS


def _computing_j(candidates: Candidates, window_s: FloatArray) -> float:
    """Return the joules of devices that send nothing and compute within window_s at the lowest sufficient clock."""
    lowest_hz = candidates.cycles / np.where(candidates.cycles > 0, window_s, 1.0)
    clock_hz = np.minimum(candidates.clock_hz, lowest_hz)
    return float((candidates.capacitance * candidates.cycles * clock_hz**2).sum())


def _sending_j(candidates: Candidates, received_s: FloatArray, end_s: float) -> float | None:
    """Return the minimum joules of devices that compute and send until end_s, or None if mean rates are too low."""
    if not carrying(candidates).all():
        return None
    soonest_s = 0.0

    def least(uploads: Uploads, near: Allocation | None) -> Allocation:
        nonlocal soonest_s
        soonest = least_time(uploads, received_s)
        soonest_s = soonest[0]
        return least_energy(uploads, received_s, soonest, end_s, near)

    of, best = allocated(candidates, least)
    return None if soonest_s > end_s else float(best.energy_j(of).sum())

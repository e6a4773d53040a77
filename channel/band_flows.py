"""Store the flows of a shared band, with their parameters as columns."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress

import numpy as np
import numpy.typing as npt

from edgefl.channel.fading import BLOCK, Fading
from edgefl.channel.interference import Interfered
from edgefl.channel.units import FloatArray

# Number of fading blocks that a flow caches, so that a new plan does not redraw them
_KEPT_BLOCKS = 3


@dataclass
class BandFlow:
    """One transfer in a shared band; its progress is stored in `BandState`."""

    id: Hashable
    payload_bits: float
    need: float  # sum of bits/s/Hz over slots, on the whole band
    snr: float  # mean SNR on the whole band with full power
    fading: Fading
    background: bool = False  # background traffic, not a learning transfer
    neighbours: float = 0.0  # interference over noise per share that other transmitters use
    most: float = math.inf  # highest mean SNR on a resource block that power control allows
    widest: float = 1.0  # largest part of the band that the flow's radio can use
    blocks: dict[int, tuple[FloatArray, FloatArray | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # |h|^2 of a link that does not fade
        self.static_power = float(self.fading.power(0, 1)[0]) if self.fading.static else None

    def power(self, first_slot: int, count: int, now: int, others: int = 1) -> FloatArray:
        """Return the fading |h|^2 [count] within a block, divided by 1 + interference over noise if there is any.

        The block of slot `now` and later blocks stay cached.

        Args:
            others: factor by which the link's interference over noise is multiplied.
        """
        if self.static_power is not None:
            return np.full(count, self.static_power)
        block, start = divmod(first_slot, BLOCK)
        if block not in self.blocks:
            self.blocks = {at: power for at, power in self.blocks.items() if at >= now // BLOCK}
            if len(self.blocks) == _KEPT_BLOCKS:
                del self.blocks[max(self.blocks)]
            self.blocks[block] = self._block(block * BLOCK)
        signal, over_noise = self.blocks[block]
        slots = slice(start, start + count)
        return signal[slots] if over_noise is None else signal[slots] / (1.0 + others * over_noise[slots])

    def _block(self, first_slot: int) -> tuple[FloatArray, FloatArray | None]:
        """Return a block of |h|^2, and of interference over noise if there is any."""
        if isinstance(self.fading, Interfered):
            return self.fading.parts(first_slot, BLOCK)
        return self.fading.power(first_slot, BLOCK), None


class BandFlows(tuple[BandFlow, ...]):
    """Flows in the order in which they joined, and their parameters as columns; methods return a new tuple."""

    def joined_by(self, flow: BandFlow) -> "BandFlows":
        """Return the flows with another flow added."""
        columns = np.concatenate([self._columns, BandFlows((flow,))._columns], axis=1)
        rows = {block: np.append(of, -1) for block, of in self.rows.items()}
        return BandFlows((*self, flow))._known(columns, rows)

    def without(self, gone: Sequence[int]) -> "BandFlows":
        """Return the flows that are not in the given rows."""
        stay = np.ones(len(self), dtype=bool)
        stay[gone] = False
        rows = {block: of[stay] for block, of in self.rows.items()}
        return BandFlows(compress(self, stay.tolist()))._known(self._columns[:, stay], rows)

    def changed(self, place: int) -> "BandFlows":
        """Return the same flows after the parameters of one flow have changed."""
        made = BandFlows(self)
        for block, of in self.rows.items():
            made.rows[block] = np.where(np.arange(len(self)) == place, -1, of)
        return made

    def _known(self, columns: FloatArray, rows: dict[int, npt.NDArray[np.int64]]) -> "BandFlows":
        self.__dict__ |= {"_columns": columns, "rows": rows}
        return self

    @cached_property
    def rows(self) -> dict[int, npt.NDArray[np.int64]]:
        """Row [n] of each flow in the table of results, for each block of slots; -1 before results are computed."""
        return {}

    @cached_property
    def _columns(self) -> FloatArray:
        if not self:
            return np.empty((7, 0))
        return np.array(
            [
                (one.snr, one.most, one.need, one.widest, one.neighbours, one.background, one.static_power)
                for one in self
            ],
            dtype=float,
        ).T

    @property
    def snr(self) -> FloatArray:
        """Mean SNR [n] of each flow on the whole band with full power."""
        return self._columns[0]

    @property
    def most(self) -> FloatArray:
        """Highest mean SNR [n] on a resource block that power control allows each flow."""
        return self._columns[1]

    @property
    def need(self) -> FloatArray:
        """Sum over slots of bit/s/Hz on the whole band that each flow [n] needs."""
        return self._columns[2]

    @property
    def widest(self) -> FloatArray:
        """Largest part of the band [n] that each flow's radio can use."""
        return self._columns[3]

    @cached_property
    def background(self) -> npt.NDArray[np.bool_]:
        """Whether each flow [n] is background traffic."""
        return self._columns[5] > 0

    @cached_property
    def static(self) -> npt.NDArray[np.bool_]:
        """Whether each flow's link [n] is static, without fading."""
        return ~np.isnan(self._columns[6])

    @cached_property
    def held_power(self) -> FloatArray:
        """Power |h|^2 [n] of each static link, and 1 for links that fade."""
        return np.where(self.static, self._columns[6], 1.0)

    def snr_beside(self, in_use: int) -> FloatArray:
        """Return the SNR [n] on the whole band with full power while `in_use` shares are in use in every cell."""
        return np.asarray(self.snr / (1.0 + in_use * self._columns[4]))

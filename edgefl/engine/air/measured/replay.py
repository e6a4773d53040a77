"""Replay measured rates: a radio, gains and serving cells based on a table of rates."""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import simpy

from edgefl.channel.schedulers import BoolArray
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.budget import Budget
from edgefl.engine.air.gains import LargeScaleGains, LargeScaleState, RoundKey
from edgefl.engine.air.links import DIRECTIONS, Prospect
from edgefl.engine.air.measured.rates import MeasuredRates, Steps
from edgefl.engine.air.measurements import Measurements
from edgefl.engine.air.progressive import ProgressiveTransfer
from edgefl.engine.air.radio import Radio
from edgefl.engine.air.radio_round import Link, RadioRound


class _Steady:
    """Constant fading for measured links, since their rates already include the real fading."""

    static, correlation, renews, mean_power = True, 1.0, False, 1.0

    def power(self, first_slot: int, count: int) -> FloatArray:
        return np.ones(count)

    def generator(
        self, first_slot: int, stream: int, reused: np.random.Generator | None = None
    ) -> np.random.Generator:
        raise NotImplementedError("a steady link draws no random numbers")

    def forget(self) -> None:
        pass


_STEADY = _Steady()


@dataclass(frozen=True)
class _ReplayedTransfer:
    """A transfer at a device's measured rates, which ends at the first slot boundary after its last bit."""

    air: AirInterface
    steps: Steps
    direction: Direction
    payload_bits: int
    first_slot: int

    def go(self, slot: int, snr: float, until: int | None) -> Generator[simpy.Event, Any, int]:
        end = slot
        if self.payload_bits:
            from_s = slot * self.air.slot_s
            end = self.air.next_slot(self.steps.end_s(self.direction, from_s, self.payload_bits))
        yield self.air.until(end)
        return end

    def pause(self, slot: int) -> None:
        raise NotImplementedError("a measured link is always in sync")

    def bits(self, slot: int) -> int:
        slot_s = self.air.slot_s
        first, last = (self.steps.bits_at(self.direction, at * slot_s) for at in (self.first_slot, slot))
        return int(min(self.payload_bits, last - first + 1e-6))  # rounding may cut the last bit short


@dataclass(frozen=True, slots=True)
class _ReplayedLink(Link):
    """A link on which transfers proceed at measured rates."""

    def _begun(
        self, direction: Direction, share: float, payload_bits: int, first_slot: int
    ) -> tuple[ProgressiveTransfer, None]:
        assert isinstance(self.round, _ReplayedRound)
        steps = self.round.rates.steps[self.device]
        return _ReplayedTransfer(self.round.air, steps, direction, payload_bits, first_slot), None


@dataclass(frozen=True)
class _ReplayedRound(RadioRound):
    """A round of links with measured rates."""

    rates: MeasuredRates = field(kw_only=True)

    def __iter__(self) -> Iterator[Link]:
        return (_ReplayedLink(self, row) for row in range(len(self.links)))

    @property
    def predictable(self) -> bool:
        return False

    def in_sync(self) -> list[int]:
        slowest = np.minimum(*(self.links.snr[direction] for direction in DIRECTIONS))
        return np.flatnonzero(slowest > 0).tolist()


class _MeasuredBudget(Budget):
    """A link budget with the SNR at which Shannon's rate on the whole band equals the current measured rate."""

    def __init__(self, rates: MeasuredRates, air: AirInterface, device_power_w: FloatArray) -> None:
        super().__init__(air.settings, device_power_w)
        self._rates, self._air = rates, air

    def mean_snr(self, state: LargeScaleState, neighbours: int | np.ndarray) -> dict[Direction, np.ndarray]:
        now_s, hz = self._air.env.now, self._air.settings.bandwidth_hz
        return {d: np.expm1(math.log(2.0) / hz * self._rates.bit_s(d, state.ids, now_s)) for d in DIRECTIONS}


class MeasuredRadio(Radio):
    """A radio with measured rates on its links; see `Radio` for the other arguments."""

    def __init__(
        self, env: simpy.Environment, rates: MeasuredRates, *, device_power_w: FloatArray, **others: Any
    ) -> None:
        super().__init__(env, device_power_w=device_power_w, **others)
        self._rates = rates
        self.fading = lru_cache(maxsize=1)(lambda device, cell: _STEADY)
        self.budget = _MeasuredBudget(rates, self.air, device_power_w)

    def fading_now(self, ids: Sequence[int], cell: int, *, all_: bool) -> tuple[BoolArray, FloatArray]:
        return np.ones(len(ids), dtype=bool), np.ones(len(ids))

    def prospect(self, state: LargeScaleState, cell: int, sharing: int) -> Prospect:
        return super().prospect(state, cell, 1)  # devices do not share their measured rates

    def open_round(self, state: LargeScaleState, cell: int, *_: Any, **__: Any) -> RadioRound:
        whole, cells = dict.fromkeys(DIRECTIONS, np.ones(len(state.ids))), [cell] * len(state.ids)
        links = self.given(state, cells, self.budget.snr(state), whole).links
        return _ReplayedRound(self.air, links, cell, rates=self._rates)


@dataclass
class MeasuredGains(LargeScaleGains):
    """Gains for selectors, which grow with a device's downlink rate.

    cells_m: [cells, 2] a point in each cell, to compute distances. now_s: returns the time at which rounds open.
    """

    rates: MeasuredRates
    cells_m: FloatArray
    now_s: Callable[[], float] = lambda: 0.0

    def of_round(
        self, positions_m: np.ndarray, ids: Sequence[int], cell: int | np.ndarray, key: RoundKey
    ) -> LargeScaleState:
        bit_s = self.rates.bit_s("downlink", ids, self.now_s())
        gains_db = 10.0 * np.log10(np.maximum(bit_s, 1.0)) - 120.0  # dB relative to 1 Tbit/s
        distances_m = np.hypot(*(positions_m[np.asarray(ids, dtype=np.intp)] - self.cells_m[cell]).T)
        return LargeScaleState(ids, gains_db, distances_m, np.zeros(len(ids)), key, everywhere_m=positions_m)


class MeasuredCells(Measurements):
    """Serving cells that follow from a table of rates instead of measured powers."""

    def __init__(self, rates: MeasuredRates, env: simpy.Environment) -> None:
        super().__init__(len(rates.cells))
        self._rates, self._env = rates, env
        self.changes = rates.changes()

    def strongest_of(self, device: int, positions_m: np.ndarray) -> int:
        return int(self._rates.cells_at([device], self._env.now)[0])

    def strongest(self, positions_m: np.ndarray) -> np.ndarray:
        return self._rates.cells_at(range(len(positions_m)), self._env.now)

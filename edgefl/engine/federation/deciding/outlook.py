"""Predict the time and energy of each activity in a round from the devices' links, processors and radios."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.engine.air.access import lead_of
from edgefl.engine.air.gains import LargeScaleState
from edgefl.engine.federation.deciding.history import History
from edgefl.engine.federation.device import Processors
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.selectors import Candidates
from edgefl.engine.selectors._resources import joules


class _Access(NamedTuple):
    """Cost of access before transfers [ids]: time in which the radio is idle, total time, and energy."""

    rests_s: FloatArray
    time_s: FloatArray
    energy_j: FloatArray


class Outlook:
    """Describe a cell's devices as candidates.

    Args:
        deadline_s: deadline of a round, or None if rounds have no deadline.

    Attributes:
        devices: number of devices in the run.
    """

    def __init__(
        self, simulation: Simulation, cell: int, processors: Processors, deadline_s: float | None
    ) -> None:
        self._simulation, self._cell, self._processors = simulation, cell, processors
        self._deadline_s = deadline_s
        fleet, draws = simulation.fleet, [device.draws for device in simulation.devices]
        self.devices = len(draws)
        self._clock_hz = fleet.column(lambda kind: kind.clock_hz)
        self._capacitance = fleet.column(lambda kind: kind.capacitance)
        self._flops_per_cycle = fleet.column(lambda kind: kind.flops_per_cycle)
        watts = [(one.receive_w, one.amplifier_w, one.send_w, one.wait_w) for one in draws]
        per_bit = [(one.receive_j_bit, one.send_j_bit) for one in draws]
        self._draws = draws
        self._watts, self._j_bit = np.array(watts).reshape(-1, 4).T, np.array(per_bit).reshape(-1, 2).T

    def bits_j(self, ids: np.ndarray, bits: FloatArray) -> FloatArray:
        """Return the joules [n] that devices [n] use for bits [n] at their transmit energy per bit."""
        return self._j_bit[1, ids] * bits

    def _access(
        self, way: Direction, ids: np.ndarray, bits: FloatArray, lasts_s: FloatArray, since_s: Sequence[float]
    ) -> _Access:
        """Return the cost of access before transfers that last lasts_s [ids], after silence for since_s [ids]."""
        air = self._simulation.radio.air
        rules = air.settings.access
        if rules is None:
            none = np.zeros(len(ids))
            return _Access(none, none, none)
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.where(bits > 0, bits / lasts_s, 0.0)
        each = zip(ids.tolist(), bits.tolist(), since_s, rates.tolist(), strict=True)
        leads = [
            lead_of(rules, air.slot_s, way, many, silent_s, self._draws[id_].connection, rate)
            for id_, many, silent_s, rate in each
        ]
        rests_s, listens_s = np.array(leads, dtype=float).reshape(-1, 2).T * air.slot_s
        return _Access(rests_s, rests_s + listens_s, self._watts[3, ids] * listens_s)

    def _silent_s(self, ids: np.ndarray) -> list[float]:
        """Return the time since each device's last transfer."""
        tails, now_s = self._simulation.network.power.tails, self._simulation.env.now
        return [tails.since_s(id_, now_s) for id_ in ids.tolist()]

    def _tails_j(self, ids: np.ndarray, between_s: FloatArray) -> FloatArray:
        """Return the joules [ids] of a part's two tails; the upload cuts off the first tail after between_s."""
        tails = self._simulation.network.power.tails
        if not tails.any:
            return np.empty(0)
        return tails.energies_j(ids, between_s) + tails.energies_j(ids, math.inf)

    def _charge_j(self, ids: np.ndarray) -> FloatArray:
        """Return the joules [ids] left in each device's battery; inf on mains."""
        charges = self._simulation.network.power.charges()
        left = [charges[id_] for id_ in ids.tolist()] if charges else [None] * len(ids)
        return np.array([math.inf if one is None else one.left_j for one in left])

    def _computing(self, ids: np.ndarray, samples: FloatArray) -> dict[str, FloatArray]:
        """Return the fields of Candidates [ids] about processors and their work."""
        each = zip(ids.tolist(), samples.astype(int).tolist(), strict=True)
        costs = [self._processors.cost(id_, many) for id_, many in each]
        compute_s, compute_j = np.array(costs).reshape(-1, 2).T
        return {
            "cycles": self._processors.flops_per_sample * samples / self._flops_per_cycle[ids],
            "clock_hz": self._clock_hz[ids],
            "capacitance": self._capacitance[ids],
            "compute_s": compute_s,
            "compute_j": compute_j,
        }

    def _watts_on_air(self, ids: np.ndarray) -> dict[str, FloatArray]:
        """Return the fields of Candidates [ids] about power during a transfer, averaged over the TDD frame."""
        receive_w, amplifier_w, send_w, wait_w = self._watts[:, ids]
        carriers = self._simulation.radio.air.carriers
        on_down, on_up = carriers["downlink"].frame.mean, carriers["uplink"].frame.mean
        return {
            "receive_w": receive_w * on_down + wait_w * (1 - on_down),
            "amplifier_w": amplifier_w * on_up,
            "send_w": send_w * on_up + wait_w * (1 - on_up),
        }

    def candidates(
        self,
        state: LargeScaleState,
        past: History,
        turn: int,
        wanted: int,
        busy: Sequence[int] = (),
        *,
        fades: bool = False,
    ) -> Candidates:
        """Return the candidates that a decider sees.

        Args:
            state: state of the candidates' links. past: history of the candidates.
            wanted: number of participants, which are assumed to share the band equally.
            busy: other devices that are present, but cannot be dispatched now.
            fades: whether to include the fading of the next slot for all links.
        """
        radio, ids = self._simulation.radio, np.asarray(state.ids, dtype=np.intp)
        known = past.of(ids, turn)
        links = radio.prospect(state, self._cell, min(max(1, wanted), len(ids)))
        alone = radio.prospect(state, self._cell, 1)
        static, power = radio.fading_now(state.ids, self._cell, all_=fades)
        held = np.where(static, power, 1.0)
        carriers = radio.air.carriers
        watts, down_bits, up_bits = self._watts_on_air(ids), known["down_bits"], known["up_bits"]
        computing = self._computing(ids, known["samples"])
        snr_down, snr_up = links.snr["downlink"] * held, links.snr["uplink"] * held
        radiated = links.uplink_power
        down_s = carriers["downlink"].seconds(down_bits, links.share, snr_down, static)
        up_s, alone_s = (
            carriers["uplink"].seconds(
                up_bits, one.share, one.snr["uplink"] * held * one.uplink_power, static
            )
            for one in (links, alone)
        )
        first = self._access("downlink", ids, down_bits, down_s, self._silent_s(ids))
        second = self._access("uplink", ids, up_bits, up_s, computing["compute_s"].tolist())
        sending_w = watts["send_w"] + watts["amplifier_w"] * radiated
        return Candidates(
            ids=state.ids,
            gains_db=state.gains_db,
            turn=turn,
            busy=busy,
            deadline_s=math.inf if self._deadline_s is None else self._deadline_s,
            downlink=carriers["downlink"],
            uplink=carriers["uplink"],
            lowest_snr=radio.air.monitoring.lowest_snr["uplink"],
            snr_down=snr_down,
            snr_up=snr_up,
            static=static,
            radiated=radiated,
            down_s=first.time_s + down_s,
            up_s=second.time_s + up_s,
            up_access_s=second.time_s,
            up_alone_s=alone_s,
            widest=alone.share,
            down_j=first.energy_j + joules(watts["receive_w"], down_s) + self._j_bit[0, ids] * down_bits,
            up_j=second.energy_j + joules(sending_w, up_s) + self.bits_j(ids, up_bits),
            tail_j=self._tails_j(ids, computing["compute_s"] + second.rests_s),
            charge_j=self._charge_j(ids),
            packet_errors=radio.packet_errors,
            **known,
            **computing,
            **watts,
            fading=power if fades else np.empty(0),
        )

"""Compute the carriers of both directions, and the mean SNR of links from their gains."""

import numpy as np
import numpy.typing as npt

from edgefl.channel.carrier import Carrier
from edgefl.channel.power_control import resource_blocks, wanted_power
from edgefl.channel.resource_blocks import BLOCK_ELEMENTS, blocks_of
from edgefl.channel.share import noise_w
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray, db_to_linear, dbm_to_watt
from edgefl.engine.air.gains import LargeScaleState
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.air.radio_settings import RadioSettings


def carriers_of(settings: RadioSettings) -> dict[Direction, Carrier]:
    """Return the carrier of each direction over the whole band."""
    pattern = settings.tdd.pattern_of() if settings.tdd else None
    power = {"downlink": settings.budget.power_over_share, "uplink": settings.budget.uplink_rule}
    blocks, goodput = blocks_of(settings.bandwidth_hz, settings.slot_s), settings.link.goodput
    if settings.link.rates == "cqi":  # guard bands and cyclic prefixes carry no data
        goodput *= blocks * BLOCK_ELEMENTS / (settings.bandwidth_hz * settings.slot_s)
    return {
        d: Carrier(
            settings.bandwidth_hz,
            settings.slot_s,
            weights=pattern.weights(d) if pattern else None,
            cap=settings.link.max_efficiency,
            power=power[d],
            steps=settings.steps(d),
            goodput=goodput,
            taps=settings.link.frequency_taps,
            blocks=blocks if settings.in_blocks(d) else None,
        )
        for d in DIRECTIONS
    }


class Budget:
    """The link budget, which gives the received power over noise and mean interference.

    Args:
        device_power_w: [devices] power that each device radiates while it sends.
        device_gain_db: [devices] gain of each device's own antennas, or one value for all.
    """

    def __init__(
        self, settings: RadioSettings, device_power_w: FloatArray, device_gain_db: FloatArray | float = 0.0
    ) -> None:
        self._settings = settings
        self._device_gain = db_to_linear(np.broadcast_to(device_gain_db, len(device_power_w)))
        self._device_power_w = device_power_w
        self._noise_psd_w_hz = dbm_to_watt(settings.budget.noise_dbm_hz)
        self.server_power_w = dbm_to_watt(settings.budget.server_power_dbm)
        at_site_db = settings.budget.site_noise_figure_db
        self._noise_figures_db: dict[Direction, float] = {
            "downlink": settings.budget.noise_figure_db,
            "uplink": settings.budget.noise_figure_db if at_site_db is None else at_site_db,
        }
        # [1] noise without interference from other sites, which applies to most scenarios
        self._quiet_w = {d: self._noise_w(d, np.zeros(1)) for d in DIRECTIONS}
        in_sight_db, nlos_db = settings.budget.array_gain_db, settings.budget.nlos_array_gain_db
        self._array_gain = float(db_to_linear(in_sight_db))
        self._nlos_array_gain = self._array_gain if nlos_db is None else float(db_to_linear(nlos_db))

    def snr(self, state: LargeScaleState, neighbours: int | np.ndarray = 1) -> dict[Direction, np.ndarray]:
        """Return [devices] the mean SNR in each direction, with full power over the whole band.

        Args:
            neighbours: number of shares that every other site sends at once, each with full power; one number, or
                [devices]. With interference by slot, this SNR does not include interference.
        """
        return self.mean_snr(state, 0 if self._settings.by_slot else neighbours)

    def mean_snr(self, state: LargeScaleState, neighbours: int | np.ndarray) -> dict[Direction, np.ndarray]:
        """Return `snr` with the mean interference of `neighbours` shares from every other site added to the noise."""
        ids, down_w = np.asarray(state.ids, dtype=np.intp), self._quiet_w["downlink"]
        gain = self.array_gain(state) * self._device_gain[ids] * db_to_linear(state.gains_db)
        if np.any(neighbours):
            # factor by which the mean noise rises
            rise = 1.0 + neighbours * self.interference_over_noise(state)
            down_w = self._noise_w("downlink", 10.0 * np.log10(rise))
        return {
            "downlink": self.server_power_w * gain / down_w,
            "uplink": self._device_power_w[ids] * gain / self._quiet_w["uplink"],
        }

    def array_gain(self, state: LargeScaleState) -> FloatArray | float:
        """Return [devices] the gain of the site's beam towards each device, or one gain for all devices.

        The powers of all paths add up; paths in line of sight have one gain, and all other paths another. The gain
        does not affect interference: other cells' beams point in all directions, over which the gain averages 1.
        """
        if state.in_sight is None:
            return self._array_gain
        gain: FloatArray = self._nlos_array_gain + (self._array_gain - self._nlos_array_gain) * state.in_sight
        return gain

    def _noise_w(self, direction: Direction, rise_db: FloatArray) -> FloatArray:
        """Return the noise of a direction's receivers in the whole band, raised by rise_db due to interference."""
        settings = self._settings
        return noise_w(
            self._noise_psd_w_hz,
            settings.bandwidth_hz,
            noise_figure_db=self._noise_figures_db[direction],
            interference_margin_db=settings.budget.interference_margin_db + rise_db,
        )

    def uplink_power(self, state: LargeScaleState, share: FloatArray) -> FloatArray:
        """Return the fraction [devices] of its power that each device radiates in a round under power control.

        The fraction follows from the path loss at the round's start and, like the share of the band, stays fixed.
        Devices measure the path loss in a cell-wide beam, without array gain (38.213, 7.1.1).

        Args:
            share: [devices] each device's share of the band.
        """
        return self._controlled(-state.gains_db, share, np.asarray(state.ids, dtype=np.intp))

    def control(self, state: LargeScaleState) -> FloatArray:
        """Return [devices] the power that power control allows on the whole band, relative to the device's maximum.

        The power is inf without power control.
        """
        if self._settings.budget.uplink_p0_dbm is None:
            return np.full(len(state.ids), np.inf)
        return self._wanted(-state.gains_db, 1.0, np.asarray(state.ids, dtype=np.intp))

    def _controlled(
        self, path_loss_db: FloatArray, share: FloatArray | float, ids: npt.NDArray[np.intp]
    ) -> FloatArray:
        """Return the fraction [n] of its power that each of n devices radiates on a share of the band."""
        if self._settings.budget.uplink_p0_dbm is None:
            return np.ones(len(ids))
        return np.minimum(self._wanted(path_loss_db, share, ids), 1.0)

    def _wanted(
        self, path_loss_db: FloatArray, share: FloatArray | float, ids: npt.NDArray[np.intp]
    ) -> FloatArray:
        """Return [n] the power, as a multiple of the maximum, that power control requires on a share of the band."""
        settings = self._settings
        assert settings.budget.uplink_p0_dbm is not None
        blocks = resource_blocks(settings.bandwidth_hz, settings.slot_s)
        return wanted_power(
            path_loss_db,
            blocks * share if settings.budget.uplink_rule == "full" else blocks,
            self._device_power_w[ids],
            p0_dbm=settings.budget.uplink_p0_dbm,
            alpha=settings.budget.uplink_alpha,
            slot_s=settings.slot_s,
        )

    def downlink_levels(self, state: LargeScaleState) -> FloatArray:
        """Return [devices, cells] the power received from every other cell while it sends, relative to the noise."""
        assert state.of_cells is not None  # with a neighbour load, gains to all cells are known
        floor_w = self._floor_w("downlink")
        levels: FloatArray = state.of_cells * self.server_power_w / floor_w
        return levels

    def uplink_levels(self, power_db: np.ndarray, cell: int, share: float) -> list[FloatArray]:
        """Return, for each cell, the power over noise that a site receives from the cell's devices [n].

        Each device sends with its own uplink power, which power control sets if it is on. The power is spread over
        the whole band, or, with rule `full`, concentrated on the share.

        Args:
            power_db: [devices, cells] gains in dB; a device belongs to the cell with the largest gain.
            share: share of the band, above 0.
        """
        here = np.flatnonzero(np.isfinite(power_db).any(axis=1))
        of, gain = power_db[here].argmax(axis=1), db_to_linear(power_db[here, cell].astype(float))
        loss_db = -power_db[here].max(axis=1).astype(float)
        radiated = self._controlled(loss_db, share, here)
        level = gain * (radiated * self._device_power_w[here]) / self._floor_w("uplink")
        if self._settings.budget.uplink_rule == "full":
            level /= share
        cells = range(power_db.shape[1])
        return [level[of == other] if other != cell else np.empty(0) for other in cells]

    def _floor_w(self, direction: Direction) -> float:
        noise_db = self._noise_figures_db[direction] + self._settings.budget.interference_margin_db
        return float(self._noise_psd_w_hz * self._settings.bandwidth_hz * db_to_linear(noise_db))

    def interference_over_noise(self, state: LargeScaleState) -> np.ndarray:
        """Return [devices] mean interference over noise in the downlink if other sites send one full-power share."""
        settings = self._settings
        floor_w = self._noise_psd_w_hz * settings.bandwidth_hz * db_to_linear(settings.budget.noise_figure_db)
        rise: np.ndarray = settings.neighbour_load * self.server_power_w * state.others / floor_w
        return rise

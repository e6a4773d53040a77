"""Link budget: the mean SNR of links from their gains, and the carriers on which they send."""

import numpy as np

from channel.carrier import Carrier
from channel.share import mean_snr
from channel.tdd import Direction
from channel.units import FloatArray, db_to_linear, dbm_to_watt
from edgefl.engine.gains import Survey
from edgefl.engine.links import DIRECTIONS
from edgefl.engine.radio_settings import RadioSettings


def carriers_of(settings: RadioSettings) -> dict[Direction, Carrier]:
    """Return the whole band in each direction."""
    pattern = settings.tdd.pattern_of() if settings.tdd else None
    power = {
        "downlink": settings.power_over_share,
        "uplink": settings.uplink_power_over_share or settings.power_over_share,
    }
    return {
        d: Carrier(
            settings.bandwidth_hz,
            settings.slot_s,
            weights=pattern.weights(d) if pattern else None,
            cap=settings.max_efficiency,
            power=power[d],
            steps=settings.steps,
            goodput=settings.goodput,
        )
        for d in DIRECTIONS
    }


class Budget:
    """What the receivers have of the transmitters' power, over noise and mean interference.

    Args:
        device_power_w: [devices] what each radiates while it sends.
    """

    def __init__(self, settings: RadioSettings, device_power_w: FloatArray) -> None:
        self._settings = settings
        self._device_power_w = device_power_w
        self._noise_psd_w_hz = dbm_to_watt(settings.noise_dbm_hz)
        self.server_power_w = dbm_to_watt(settings.server_power_dbm)
        at_site_db = settings.site_noise_figure_db
        self._noise_figures_db: dict[Direction, float] = {
            "downlink": settings.noise_figure_db,
            "uplink": settings.noise_figure_db if at_site_db is None else at_site_db,
        }

    def snr(self, survey: Survey, neighbours: int = 1) -> dict[Direction, np.ndarray]:
        """Return [devices] the mean SNR in each direction, with full power over the whole band.

        Args:
            neighbours: shares that each of the other sites sends at once, with full power each.
        """
        settings = self._settings
        # on average, noise rises by this factor
        rise = 1.0 + neighbours * self.rise(survey)
        uplink_w = self._device_power_w[np.asarray(survey.ids, dtype=np.intp)]
        power_w = {"downlink": np.full(len(rise), self.server_power_w), "uplink": uplink_w}
        rises_db = {"downlink": 10.0 * np.log10(rise), "uplink": np.zeros(len(rise))}
        return {
            d: mean_snr(
                power_w[d],
                db_to_linear(survey.gains_db),
                self._noise_psd_w_hz,
                settings.bandwidth_hz,
                noise_figure_db=self._noise_figures_db[d],
                interference_margin_db=settings.interference_margin_db + rises_db[d],
            )
            for d in DIRECTIONS
        }

    def rise(self, survey: Survey) -> np.ndarray:
        """Return [devices] how much one share of full power at all other sites adds to the downlink's noise."""
        settings = self._settings
        floor_w = self._noise_psd_w_hz * settings.bandwidth_hz * db_to_linear(settings.noise_figure_db)
        rise: np.ndarray = settings.neighbour_load * self.server_power_w * survey.others / floor_w
        return rise

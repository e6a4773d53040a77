"""Release devices' updates with privacy, and keep the privacy account with the devices' vectors."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from edgefl.contract import AGGREGATION, UPLOAD
from edgefl.errors import EdgeflError
from edgefl.learning.chance import RoundChance
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.learning.privacy import EPSILON, Privacy, PrivacySettings
from edgefl.learning.updates.device_states import DeviceStates

_UPDATES = "updates charged"


class Release:
    """Release updates unchanged, or clipped and noised with a privacy account for each device.

    Args:
        settings: privacy settings; None: updates are released unchanged, without an account.
        devices: storage that counts, for each device, the charged updates that were trained on its current data.

    Attributes:
        changes_upload: whether `limited` changes uploads.

    Raises:
        EdgeflError: the model has statistics, to which no noise is added.
    """

    def __init__(self, settings: PrivacySettings | None, layout: ModelLayout, devices: DeviceStates) -> None:
        self._privacy, self._devices = Privacy(settings) if settings else None, devices
        self.changes_upload = settings is not None
        if settings and layout.statistics.size:
            raise EdgeflError(
                "batch norm's statistics would be sent without noise: choose a model without batch norm",
                ("learning", "privacy"),
            )

    def limited(self, rows: Tensor, start: Tensor, ids: Sequence[int], chance: RoundChance) -> Tensor:
        """Return devices' uploads [k, M] clipped and noised for release; `start` are the received models."""
        return (
            self._privacy.limited(rows, start, chance.of_devices("privacy", ids)) if self._privacy else rows
        )

    def averaged(self, rows: Tensor, shares: Tensor, chance: RoundChance) -> Tensor:
        """Return updates [K, M] with noise, so that the server may release their mean, weighted by shares [K]."""
        return self._privacy.mean_noised(rows, shares, chance.of_server("privacy")) if self._privacy else rows

    def columns(
        self, ids: Sequence[int], trained: np.ndarray
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, str]]:
        """Return the account's columns if these updates are released, and the stage after which a column holds.

        Args:
            trained: whether each device took at least one local step, [k] bool.

        Returns:
            Values [k] by column, and stage by column; `uploaded` returns the values of a column that has none here.
        """
        if self._privacy is None:
            return {}, {}
        if self._privacy.on_devices:
            return {}, {EPSILON: UPLOAD}
        return {EPSILON: self._privacy.epsilon(self._updates(ids) + trained)}, {EPSILON: AGGREGATION}

    def uploaded(self, ids: Sequence[int], samples: Mapping[int, int]) -> Mapping[str, tuple[float, ...]]:
        """Charge an upload to each of these devices, in this order; return the account's columns afterwards.

        Args:
            ids: device ids, possibly repeated.
            samples: number of samples of each device; without samples, an upload reveals nothing.
        """
        if self._privacy is None:
            return {}
        counts, charged = dict(zip(ids, self._updates(ids).tolist(), strict=True)), []
        for id_ in ids:
            counts[id_] += samples[id_] > 0
            charged.append(counts[id_])
        self._devices.keep(_UPDATES, list(counts), torch.tensor(list(counts.values()))[:, None])
        return {EPSILON: tuple(self._privacy.epsilon(np.array(charged)).tolist())}

    def keep(self, ids: Sequence[int]) -> None:
        """Charge an aggregated update to each of these devices, unless uploads are charged."""
        if self._privacy is not None and not self._privacy.on_devices:
            counts = torch.from_numpy(self._updates(ids) + 1.0)
            self._devices.keep(_UPDATES, ids, counts.float()[:, None])

    def _updates(self, ids: Sequence[int]) -> np.ndarray:
        """Return the number of updates charged for each device's current data, [k]."""
        counts: np.ndarray = self._devices.rows(_UPDATES, ids, torch.zeros(1))[:, 0].cpu().numpy()
        return counts

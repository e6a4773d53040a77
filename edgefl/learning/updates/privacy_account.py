"""Release devices' updates with privacy, and store the privacy account with the devices' vectors."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from edgefl.contract import AGGREGATION, UPLOAD
from edgefl.errors import EdgeflError
from edgefl.learning.chance import RoundChance
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.learning.privacy import EPSILON, Privacy, PrivacySettings
from edgefl.learning.settings import LearningSettings
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.release import Release

_UPDATES = "updates charged"


def release_of(settings: LearningSettings, layout: ModelLayout, devices: DeviceStates) -> Release:
    """Return the object that releases a federation's updates, unchanged unless the settings enable privacy."""
    return _PrivateRelease(settings.privacy, layout, devices) if settings.privacy else Release()


class _PrivateRelease(Release):
    """Release updates clipped and noised, with a privacy account for each device.

    Args:
        devices: storage that counts, for each device, the charged updates that were trained on its current data.

    Raises:
        EdgeflError: the model has statistics, to which no noise is added.
    """

    changes_upload = True

    def __init__(self, settings: PrivacySettings, layout: ModelLayout, devices: DeviceStates) -> None:
        self._privacy, self._devices = Privacy(settings), devices
        if layout.statistics.size:
            raise EdgeflError(
                "batch norm's statistics would be sent without noise: choose a model without batch norm",
                ("learning", "privacy"),
            )

    def limited(self, rows: Tensor, start: Tensor, ids: Sequence[int], chance: RoundChance) -> Tensor:
        return self._privacy.limited(rows, start, chance.of_devices("privacy", ids))

    def averaged(self, rows: Tensor, shares: Tensor, chance: RoundChance) -> Tensor:
        return self._privacy.mean_noised(rows, shares, chance.of_server("privacy"))

    def columns(
        self, ids: Sequence[int], trained: np.ndarray
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, str]]:
        if self._privacy.on_devices:
            return {}, {EPSILON: UPLOAD}
        return {EPSILON: self._privacy.epsilon(self._updates(ids) + trained)}, {EPSILON: AGGREGATION}

    def uploaded(self, ids: Sequence[int], samples: Mapping[int, int]) -> Mapping[str, tuple[float, ...]]:
        counts, charged = dict(zip(ids, self._updates(ids).tolist(), strict=True)), []
        for id_ in ids:
            counts[id_] += samples[id_] > 0
            charged.append(counts[id_])
        self._devices.keep(_UPDATES, list(counts), torch.tensor(list(counts.values()))[:, None])
        return {EPSILON: tuple(self._privacy.epsilon(np.array(charged)).tolist())}

    def keep(self, ids: Sequence[int]) -> None:
        if not self._privacy.on_devices:  # otherwise uploads are charged
            counts = torch.from_numpy(self._updates(ids) + 1.0)
            self._devices.keep(_UPDATES, ids, counts.float()[:, None])

    def _updates(self, ids: Sequence[int]) -> np.ndarray:
        """Return the number of updates charged for each device's current data, [k]."""
        counts: np.ndarray = self._devices.rows(_UPDATES, ids, torch.zeros(1))[:, 0].cpu().numpy()
        return counts

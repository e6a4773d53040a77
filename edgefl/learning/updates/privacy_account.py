"""The account of what devices' updates tell, kept with what else devices keep."""

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
from edgefl.learning.updates.transfers import Release

_UPDATES = "updates charged"


class _PrivateRelease(Release):
    """Updates that are clipped and noised, with epsilon of each device.

    Args:
        devices: where each device's number of charged updates is, of the data that it holds.
    """

    changes_upload = True

    def __init__(self, privacy: Privacy, devices: DeviceStates) -> None:
        self._privacy, self._devices = privacy, devices

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
        if not self._privacy.on_devices:
            counts = torch.from_numpy(self._updates(ids) + 1.0)
            self._devices.keep(_UPDATES, ids, counts.float()[:, None])

    def _updates(self, ids: Sequence[int]) -> np.ndarray:
        """Return [k] how many updates of each device, of the data that it holds, have been charged."""
        counts: np.ndarray = self._devices.rows(_UPDATES, ids, torch.zeros(1))[:, 0].cpu().numpy()
        return counts


def release_of(settings: PrivacySettings | None, layout: ModelLayout, devices: DeviceStates) -> Release:
    """Return what is let out of updates under these settings.

    Raises:
        EdgeflError: the model has statistics, which have no noise.
    """
    if settings is None:
        return Release()
    if layout.statistics.size:
        raise EdgeflError(
            "the statistics of batch norm leave devices without noise: take a model without them",
            ("learning", "privacy"),
        )
    return _PrivateRelease(Privacy(settings), devices)

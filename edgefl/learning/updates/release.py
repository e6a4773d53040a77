"""Release devices' updates to the server and the server's mean to observers: unchanged, or with privacy."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from edgefl.contract import AGGREGATION, UPLOAD
from edgefl.errors import EdgeflError
from edgefl.learning.chance import RoundChance
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.learning.privacy import EPSILON, PrivacySettings, epsilon_of
from edgefl.learning.settings import LearningSettings
from edgefl.learning.updates.device_states import DeviceStates

_UPDATES = "updates charged"


class Release:
    """Release updates unchanged; a subclass may change updates, and charge them to devices' privacy accounts.

    Attributes:
        changes_upload: whether `limited` changes uploads.
    """

    changes_upload: ClassVar[bool] = False

    def limited(self, rows: Tensor, start: Tensor, ids: Sequence[int], chance: RoundChance) -> Tensor:
        """Return devices' uploads [k, M] as they are released to the server; `start` are the received models."""
        return rows

    def averaged(self, rows: Tensor, shares: Tensor, chance: RoundChance) -> Tensor:
        """Return updates [K, M]; their mean, weighted by shares [K], is the mean that the server releases."""
        return rows

    def columns(
        self, ids: Sequence[int], trained: np.ndarray
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, str]]:
        """Return the account's columns as if these updates were released, and after which step each column is filled.

        Args:
            trained: whether each device took at least one local step, [k] bool.

        Returns:
            Values [k] by column, and step by column; values missing here are returned by `uploaded`.
        """
        return {}, {}

    def uploaded(self, ids: Sequence[int], samples: Mapping[int, int]) -> Mapping[str, tuple[float, ...]]:
        """Charge an upload to each of these devices, in this order; return the account's columns afterwards.

        Args:
            ids: device ids, possibly repeated.
            samples: number of samples of each device; an upload without samples reveals nothing, and is not charged.
        """
        return {}

    def keep(self, ids: Sequence[int]) -> None:
        """Charge an aggregated update to each of these devices."""


def release_of(settings: LearningSettings, layout: ModelLayout, devices: DeviceStates) -> Release:
    """Return the object that releases a federation's updates, unchanged unless the settings enable privacy.

    Raises:
        EdgeflError: the model has statistics, to which no noise is added.
    """
    if settings.privacy is None:
        return Release()
    if layout.statistics.size:
        raise EdgeflError(
            "batch norm's statistics would be sent without noise: choose a model without batch norm",
            ("learning", "privacy"),
        )
    return PrivateRelease(settings.privacy, devices)


class PrivateRelease(Release):
    """Release updates clipped and noised, with a privacy account for each device.

    Args:
        devices: storage that counts each device's charged updates, whichever data they were trained on.
    """

    changes_upload = True

    def __init__(self, settings: PrivacySettings, devices: DeviceStates) -> None:
        self._settings, self._devices = settings, devices
        # each upload that begins counts then, since the server may see it
        self._on_devices = settings.where == "device"

    def limited(self, rows: Tensor, start: Tensor, ids: Sequence[int], chance: RoundChance) -> Tensor:
        """Return uploads [k, M] with changes clipped to norm C, and with noise if devices add it."""
        change, settings = rows - start, self._settings
        scale = settings.clip_norm / change.norm(dim=1, keepdim=True).clamp_min(settings.clip_norm)
        limited = torch.where(scale == 1, rows, start + change * scale)
        if self._on_devices and settings.noise:
            noise = chance.of_devices("privacy", ids).normal(rows.shape[1])
            limited = limited + settings.noise * settings.clip_norm * noise
        return limited

    def averaged(self, rows: Tensor, shares: Tensor, chance: RoundChance) -> Tensor:
        """Add the same server noise to all updates [K, M], so that their weighted mean has this noise.

        One update changes the mean by at most the update's share times C.
        """
        settings = self._settings
        if self._on_devices or not settings.noise:
            return rows
        deviation = settings.noise * settings.clip_norm * shares.max()
        return rows + deviation * chance.of_server("privacy").normal(rows.shape[1])

    def columns(
        self, ids: Sequence[int], trained: np.ndarray
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, str]]:
        if self._on_devices:
            return {}, {EPSILON: UPLOAD}
        return {EPSILON: self._epsilon(self._updates(ids) + trained)}, {EPSILON: AGGREGATION}

    def uploaded(self, ids: Sequence[int], samples: Mapping[int, int]) -> Mapping[str, tuple[float, ...]]:
        counts, charged = dict(zip(ids, self._updates(ids).tolist(), strict=True)), []
        for id_ in ids:
            counts[id_] += samples[id_] > 0
            charged.append(counts[id_])
        self._devices.keep(_UPDATES, list(counts), torch.tensor(list(counts.values()))[:, None])
        return {EPSILON: tuple(self._epsilon(np.array(charged)).tolist())}

    def keep(self, ids: Sequence[int]) -> None:
        if not self._on_devices:  # otherwise uploads are charged
            counts = torch.from_numpy(self._updates(ids) + 1.0)
            self._devices.keep(_UPDATES, ids, counts.float()[:, None])

    def _updates(self, ids: Sequence[int]) -> np.ndarray:
        """Return the number of updates charged to each device so far, [k]."""
        counts: np.ndarray = self._devices.rows(_UPDATES, ids, torch.zeros(1))[:, 0].cpu().numpy()
        return counts

    def _epsilon(self, updates: np.ndarray) -> np.ndarray:
        """Return epsilon [k] of devices, given each device's number of charged updates [k]."""
        noise, delta = self._settings.noise, self._settings.delta
        return np.array([epsilon_of(noise, int(many), delta) for many in updates])

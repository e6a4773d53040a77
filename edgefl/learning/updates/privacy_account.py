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

_UPDATES = "updates charged"


class Release:
    """What is let out of updates: all, or what is left of them clipped and noised, with an account of each device.

    Args:
        settings: None: updates are let out as they are, without an account.
        devices: where each device's number of charged updates is, of the data that it holds.

    Attributes:
        changes_upload: whether `limited` changes rows.

    Raises:
        EdgeflError: the model has statistics, which have no noise.
    """

    def __init__(self, settings: PrivacySettings | None, layout: ModelLayout, devices: DeviceStates) -> None:
        self._privacy, self._devices = Privacy(settings) if settings else None, devices
        self.changes_upload = settings is not None
        if settings and layout.statistics.size:
            raise EdgeflError(
                "the statistics of batch norm leave devices without noise: take a model without them",
                ("learning", "privacy"),
            )

    def limited(self, rows: Tensor, start: Tensor, ids: Sequence[int], chance: RoundChance) -> Tensor:
        """Return what these devices, which had received `start`, let out of what they would send [k, M]."""
        return (
            self._privacy.limited(rows, start, chance.of_devices("privacy", ids)) if self._privacy else rows
        )

    def averaged(self, rows: Tensor, shares: Tensor, chance: RoundChance) -> Tensor:
        """Return updates [K, M] whose mean by shares [K] is what the server lets out."""
        return self._privacy.mean_noised(rows, shares, chance.of_server("privacy")) if self._privacy else rows

    def columns(
        self, ids: Sequence[int], trained: np.ndarray
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, str]]:
        """Return the account's columns if these updates are let out, and the stage after which each column holds.

        Args:
            trained: [k] bool, whether a device did a local step.

        Returns:
            [k] values by name, and stage by name; a column without values is told by `uploaded`.
        """
        if self._privacy is None:
            return {}, {}
        if self._privacy.on_devices:
            return {}, {EPSILON: UPLOAD}
        return {EPSILON: self._privacy.epsilon(self._updates(ids) + trained)}, {EPSILON: AGGREGATION}

    def uploaded(self, ids: Sequence[int], samples: Mapping[int, int]) -> Mapping[str, tuple[float, ...]]:
        """Charge an upload of each of these devices, in this order; return the account's columns then.

        Args:
            ids: a device may be named more than once.
            samples: that each holds; without any, what it sends tells nothing.
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
        """Charge updates of these devices that are aggregated."""
        if self._privacy is not None and not self._privacy.on_devices:
            counts = torch.from_numpy(self._updates(ids) + 1.0)
            self._devices.keep(_UPDATES, ids, counts.float()[:, None])

    def _updates(self, ids: Sequence[int]) -> np.ndarray:
        """Return [k] how many updates of each device, of the data that it holds, have been charged."""
        counts: np.ndarray = self._devices.rows(_UPDATES, ids, torch.zeros(1))[:, 0].cpu().numpy()
        return counts

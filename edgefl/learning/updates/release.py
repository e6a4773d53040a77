"""Release devices' updates to the server and the server's mean to observers, by default unchanged."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from torch import Tensor

from edgefl.learning.chance import RoundChance


class Release:
    """Release updates unchanged; subclasses may change updates, and charge them to devices' privacy accounts.

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

"""The models of tiers of devices, and the global model as the mean of these models."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TierModels:
    """The latest model of each tier of devices, the fastest tier first.

    models: the tiers' latest models, [tiers, M + Q]. made: how many models each tier has made, [tiers].
    """

    models: Tensor
    made: Tensor

    @classmethod
    def of(cls, model: Tensor, tiers: int) -> "TierModels":
        """Return tiers that all begin with the same model, and have made no model yet."""
        return cls(model.repeat(tiers, 1), torch.zeros(tiers, dtype=torch.int64))

    def with_one(self, tier: int, model: Tensor) -> "TierModels":
        """Return the tiers' models after this tier has made its next model [M + Q]."""
        models, made = self.models.clone(), self.made.clone()
        models[tier] = model
        made[tier] += 1
        return TierModels(models, made)

    def mean(self) -> Tensor:
        """Return the mean [M + Q] of the tiers' models, weighted by the opposite tier's number of models.

        Chai et al., FedAT, SC 2021: the slowest tier's model is weighted by the fastest tier's number of models.
        """
        weights = self.made.flip(0).to(self.models)
        return (weights / weights.sum()) @ self.models

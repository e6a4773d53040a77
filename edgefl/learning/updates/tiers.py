"""The models of tiers of devices, and the global model as the mean of these models."""

from collections.abc import Sequence
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

    def after(self, tier: int, model: Tensor, there: Sequence[int]) -> tuple["TierModels", Tensor]:
        """Return the tiers after this tier has made its next model [M + Q], and the global model [M + Q].

        The global model is the mean of the models of the tiers `there`, ascending, each weighted by the number of
        models that the opposite of these tiers has made: Chai et al., FedAT, SC 2021. A tier without devices would
        never make a model, so it has no weight; if it gets devices, it begins with the latest global model.
        """
        models, made = self.models.clone(), self.made.clone()
        models[tier] = model
        made[tier] += 1
        weights = made[list(there)].flip(0).to(models)
        mean = (weights / weights.sum()) @ models[list(there)]
        absent = [one for one in range(len(made)) if one not in there]
        models[absent] = mean
        return TierModels(models, made), mean

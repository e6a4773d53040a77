"""The training stage in which devices train two models, one on the data of each concept."""

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from edgefl.contract import LocalRound
from edgefl.learning.federation.federation import RoundFacts
from edgefl.learning.federation.first_losses import losses_received
from edgefl.learning.federation.stages import TrainStage
from edgefl.learning.updates.trained_model import TrainedModel

Value = TypeVar("Value")


class TrainBothStage(TrainStage):
    """Train a global model on data before the drift, and a twin on data after the drift, on each device."""

    @property
    def _models(self) -> list[TrainedModel]:
        assert self.federation.twin is not None
        return [self.federation.model, self.federation.twin]

    def _local_round(self, ids: Sequence[int], facts: RoundFacts, lr: float) -> LocalRound:
        drops = self.federation.now.session.drops
        before, after = (
            self.trainer.train(model, ids, facts, lr, [], bool(concept), drops=drops)
            for concept, model in enumerate(self._models)
        )
        of = partial(self._each, before.ids)
        return LocalRound(
            before.ids,
            of(before.iterations, after.iterations),
            of(before.samples, after.samples),
            of(before.down_bits, after.down_bits),
            of(before.up_bits, after.up_bits),
            {name: of(values, after.scalars[name]) for name, values in before.scalars.items()},
            before.after,
            not_finite=tuple(sorted({*before.not_finite, *after.not_finite})),
        )

    def deployed(self, ids: Sequence[int]) -> Tensor:
        return self._chosen(ids, *(one.model for one in self._models))

    def _personal_models(self, ids: Sequence[int]) -> Tensor:
        return self._chosen(sorted(ids), *(one.waiting_round(ids).rows for one in self._models))

    def _losses_received(self, ids: Sequence[int]) -> tuple[float | None, ...]:
        losses = (losses_received(self.trainer, one.waiting_round(ids)) for one in self._models)
        return self._each(sorted(ids), *losses)

    def _received_and_trained(self, ids: Sequence[int]) -> tuple[Tensor, Tensor]:
        rounds = [one.waiting_round(ids) for one in self._models]
        before, after = (
            self._chosen(sorted(ids), *pair)
            for pair in zip(*((r.start, r.rows) for r in rounds), strict=True)
        )
        return before, after

    def _each(self, ids: Sequence[int], before: Sequence[Value], after: Sequence[Value]) -> tuple[Value, ...]:
        """Choose each device's value by its concept, from one value per device for each concept."""
        drifted = self.trainer.drifting.drifted(ids, self.federation.now.round.moment)
        return tuple(two if new else one for one, two, new in zip(before, after, drifted, strict=True))

    def _chosen(self, ids: Sequence[int], before: Tensor, after: Tensor) -> Tensor:
        """Choose each device's model by its concept, from the models [M + Q] or [K, M + Q] of both concepts."""
        drifted = self.trainer.drifting.drifted(ids, self.federation.now.round.moment)
        mask = torch.from_numpy(drifted).to(before.device)
        if not mask.any():
            return before
        return after if mask.all() else torch.where(mask.unsqueeze(1), after, before)

"""The updates of one aggregation, with their weights, rebased on the server's current model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from edgefl.contract import Staleness
from edgefl.learning.updates.rows import like_rows, rebased
from edgefl.learning.updates.updates import MEANT, TrainedRound, Update, parts


@dataclass(frozen=True)
class Weighing:
    """The rules by which a server weighs the updates of an aggregation.

    staleness: weights of stale updates; None: stale updates have the weight of fresh updates.
    reweighed: id -> factor by which the device's share of its round's data is multiplied; None: no factors.
    equally: whether all devices with data count as if they had equal amounts.
    """

    staleness: Staleness | None = None
    reweighed: Mapping[int, float] | None = None
    equally: bool = False

    def amount(self, samples: int) -> int:
        """Return the amount of data for which a device with this number of samples counts."""
        return min(1, samples) if self.equally else samples


BY_SIZE = Weighing()  # weight updates by the devices' data size only


@dataclass(frozen=True)
class Arrivals:
    """The K updates of one aggregation, collected in one round.

    round: the updates' round; updates from several rounds are joined into a new round.
    positions: the updates' rows in the round.
    shares: each device's share of the data of all K devices, or 1/K if they count equally, [K].
    weights: factor of each update's change, besides its share, [K].
    staleness: how many versions the stalest update lags behind, at most the cap of `Staleness`.
    base: the model from which an update's change is measured, as in `Staleness`; None: updates stay unchanged.
    tiers: tier of each device by id; empty without tiers.
    """

    round: TrainedRound
    positions: list[int]
    shares: np.ndarray
    weights: np.ndarray
    staleness: int
    base: Literal["received", "current"] | None
    tiers: Sequence[int]

    @classmethod
    def of(
        cls, taken: Sequence[Update], version: int, samples: Mapping[int, int], weighing: Weighing
    ) -> "Arrivals":
        """Weigh updates for the model after `version`; see `TrainedModel.aggregate` for the other arguments."""
        staleness, reweighed = weighing.staleness or Staleness("constant"), weighing.reweighed
        round_, positions = taken[0].round, [update.position for update in taken]
        held = [samples[update.round.ids[update.position]] for update in taken]
        sizes = np.array([weighing.amount(many) for many in held], dtype=np.float64)
        shares = sizes / sizes.sum()
        stale = [version - update.round.version for update in taken]
        weights = staleness.weights(stale, shares.tolist())
        if reweighed is not None:
            part = sizes.sum() / sum(weighing.amount(samples[id_]) for id_ in round_.ids)
            weights = [part * reweighed[update.round.ids[update.position]] for update in taken]
        unchanged = not any(stale) and set(weights) == {1.0} and staleness.base == "received"
        unchanged = unchanged or bool(staleness.tiers)
        together = all(update.round is round_ for update in taken)
        if not (unchanged and together):
            round_, positions = joined(taken), list(range(len(taken)))
        base = None if unchanged and (together or staleness.tiers) else staleness.base
        stalest = max(stale) if staleness.cap is None else min(max(stale), staleness.cap)
        return cls(round_, positions, shares, np.array(weights), stalest, base, staleness.tiers)

    @property
    def ids(self) -> list[int]:
        """The devices' ids."""
        return [self.round.ids[k] for k in self.positions]

    def counted(
        self, sent: Tensor, statistics: Tensor, received: Tensor, model: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return uploads [K, M] and statistics [K, Q] as the server aggregates them, and the uploads' start models.

        If coding changed the models that devices received, only each device's change counts.

        Args:
            sent, statistics: uploads [K, M], and statistics of the trained models [K, Q].
            received: the models that devices received, [M] or [K, M].
            model: parameters [M] and statistics [Q] of the current model.
        """
        counted, start = self.round.undone(self.positions, sent, received)
        if self.base is None:
            return counted, statistics, start
        parameters, today = model
        by = like_rows(self.weights, sent)
        counted = rebased(counted, start, parameters, by, received=self.base == "received")
        return counted, _towards(statistics, today, by), parameters


def joined(updates: Sequence[Update]) -> TrainedRound:
    """Join updates of several rounds into one round that contains the model that each device received.

    The joined round's version is the earliest version from which any of its updates started.
    """
    pieces = parts(updates)
    tensors = [one.tensors() | {"start": one.start.expand_as(one.rows)} for one in pieces]
    for one in tensors:
        if MEANT in one:
            one[MEANT] = one[MEANT].expand(len(one["rows"]), -1)
    order = np.argsort(np.concatenate([one.ids for one in pieces]))
    rates = np.repeat([one.lr for one in pieces], [len(one.ids) for one in pieces])[order]
    rows = {
        name: torch.cat([one[name] for one in tensors])[order]
        for name in tensors[0].keys() - {"lr", "version"}
    }
    lr = pieces[0].lr if len(set(rates)) == 1 else like_rows(rates, pieces[0].rows)
    return replace(TrainedRound.of(tensors[0] | rows), lr=lr, version=min(one.version for one in pieces))


def _towards(statistics: Tensor, today: Tensor, weights: Tensor) -> Tensor:
    """Move the model's current statistics [Q] towards each device's [K, Q] by the device's weight, at most 1."""
    way = weights.clamp_max(1.0).unsqueeze(1)
    return torch.where(way == 1, statistics, today + way * (statistics - today))

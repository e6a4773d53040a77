"""Saved models, weighted by the similarity of their sessions' gradients to the current session's gradient."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr

from edgefl.learning.tensors import in_double
from edgefl.learning.warm_starts import Final, OpeningModel, Saved, WarmStart

if TYPE_CHECKING:
    from torch import Tensor

    from edgefl.learning.modules.parameters import TensorLayout

# with `scale: auto`, a session at the median distance weighs e^-10 times as much as a session at distance 0
AUTO_EXPONENT = 10.0


class Similarity(WarmStart):
    """Dynamic initial model construction: Algorithm 1 of the journal paper (J).

    The pilot model is the mean of the last models of sessions 1 to P (J 16; P is `pilot_sessions`). Each later
    session s trains V probe rounds from the pilot model, which gives G_s = w_grad - w_pilot (J 17); from session P +
    2 on, sessions start with sum_z mu_z w_z, mu = softmax(-R |G_s - G_z|) over the saved sessions z (J 18, 19). With
    R = 0 this is `average`; as R tends to infinity, only the most similar session counts. Probe rounds cost time and
    energy; their algorithm starts from scratch, and its state is discarded, so that G_s depends on the devices' data
    only. The devices of probe rounds are sampled once per session from all present devices, with any selector (line
    16 of Algorithm 1); if all of them leave before the last probe round, they are sampled again.

    Beyond the paper: with `auto`, R is 10 divided by the median distance between all gradients, saved and new, so
    that R adapts to their scale. With `check`, once two sessions are saved, one more probe round measures the losses
    of the constructed and the previous model on a mini-batch of each device; the better model is used.
    """

    first_two_as_previous: ClassVar = True

    scale: Annotated[float, Field(ge=0, le=1e12)] | Literal["auto"] = Field(
        10.0, description="R: sensitivity to the distance between gradients: a number, or auto"
    )
    distance: Literal["two_norm", "cosine", "unit_tensors"] = Field(
        "two_norm",
        description="distance between gradients. two_norm: |G - G'|; cosine: 1 - cos(G, G'); unit_tensors: |G/|G| -"
        " G'/|G'|| averaged over the weight tensors without biases, 0 to 2 for any model and learning rate",
    )
    probe_rounds: int = Field(1, ge=1, le=1_000_000, description="V: probe rounds per session")
    probe_share: float = Field(
        1.0,
        ge=1e-6,
        le=1,
        description="share of the devices present at a session's start that take part in its probe rounds",
    )
    pilot_model: Literal["mean", "ema", "good", "random"] = Field(
        "mean",
        description="how the pilot model is made. mean: mean of the pilot sessions' models (J 16); ema:"
        " moving average of these models (J 30); good: mean of the good sessions' models (I); random: the"
        " run's untrained first model (N, ablation)",
    )
    beta: float = Field(0.5, ge=0, lt=1, description="weight of older sessions if pilot_model is ema (J 30)")
    good_share: ClassVar[float] = 0.9  # sessions with at least this share of the best accuracy are good (I)
    history: int | None = Field(None, ge=1, le=1_000_000, description="H: number of sessions kept; null: all")
    retention: Literal["last", "diverse"] = Field(
        "last", description="kept sessions. last: the latest; diverse: those with the most diverse gradients"
    )
    check: bool = Field(False, description="open with the previous model if a check round finds it better")
    _weights: tuple[slice, ...] = PrivateAttr((slice(None),))  # slices of a gradient that are weight tensors

    def of_model(self, layout: TensorLayout) -> Self:
        ends = list(accumulate(prod(shape) for shape in layout.shapes))
        fitted = self.model_copy()
        fitted._weights = tuple(
            slice(begin, end)
            for name, begin, end in zip(layout.names, [0, *ends], ends, strict=False)
            if not name.rpartition(".")[2].startswith("bias")
        )
        return fitted

    @property
    def keeps_first_two(self) -> bool:
        return self.history != 1

    @property
    def probes(self) -> int:
        return self.probe_rounds

    @property
    def probe_participants(self) -> float:
        return self.probe_share

    def pilot(self, finals: Sequence[Final], initial: Tensor) -> Tensor:
        import torch

        models = torch.stack([final.model for final in finals])
        match self.pilot_model:
            case "random":
                return initial
            case "good":
                best = max(final.accuracy for final in finals)
                enough = min(best, self.good_share * best)  # a share of a negative score exceeds the score
                return models[[final.accuracy >= enough for final in finals]].mean(0)
            case "ema":
                last = len(models) - 1
                older = [self.beta ** (last - s) * (1 - self.beta if s else 1) for s in range(last + 1)]
                return torch.tensor(older, dtype=models.dtype, device=models.device) @ models
            case _:
                return models.mean(0)

    def checks(self, saved: Sequence[Saved]) -> bool:
        return self.check and len(saved) > 1

    def opening(self, current: Tensor, saved: Sequence[Saved], gradient: Tensor | None) -> OpeningModel:
        import torch

        comparable = [z for z in saved if z.gradient is not None]
        if gradient is None or not comparable:
            return OpeningModel(current, {})
        if len(comparable) == 1:  # no distances are needed to weigh a single session
            return OpeningModel(comparable[0].model, {comparable[0].session: 1.0})
        gradients = _gradients(comparable)
        distances = torch.stack([self.between(z, gradient) for z in gradients])
        mu = torch.softmax(-self.scale_for([*gradients, gradient]) * distances, dim=0).tolist()
        model = in_double(torch.zeros_like(current))
        for z, weight in zip(comparable, mu, strict=True):
            model.add_(z.model.to(model.device), alpha=weight)
        weights = {z.session: weight for z, weight in zip(comparable, mu, strict=True)}
        return OpeningModel(model.to(current), weights)

    def between(self, gradient: Tensor, other: Tensor) -> Tensor:
        """Compute the distance [] of two gradients [M], in float64."""
        import torch

        gradient, other = in_double(gradient), in_double(other)
        if self.distance == "cosine":
            return 1 - torch.cosine_similarity(gradient, other, dim=0)
        if self.distance == "unit_tensors":
            apart = [_unit(gradient[part]) - _unit(other[part]) for part in self._weights]
            return torch.stack([torch.linalg.vector_norm(difference) for difference in apart]).mean()
        return torch.linalg.vector_norm(gradient - other)

    def scale_for(self, gradients: Sequence[Tensor]) -> float:
        """Return the sensitivity R to distances, as set or computed from the distances between these gradients."""
        import torch

        if self.scale != "auto":
            return self.scale
        pairs = [self.between(g, h) for i, g in enumerate(gradients) for h in gradients[:i]]
        typical = float(torch.stack(pairs).median())
        return AUTO_EXPONENT / typical if typical > 0 else 0.0

    def retain(self, saved: Sequence[Saved]) -> list[Saved]:
        kept = list(saved)
        if self.history is None:
            return kept
        while len(kept) > self.history:
            kept.pop(self._least_needed(kept))
        return kept

    def _least_needed(self, kept: Sequence[Saved]) -> int:
        """Return the index to drop: a session without a gradient, the oldest, or the older of the closest two."""
        for index, z in enumerate(kept):
            if z.gradient is None:
                return index
        if self.retention == "last" or len(kept) < 2:
            return 0
        gradients = _gradients(kept)
        pairs = [(i, j) for j in range(len(kept)) for i in range(j)]
        return min(pairs, key=lambda pair: float(self.between(gradients[pair[0]], gradients[pair[1]])))[0]


def _unit(tensor: Tensor) -> Tensor:
    """Divide a tensor by its 2-norm; zeros stay zeros."""
    from torch.nn import functional

    return functional.normalize(tensor, dim=0)


def _gradients(saved: Sequence[Saved]) -> list[Tensor]:
    """Return the gradients G_z of all saved sessions with a gradient."""
    return [z.gradient for z in saved if z.gradient is not None]

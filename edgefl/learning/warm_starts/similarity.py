"""Saved models, weighted by how alike their sessions' gradients are to this session's."""

from collections.abc import Sequence

import torch
from pydantic import Field
from torch import Tensor

from edgefl.learning.warm_starts import OpeningModel, Saved, WarmStart


class Similarity(WarmStart):
    """Dynamic initial model construction: the journal paper, Algorithm 1.

    The pilot model is the mean of the last models of sessions 1 to P (J 16; P is `pilot_sessions`). Each
    later session s trains V probe rounds from it, G_s = w_grad - w_pilot (J 17), and from session P + 2
    on begins with sum_z mu_z w_z, mu = softmax(-R |G_s - G_z|) over the saved sessions z (J 18, 19).
    R = 0 is `average`, R to infinity the single most similar session. Probe rounds cost time and energy.
    """

    scale: float = Field(10.0, ge=0, description="R: sensitivity to the distance between gradients")
    probe_rounds: int = Field(1, ge=1, description="V: gradient rounds per session")
    probe_share: float = Field(
        1.0, gt=0, le=1, description="share of a round's participants sampled for a probe round"
    )

    @property
    def probes(self) -> int:
        return self.probe_rounds

    @property
    def probe_participants(self) -> float:
        return self.probe_share

    def pilot(self, finals: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(finals)).mean(0)

    def opening(self, current: Tensor, saved: Sequence[Saved], gradient: Tensor | None) -> OpeningModel:
        if not saved:
            return OpeningModel(current, {})
        assert gradient is not None  # the learner probes before it asks
        gradients = torch.stack([z.gradient for z in saved if z.gradient is not None])
        distances = torch.linalg.vector_norm((gradients - gradient).double(), dim=1)
        mu = torch.softmax(-self.scale * distances, dim=0)
        models = torch.stack([z.model for z in saved])
        model = (mu @ models.double()).to(current.dtype)
        return OpeningModel(model, {z.session: float(m) for z, m in zip(saved, mu, strict=True)})

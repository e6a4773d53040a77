"""The unweighted mean of the saved models."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from edgefl.learning.tensors import Tensor
from edgefl.learning.warm_starts import OpeningModel, Saved, WarmStart


class Average(WarmStart):
    """Baseline of the session papers: `similarity` with R = 0 and without probes."""

    first_two_as_previous: ClassVar = True

    history: int | None = Field(
        None, ge=1, le=1_000_000, description="H: number of most recent sessions kept; null: all"
    )

    @property
    def keeps_first_two(self) -> bool:
        return self.history != 1

    def opening(self, current: Tensor, saved: Sequence[Saved], gradient: Tensor | None) -> OpeningModel:
        import torch

        if not saved:
            return OpeningModel(current, {})
        if len(saved) == 1:  # return the model itself, since adding zeros would change -0.0
            return OpeningModel(saved[0].model, {saved[0].session: 1.0})
        mean = torch.stack([z.model for z in saved]).mean(0)
        return OpeningModel(mean, {z.session: 1.0 / len(saved) for z in saved})

    def retain(self, saved: Sequence[Saved]) -> list[Saved]:
        return list(saved[-self.history :] if self.history else saved)

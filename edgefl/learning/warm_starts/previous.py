"""Continue from the last session's model."""

from collections.abc import Sequence
from typing import ClassVar

from edgefl.learning.tensors import Tensor
from edgefl.learning.warm_starts import OpeningModel, Saved, WarmStart


class Previous(WarmStart):
    """Baseline of the session papers: keep the model unchanged between sessions."""

    first_two_as_previous: ClassVar = True

    def opening(self, current: Tensor, saved: Sequence[Saved], gradient: Tensor | None) -> OpeningModel:
        return OpeningModel(current, {saved[-1].session: 1.0} if saved else {})

    def retain(self, saved: Sequence[Saved]) -> list[Saved]:
        return list(saved[-1:])

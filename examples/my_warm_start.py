"""Start a session with the model of the most similar past session."""

from collections.abc import Sequence

from pydantic import Field
from torch import Tensor, cosine_similarity

from edgefl.learning.warm_starts import Final, OpeningModel, Saved, WarmStart


class Nearest(WarmStart):
    """Use the saved model of the session with the most similar gradient, without mixing models.

    One probe round, which starts from the last pilot session's model, measures a session's gradient. `similarity`
    with cosine distance approaches this rule as its scale grows, but has no `least_cosine`.
    """

    least_cosine: float = Field(
        0.0, ge=-1, le=1, description="the last model stays if all past sessions are less similar"
    )

    @property
    def probes(self) -> int:
        return 1

    def pilot(self, finals: Sequence[Final], initial: Tensor) -> Tensor:
        return finals[-1].model

    def opening(self, current: Tensor, saved: Sequence[Saved], gradient: Tensor | None) -> OpeningModel:
        nearest, most = None, self.least_cosine
        for past in saved:
            if gradient is None or past.gradient is None:  # no probe of the session arrived
                continue
            cosine = float(cosine_similarity(past.gradient, gradient, dim=0))
            if cosine >= most:
                nearest, most = past, cosine
        return OpeningModel(nearest.model, {nearest.session: 1.0}) if nearest else OpeningModel(current, {})

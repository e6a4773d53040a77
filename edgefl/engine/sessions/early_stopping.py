"""End a session when its model stops improving on samples that no device holds."""

from typing import ClassVar

from pydantic import Field

from edgefl.engine.sessions import BoundedPolicy, SessionState, since_best


class EarlyStopping(BoundedPolicy):
    """A session ends when the score on the validation samples has not risen for `patience` tests.

    This policy needs `learning.evaluation.validation`; the score is accuracy_validation, or the task's own metric
    instead. With `count: 1` the end of the session is also the end of the run. Each session has its own best score,
    since its labels may differ. To keep the model with the best score, set `record.models: best`.

    Source: Prechelt, Early stopping - but when?, 1998 (criterion UP, with tests instead of strips of epochs).
    """

    asks_validation: ClassVar = True

    patience: int = Field(10, ge=1, le=1_000_000, description="tests without a new best score before the end")

    def evidence_of(self, state: SessionState) -> str | None:
        return "early_stopping" if since_best(state.validated) >= self.patience else None

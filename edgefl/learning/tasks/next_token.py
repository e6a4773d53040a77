"""Prediction of the next word, or character."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from edgefl.learning.tasks.classification import Classification


class NextToken(Classification):
    """Learn to predict a text's next token; report accuracy and perplexity, the exponential of the mean loss.

    A sample is a piece of text, its target the next token; a model has an output per token of the vocabulary.
    Perplexity is the number of equally likely tokens with the same uncertainty; for an untrained model it is about
    the vocabulary size.
    """

    columns: ClassVar = ("perplexity",)

    def further(self, loss: float) -> Mapping[str, float]:
        return {"perplexity": math.exp(min(loss, 700.0))}  # exp of a larger loss overflows

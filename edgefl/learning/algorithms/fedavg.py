"""Federated averaging."""

from typing import ClassVar

from edgefl.learning.algorithms import Algorithm


class FedAvg(Algorithm):
    """Train with plain local SGD; average the models, weighted by data size. McMahan et al., AISTATS 2017."""

    uses: ClassVar[str] = "models"

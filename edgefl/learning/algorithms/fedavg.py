"""Federated averaging."""

from typing import ClassVar

from edgefl.learning.algorithms import Algorithm


class FedAvg(Algorithm):
    """Train by plain local SGD; average the models by data size (J 5). McMahan et al., AISTATS 2017."""

    uses: ClassVar[str] = "models"

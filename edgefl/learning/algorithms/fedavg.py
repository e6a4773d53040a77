"""Federated averaging."""

from typing import ClassVar

from edgefl.learning.algorithms import Algorithm


class FedAvg(Algorithm):
    """Plain local SGD; the server averages by data size (J 5). McMahan et al., AISTATS 2017."""

    uses: ClassVar[str] = "models"

"""Oracle, an upper bound for all methods, trains a separate model for each concept from the start."""

from typing import ClassVar

from edgefl.learning.algorithms.fedyogi import FedYogi


class Oracle(FedYogi):
    """FedYogi with two global models, one trained on data before the drift and one on data after the drift.

    In every round each participant trains both models, each on the device's samples under that model's concept,
    regardless of when the drift happens. A device is tested with the model of its current concept, so nothing is lost
    when the data change. No real method can do this, since it would have to know all data in advance. Only training
    the model of the device's current concept takes simulated time and energy; the other model is free.

    A later session's opening model replaces the model for data before the drift; the other model continues.

    Panchal et al., FLASH, ICML 2023, section 5.1 (ORACLE, based on FedYogi). The algorithm requires a drift.
    """

    uses: ClassVar[str] = "updates"
    knows_drift: ClassVar = True

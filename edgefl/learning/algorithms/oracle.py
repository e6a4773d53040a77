"""Oracle, an upper bound for all methods, trains a separate model for each concept from the start."""

from typing import ClassVar

from edgefl.learning.algorithms.fedyogi import FedYogi


class Oracle(FedYogi):
    """FedYogi with two global models, one trained on data before the drift and one on data after the drift.

    In every round each participant trains both models, each on the device's samples as they are under that model's
    concept, regardless of when the drift happens. A device is tested with the model of its current concept, so
    nothing is lost when the data change. No real method can do this, since the algorithm knows all data in advance.
    Time and energy are counted for the model of the device's current concept only, as if the other model were free.

    A later session's opening model replaces the model for data before the drift; the model for data after the drift
    continues.

    Panchal et al., FLASH, ICML 2023, section 5.1 (ORACLE, based on FedYogi). The algorithm requires a drift.
    """

    uses: ClassVar[str] = "updates"
    knows_drift: ClassVar = True

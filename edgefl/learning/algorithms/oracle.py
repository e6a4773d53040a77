"""The bound that no method reaches: a model for each concept, both trained from the start."""

from typing import ClassVar

from edgefl.learning.algorithms.fedyogi import FedYogi


class Oracle(FedYogi):
    """FedYogi with two global models, one trained on the data before the drift and one on those after it.

    In every round each participant trains both, each on its samples as they are under that concept, whenever the
    drift comes; a device is served and tested with the model of the concept that its data have. So nothing is
    lost when the data change. No such method can be built: it knows all data in advance. Time and energy are booked
    for the model of the device's present concept only, as if the other one came for free.

    A later session's opening model goes to the model before the drift; the one after it goes on as it is.

    Panchal et al., FLASH, ICML 2023, section 5.1 (ORACLE, based on FedYogi). Without a drift it is refused.
    """

    uses: ClassVar[str] = "updates"
    knows_drift: ClassVar = True

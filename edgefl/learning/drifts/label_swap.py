"""Swap labels in pairs."""

from typing import ClassVar

import numpy as np

from edgefl.learning.datasets import Split
from edgefl.learning.drifts import Drift


class LabelSwap(Drift):
    """Swap labels i and i + 1 for even i; with an odd number of labels, the last label does not change.

    Inputs do not change, so a perfect model becomes wrong on every drifted sample (except samples of an unpaired last
    label). Panchal et al., FLASH, ICML 2023, section 5.1, after Tahmasbi et al., DriftSurf, 2020.
    """

    of_classes: ClassVar = True

    def change(self, split: Split, classes: int) -> Split:
        swapped = np.arange(classes) ^ 1
        swapped[swapped >= classes] = classes - 1
        return Split(split.x, swapped[split.y], split.groups)

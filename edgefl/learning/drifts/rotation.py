"""Rotate images by a quarter turn."""

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Split
from edgefl.learning.drifts import Drift


class Rotation(Drift):
    """Rotate images anticlockwise by a quarter turn, which loses no pixels; labels do not change.

    In the terminology of Gama et al., ACM Computing Surveys 2014, this is a drift of the inputs, P(x). Left out:
    other angles, which would need interpolation and an invented background.
    """

    def change(self, split: Split, classes: int) -> Split:
        if split.x.ndim not in (3, 4) or split.x.shape[-1] != split.x.shape[-2]:
            raise EdgeflError(
                f"rotation needs square images, but samples here are {list(split.x.shape[1:])}: use label_swap"
            )
        turned = np.rot90(split.x, axes=(-2, -1))
        return Split(np.ascontiguousarray(turned), split.y, split.groups)

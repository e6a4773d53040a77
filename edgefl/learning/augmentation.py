"""Random shifts and mirroring of images in local training."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.tensors import Tensor


class Augmentation:
    """Shift images at random within a black margin and mirror half of the images, drawn again for every step.

    An image is padded with zeros on each side, cropped to its size at a uniform random position, and mirrored left to
    right with probability 1/2: He et al., Deep Residual Learning, CVPR 2016, section 4.2, with 4 pixels for CIFAR's
    32x32. The zeros are raw pixel values before normalisation, that is, black. Test data, the losses that devices
    report, and early stopping use the original images.
    """

    padding: ClassVar[int] = 4  # width of the margin on each side, pixels

    @property
    def views(self) -> int:
        """The number of views of an image, all equally likely."""
        return 2 * (2 * self.padding + 1) ** 2

    def check(self, shape: tuple[int, ...]) -> None:
        """Check that samples of this shape are images, or raise.

        Raises:
            EdgeflError: the samples are not images; the error names their shape.
        """
        if len(shape) not in (2, 3):
            raise EdgeflError(
                f"the data set's samples are {list(shape)}: only images, [height, width] or [channels, height,"
                " width], can be shifted and mirrored; leave augmentation out",
                ("learning", "local", "augmentation"),
            )

    def draw(self, sizes: np.ndarray, widest: int, generators: Iterable[np.random.Generator]) -> np.ndarray:
        """Draw the view of each sample in a round [K, steps, B], for each device from its own random stream.

        Args:
            sizes: number of samples in each batch [K, steps]; in a batch the samples precede the padding, which has
                the view 0.
        """
        views = np.zeros((*sizes.shape, widest), dtype=np.int32)
        present = np.arange(widest) < sizes[:, :, None]
        for own, there, rng in zip(views, present, generators, strict=True):
            own[there] = rng.integers(self.views, size=int(there.sum()))
        return views

    def seen(self, images: Tensor, views: Tensor) -> Tensor:
        """Return the images [n, ..., height, width], each shifted and mirrored according to `views` [n]."""
        import torch

        height, width = images.shape[-2:]
        offsets = 2 * self.padding + 1
        down, right = views % offsets - self.padding, views // offsets % offsets - self.padding
        mirrored = (views // offsets**2 > 0)[:, None]
        rows = torch.arange(height, device=images.device) + down[:, None]  # [n, height]
        columns = torch.arange(width, device=images.device).expand(len(images), -1)
        columns = torch.where(mirrored, width - 1 - columns, columns) + right[:, None]  # [n, width]
        inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[
            :, None, :
        ]
        places = rows.clamp(0, height - 1)[:, :, None] * width + columns.clamp(0, width - 1)[:, None, :]
        flat = images.reshape(len(images), -1, height * width)
        taken = flat.gather(2, places.flatten(1)[:, None].expand(-1, flat.shape[1], -1))
        return (taken * inside.flatten(1)[:, None]).view_as(images)
